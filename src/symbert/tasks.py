"""GLUE as a table: a row per task, with all that is known of it; columns, class names and row counts as on the hub.

The hub (nyu-mll/glue) holds one parquet file per split, GLUE's own archives (gluebenchmark.com) tab-separated ones.
Beside these stand the user's own tasks, which the configuration defines.
"""

import difflib
import re
from dataclasses import dataclass, field
from typing import Any

from symbert.errors import ConfigError, UsageError

HIGHEST_GRADE = 5  # of similarity; the lowest is 0
METRICS_OF_CLASSES = ("accuracy", "f1", "matthews")
METRICS_OF_GRADES = ("pearson", "spearman")
COLUMNS_OF_TABLES = ("model", "size", "attention", "pretrain_seed", "step", "finetune_seed", "finetune_seeds")
COLUMNS_OF_TABLES += ("task", "column", "glue_score", "std", "mean_of_tasks")


@dataclass(frozen=True)
class Layout:
    """Which columns of a file hold text and label."""

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
    official_rows: dict[str, int] = field(default_factory=dict)  # of each split; none: nobody has published it
    folder: str = ""  # of GLUE's archives
    stand_in: str = ""  # the function of symbert.glue.embedded that makes rows; none: the shape of STS-B's
    layout: Layout | None = None  # of the files in that folder, or of the user's; None: the columns, and `label`
    files: dict[str, str] = field(default_factory=dict)  # of a task of the user's own, by split

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
OWN: dict[str, Task] = {}
"""The tasks of the user's own."""


def task_named(name: str) -> Task:
    """The row of a task; UsageError suggests the nearest name."""
    known = {**GLUE, **OWN}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(known)}"
    raise UsageError(f"unknown GLUE task '{name}'; {remedy}")


def define(name: str, definition: dict[str, Any]) -> Task:
    """Make a task of the user's own known to this process: `definition` has the keys of `symbert.keys.OwnTask`.

    ConfigError for a name that tables have already, for labels that are missing or repeated, and for a metric that does
    not fit them.
    """
    key, labels = f"config: 'tasks.{name}'", tuple(map(_label_name, definition["labels"] or ()))
    metrics = [definition["metric"]] if isinstance(definition["metric"], str) else definition["metric"]
    taken = {*GLUE, *(column for task in GLUE.values() for column in task.scores.values()), *COLUMNS_OF_TABLES}
    if name in taken or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise ConfigError(
            f"config: 'tasks' has '{name}', which is a task or column of this project or has more than letters, "
            "digits, '_' and '-'; choose another name"
        )
    if (definition["kind"] == "regression") == bool(labels):
        raise ConfigError(f"{key} has {'labels and' if labels else 'no labels, but not'} kind: regression; choose one")
    if len(set(labels)) < len(labels):
        raise ConfigError(f"{key}: 'labels' has one twice ({', '.join(labels)}); keep one of them")
    fitting = METRICS_OF_CLASSES if labels else METRICS_OF_GRADES
    for metric in metrics:
        if metric not in fitting or (metric == "f1" and len(labels) != 2):
            raise ConfigError(f"{key}: 'metric' is {metric}, which needs {_needed_by(metric)}; choose another")
    OWN[name] = Task(
        name,
        columns=("sentence",) if len(definition["columns"]) == 1 else ("sentence1", "sentence2"),
        labels=labels,
        metrics=tuple(metrics),
        scores={"validation": name},
        layout=Layout(tuple(definition["columns"]), definition["label"]),
        files={split: definition[split] for split in ("train", "validation")},
    )
    return OWN[name]


def _label_name(label: str | int | bool) -> str:
    """YAML reads the words no and yes as truth values."""
    return ("no", "yes")[label] if isinstance(label, bool) else str(label)


def _needed_by(metric: str) -> str:
    if metric in METRICS_OF_GRADES:
        return "kind: regression"
    return "two labels" if metric == "f1" else "labels"
