"""Scores of predictions, as GLUE defines them, and those of the best constant prediction; all between -1 and 1.

A constant prediction has no correlation with anything: Matthews, Pearson and Spearman are 0 for it, never NaN.
The formulas are written out, because importing scipy and scikit-learn takes longer than many a fine-tuning.
"""

from typing import Any

import numpy as np

from symbert.tasks import Task


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Share of rows predicted right."""
    return float(np.mean(labels == predictions))


def f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """F1 of class 1; 0 when it is neither present nor predicted."""
    of_class, as_class = labels == 1, predictions == 1
    both = of_class.sum() + as_class.sum()
    return float(2 * (of_class & as_class).sum() / both) if both else 0.0


def matthews(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Matthews correlation, of any number of classes (Gorodkin, Comput. Biol. Chem. 28, 2004)."""
    if is_constant(labels) or is_constant(predictions):
        return 0.0
    classes = int(max(labels.max(), predictions.max())) + 1
    expected, predicted = (np.bincount(side.astype(int), minlength=classes) for side in (labels, predictions))
    rows, right = len(labels), (labels == predictions).sum()
    spread = float(rows**2 - predicted @ predicted) * float(rows**2 - expected @ expected)
    return float((right * rows - expected @ predicted) / np.sqrt(spread))


def pearson(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Linear correlation."""
    if is_constant(labels) or is_constant(predictions):
        return 0.0
    return float(np.clip(np.vecdot(_direction(labels), _direction(predictions)), -1, 1))


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Rank correlation; equal values have the mean of their ranks."""
    if is_constant(labels) or is_constant(predictions):
        return 0.0
    return float(np.corrcoef(_ranks(labels), _ranks(predictions))[1, 0])


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


def _direction(values: np.ndarray) -> np.ndarray:
    """Deviations from the mean as a vector of length 1, which no square overflows on the way to."""
    deviations = values.astype(float) - values.astype(float).mean()
    largest = np.abs(deviations).max()
    return deviations / (largest * np.linalg.norm(deviations / largest, axis=0))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, numbers, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[numbers]
