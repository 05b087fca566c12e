"""GLUE as a table: a row per task, with all that is known of it; columns, class names and row counts as on the hub.

The hub (nyu-mll/glue) holds one parquet file per split, GLUE's own archives (gluebenchmark.com) tab-separated ones.
"""

import difflib
from dataclasses import dataclass

from symbert.errors import UsageError

HIGHEST_GRADE = 5  # of similarity; the lowest is 0


@dataclass(frozen=True)
class Layout:
    """Which columns of a tab-separated file hold text and label."""

    text: tuple[str, ...]
    label: str = "label"
    header: tuple[str, ...] = ()  # of a file whose first line is a row already
    has_broken_rows: bool = False  # the publisher's file has some, without text or label: they are skipped


@dataclass(frozen=True)
class Task:
    """What a task reads, what it predicts, and how it is scored."""

    name: str
    columns: tuple[str, ...]  # text: one sentence, or a pair
    labels: tuple[str, ...]  # class names by label; empty: the label is a grade from 0 to HIGHEST_GRADE
    metrics: tuple[str, ...]  # their mean is the score: keys of symbert.glue.metrics.METRICS
    scores: dict[str, str]  # score column of each evaluation split
    official_rows: dict[str, int]  # of the training and evaluation splits
    folder: str  # of GLUE's archives
    stand_in: str  # the function of symbert.glue.stand_ins that makes rows of this shape
    layout: Layout | None = None  # of the files in that folder; None: the columns, and `label`

    @property
    def num_labels(self) -> int:
        """Outputs of the classifier: 1 for a grade."""
        return max(1, len(self.labels))

    @property
    def highest_label(self) -> int:
        """The last class, or the highest grade; the lowest is 0."""
        return len(self.labels) - 1 if self.labels else HIGHEST_GRADE

    @property
    def splits(self) -> tuple[str, ...]:
        """Training first, then the splits that are scored; the unlabelled test splits are never read."""
        return ("train", *self.scores)


_TASKS = (
    Task(
        "mrpc",
        columns=("sentence1", "sentence2"),
        labels=("not_equivalent", "equivalent"),
        metrics=("accuracy", "f1"),
        scores={"validation": "mrpc"},
        official_rows={"train": 3_668, "validation": 408},
        folder="MRPC",
        stand_in="paraphrase",
        layout=Layout(("#1 String", "#2 String"), "Quality"),
    ),
    Task(
        "cola",
        columns=("sentence",),
        labels=("unacceptable", "acceptable"),
        metrics=("matthews",),
        scores={"validation": "cola"},
        official_rows={"train": 8_551, "validation": 1_043},
        folder="CoLA",
        stand_in="acceptability",
        layout=Layout(("sentence",), header=("source", "label", "mark", "sentence")),
    ),
    Task(
        "mnli",
        columns=("premise", "hypothesis"),
        labels=("entailment", "neutral", "contradiction"),
        metrics=("accuracy",),
        scores={"validation_matched": "mnli_matched", "validation_mismatched": "mnli_mismatched"},
        official_rows={"train": 392_702, "validation_matched": 9_815, "validation_mismatched": 9_832},
        folder="MNLI",
        stand_in="inference",
        layout=Layout(("sentence1", "sentence2"), "gold_label"),
    ),
    Task(
        "qqp",
        columns=("question1", "question2"),
        labels=("not_duplicate", "duplicate"),
        metrics=("accuracy", "f1"),  # the paper's text says accuracy; its printed numbers are this mean
        scores={"validation": "qqp"},
        official_rows={"train": 363_846, "validation": 40_430},
        folder="QQP",
        stand_in="duplicate",
        layout=Layout(("question1", "question2"), "is_duplicate", has_broken_rows=True),
    ),
    Task(
        "rte",
        columns=("sentence1", "sentence2"),
        labels=("entailment", "not_entailment"),
        metrics=("accuracy",),
        scores={"validation": "rte"},
        official_rows={"train": 2_490, "validation": 277},
        folder="RTE",
        stand_in="entailment",
    ),
    Task(
        "stsb",
        columns=("sentence1", "sentence2"),
        labels=(),
        metrics=("pearson", "spearman"),
        scores={"validation": "stsb"},
        official_rows={"train": 5_749, "validation": 1_500},
        folder="STS-B",
        stand_in="similarity",
        layout=Layout(("sentence1", "sentence2"), "score"),
    ),
    Task(
        "qnli",
        columns=("question", "sentence"),
        labels=("entailment", "not_entailment"),
        metrics=("accuracy",),
        scores={"validation": "qnli"},
        official_rows={"train": 104_743, "validation": 5_463},
        folder="QNLI",
        stand_in="answer",
    ),
    Task(
        "sst2",
        columns=("sentence",),
        labels=("negative", "positive"),
        metrics=("accuracy",),
        scores={"validation": "sst2"},
        official_rows={"train": 67_349, "validation": 872},
        folder="SST-2",
        stand_in="direction",
    ),
    Task(
        "wnli",  # the authors run it, but leave it out of the GLUE score
        columns=("sentence1", "sentence2"),
        labels=("not_entailment", "entailment"),
        metrics=("accuracy",),
        scores={"validation": "wnli"},
        official_rows={"train": 635, "validation": 71},
        folder="WNLI",
        stand_in="pronoun",
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
