"""Scores of predictions, as GLUE defines them, and those of the best constant prediction; all between -1 and 1.

A constant prediction has no correlation with anything: Matthews, Pearson and Spearman are 0 for it, never NaN.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from symbert.tasks import Task


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Share of rows predicted right."""
    return float(accuracy_score(labels, predictions))


def f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """F1 of class 1; 0 when it is neither present nor predicted."""
    return float(f1_score(labels, predictions, pos_label=1, average="binary", zero_division=0))


def matthews(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Matthews correlation."""
    return _unless_constant(matthews_corrcoef, labels, predictions)


def pearson(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Linear correlation."""
    return _unless_constant(lambda *pair: pearsonr(*pair)[0], labels, predictions)


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Rank correlation."""
    return _unless_constant(lambda *pair: spearmanr(*pair)[0], labels, predictions)


METRICS = {"accuracy": accuracy, "f1": f1, "matthews": matthews, "pearson": pearson, "spearman": spearman}


def measure(task: Task, labels: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Each metric of the task; the score is their mean. Predictions are classes, or grades."""
    return {name: METRICS[name](labels, predictions) for name in task.metrics}


def scored(task: Task, training_labels: np.ndarray, labels: np.ndarray, predictions: np.ndarray) -> dict[str, Any]:
    """`score`, its `details` (the metrics whose mean it is) and the score of the `majority` baseline."""
    details = measure(task, labels, predictions)
    baseline = majority(task, training_labels, labels)
    return {"score": _mean(details), "details": details, "majority": _mean(baseline)}


def majority(task: Task, training_labels: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """The task's metrics when the most frequent training class (for grades: their mean) is always predicted.

    Of equally frequent classes it is the one that scores best, so that no constant prediction beats the baseline.
    """
    if not task.labels:
        return measure(task, labels, np.full(len(labels), training_labels.mean()))
    counts = np.bincount(training_labels.astype(int))
    constants = [measure(task, labels, np.full(len(labels), label)) for label in np.flatnonzero(counts == counts.max())]
    return max(constants, key=lambda scores: sum(scores.values()))


def is_constant(values: np.ndarray) -> bool:
    """Whether all values are the same."""
    return bool(np.all(values == values[0]))


def _mean(scores: dict[str, float]) -> float:
    return float(np.mean(list(scores.values())))


def _unless_constant(correlation: Callable[..., float], labels: np.ndarray, predictions: np.ndarray) -> float:
    return 0.0 if is_constant(labels) or is_constant(predictions) else float(correlation(labels, predictions))
