"""GLUE as a table: one row per task, with columns, class names and row counts as on the hub (nyu-mll/glue)."""

import difflib
from dataclasses import dataclass

from symbert.errors import UsageError

HIGHEST_GRADE = 5


@dataclass(frozen=True)
class Task:
    """What a task reads, what it predicts, and how it is scored."""

    name: str
    columns: tuple[str, ...]  # text: one sentence, or a pair
    labels: tuple[str, ...]  # class names by label; empty: the label is a grade from 0 to HIGHEST_GRADE
    metrics: tuple[str, ...]  # their mean is the score: keys of symbert.glue.metrics.METRICS
    scores: dict[str, str]  # score column of each evaluation split
    official_rows: dict[str, int]  # of the training and evaluation splits

    @property
    def num_labels(self) -> int:
        """Outputs of the classifier: 1 for a grade."""
        return max(1, len(self.labels))

    @property
    def splits(self) -> tuple[str, ...]:
        """Training first, then the splits that are scored; the unlabelled test splits are never read."""
        return ("train", *self.scores)


_TASKS = (
    Task(
        "mrpc",
        ("sentence1", "sentence2"),
        ("not_equivalent", "equivalent"),
        ("accuracy", "f1"),
        {"validation": "mrpc"},
        {"train": 3_668, "validation": 408},
    ),
    Task(
        "cola",
        ("sentence",),
        ("unacceptable", "acceptable"),
        ("matthews",),
        {"validation": "cola"},
        {"train": 8_551, "validation": 1_043},
    ),
    Task(
        "mnli",
        ("premise", "hypothesis"),
        ("entailment", "neutral", "contradiction"),
        ("accuracy",),
        {"validation_matched": "mnli_matched", "validation_mismatched": "mnli_mismatched"},
        {"train": 392_702, "validation_matched": 9_815, "validation_mismatched": 9_832},
    ),
    Task(
        "qqp",
        ("question1", "question2"),
        ("not_duplicate", "duplicate"),
        ("accuracy", "f1"),  # the paper's text says accuracy; its printed numbers are this mean
        {"validation": "qqp"},
        {"train": 363_846, "validation": 40_430},
    ),
    Task(
        "rte",
        ("sentence1", "sentence2"),
        ("entailment", "not_entailment"),
        ("accuracy",),
        {"validation": "rte"},
        {"train": 2_490, "validation": 277},
    ),
    Task(
        "stsb",
        ("sentence1", "sentence2"),
        (),
        ("pearson", "spearman"),
        {"validation": "stsb"},
        {"train": 5_749, "validation": 1_500},
    ),
    Task(
        "qnli",
        ("question", "sentence"),
        ("entailment", "not_entailment"),
        ("accuracy",),
        {"validation": "qnli"},
        {"train": 104_743, "validation": 5_463},
    ),
    Task(
        "sst2",
        ("sentence",),
        ("negative", "positive"),
        ("accuracy",),
        {"validation": "sst2"},
        {"train": 67_349, "validation": 872},
    ),
    Task(
        "wnli",  # the authors run it, but leave it out of the GLUE score
        ("sentence1", "sentence2"),
        ("not_entailment", "entailment"),
        ("accuracy",),
        {"validation": "wnli"},
        {"train": 635, "validation": 71},
    ),
)

GLUE: dict[str, Task] = {task.name: task for task in _TASKS}


def task_named(name: str) -> Task:
    """The row of a task; UsageError suggests the nearest name."""
    if name in GLUE:
        return GLUE[name]
    near = difflib.get_close_matches(name, GLUE, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(GLUE)}"
    raise UsageError(f"unknown GLUE task '{name}'; {remedy}")
