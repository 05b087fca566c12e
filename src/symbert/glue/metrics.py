"""Scores of predictions, as the suites define them, and scores of the best constant prediction; all between -1 and 1.

A constant prediction has no correlation with anything: Matthews, Pearson and Spearman are 0 for it, never NaN. Rows of
one label, of which nothing can be measured, are refused when they are prepared (`unmeasurable`). Records of scores, and
results that a fine-tuning keeps beside them, are JSON with a hash of their content: a flipped bit may leave JSON that
can be read, and another score.
"""

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import msgspec
import numpy as np
import scipy  # whose statistics are imported where they are needed

from symbert.errors import IntegrityError
from symbert.files import hash_of, read_json
from symbert.glue.tasks import Task

Record = dict[str, Any]
Content = TypeVar("Content", bound=msgspec.Struct)


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Share of rows predicted right."""
    return float(np.mean(labels == predictions))


def f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """F1 of class 1; 0 when it is neither present nor predicted."""
    of_class, as_class = labels == 1, predictions == 1
    both = of_class.sum() + as_class.sum()
    return float(2 * (of_class & as_class).sum() / both) if both else 0.0


def macro_f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Mean F1 of the classes that are present or predicted."""
    classes = np.union1d(labels, predictions)
    return float(np.mean([f1(labels == number, predictions == number) for number in classes]))


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
    return float(scipy.stats.pearsonr(labels.astype(float), predictions.astype(float)).statistic)


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Rank correlation; equal values have the mean of their ranks."""
    if is_constant(labels) or is_constant(predictions):
        return 0.0
    return float(scipy.stats.spearmanr(labels, predictions).statistic)


def whole_groups(truth: np.ndarray, predictions: np.ndarray) -> float:
    """Share of the questions of which every answer is judged right (MultiRC's exact match)."""
    wrong = np.unique(truth["group"][truth["label"] != predictions])
    return float(1 - wrong.size / _groups(truth).size)


def chosen_right(truth: np.ndarray, predictions: np.ndarray) -> float:
    """Share of the questions whose highest row is a right one: COPA's accuracy, ReCoRD's exact match."""
    return float(truth["label"][_chosen(truth, predictions)].mean())


def chosen_credit(truth: np.ndarray, predictions: np.ndarray) -> float:
    """Mean credit of the highest row of each question: ReCoRD's F1."""
    return float(truth["credit"][_chosen(truth, predictions)].astype(float).mean())


OF_GROUPS = (whole_groups, chosen_right, chosen_credit)  # which read group and credit beside the label
CORRELATIONS = ("matthews", "pearson", "spearman")  # from −1; all other metrics are shares, from 0
METRICS = {metric.__name__: metric for metric in (accuracy, f1, macro_f1, matthews, pearson, spearman, *OF_GROUPS)}


def unmeasurable(metric: str, labels: np.ndarray) -> str | None:
    """Why a metric says nothing of predictions, whatever they are; None where it does.

    Correlations with equal labels do not exist, and there is no F1 of a class without rows.
    """
    if metric in CORRELATIONS and is_constant(labels):
        return "all labels are the same"
    if metric == f1.__name__ and not (labels == 1).any():
        return "no row is of the second class"
    return None


def lowest(metrics: Iterable[str]) -> float:
    """The least that the mean of metrics can be; the most is 1."""
    return fmean(-1 if metric in CORRELATIONS else 0 for metric in metrics)


def measure(task: Task, truth: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Each metric of the task; the score is their mean. Predictions are classes, grades, or numbers that rank rows.

    The truth is that of `symbert.glue.train.TaskRows`: labels or, of answers to questions, with group and credit.
    """
    labels = _labels(truth)
    return {name: METRICS[name](truth if METRICS[name] in OF_GROUPS else labels, predictions) for name in task.metrics}


def scored(task: Task, training: np.ndarray, truth: np.ndarray, predictions: np.ndarray) -> dict[str, Any]:
    """`score`, its `details` (the metrics whose mean it is) and the score of the `majority` baseline."""
    details, baseline = measure(task, truth, predictions), majority(task, training, truth)
    return {"score": _mean(details), "details": details, "majority": _mean(baseline)}


def majority(task: Task, training: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """The task's metrics when the most frequent training class (for grades: their mean) is always predicted.

    Where an answer is chosen of several, it is the answer at the place where the right answer stands most often. Of
    equally frequent classes or places the best score counts, so that no constant prediction beats the baseline.
    """
    if task.head == "grades":
        constants = [np.full(len(truth), training.mean())]
    elif task.head == "classes":
        constants = [np.full(len(truth), label) for label in _most_frequent(_labels(training).astype(int))]
    else:
        places = _places(truth)
        constants = [1.0 * (places == place) for place in _most_frequent(_places(training)[training["label"] == 1])]
    return max((measure(task, truth, constant) for constant in constants), key=lambda scores: sum(scores.values()))


def _most_frequent(numbers: np.ndarray) -> np.ndarray:
    counts = np.bincount(numbers)
    return np.flatnonzero(counts == counts.max())


def is_constant(values: np.ndarray) -> bool:
    """Whether all values are the same."""
    return bool(np.all(values == values[0]))


def _labels(truth: np.ndarray) -> np.ndarray:
    return truth["label"] if truth.dtype.names else truth


def _groups(truth: np.ndarray) -> np.ndarray:
    """The first row of each group, whose rows stand together."""
    return np.flatnonzero(np.diff(truth["group"], prepend=-1))


def _places(truth: np.ndarray) -> np.ndarray:
    """The place of each row in its group, from 0."""
    first = _groups(truth)
    return np.arange(len(truth)) - np.repeat(first, np.diff([*first, len(truth)]))


def _chosen(truth: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """The highest row of each group; of equal ones the first."""
    first = _groups(truth)
    return np.array([at + part.argmax() for at, part in zip(first, np.split(predictions, first[1:]), strict=True)])


def _mean(scores: dict[str, float]) -> float:
    return float(np.mean(list(scores.values())))


def hashed(content: Record) -> Record:
    """The content with its hash."""
    return {**content, "hash": hash_of(content)}


def checked(content: Record, place: str, remedy: str) -> Record:
    """The content without its hash; IntegrityError when it was damaged since. Imported scores have no hash."""
    expected = content.get("hash")
    content = {key: value for key, value in content.items() if key != "hash"}
    if expected is not None and (computed := hash_of(content)) != expected:
        raise IntegrityError(f"{place}: sha256 expected {expected}…, found {computed}…; {remedy}")
    return content


def read_kept(path: Path, kind: type[Content]) -> Content:
    """The content of a file with a hash; IntegrityError when it was damaged."""
    return msgspec.convert(checked(read_json(path, kind), str(path), "delete it and run again"), kind)
