"""Suites of tasks: a row per task, with all that is known of it; columns, class names and row counts as on the hub.

The hub holds one parquet file per split. The user's own tasks are defined by the configuration: `tasks_of` adds them.
Imports no torch.
"""

import re
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from symbert.declared import suggestion
from symbert.errors import ConfigError, UsageError
from symbert.files import known_sha256
from symbert.sources import PublishedFile
from symbert.steps import File

HIGHEST_GRADE = 5  # of similarity; the lowest is 0
CHOICES = 2  # of which one is right


@dataclass(frozen=True)
class Task:
    """Files, columns, labels, metrics and head of a task."""

    name: str
    columns: tuple[str, ...]  # text: one sentence, or a pair; of a task with a form, its input
    labels: tuple[str, ...]  # class names by label; empty: the label is a grade from 0 to HIGHEST_GRADE
    rows: tuple[int, ...] = ()  # of each split, as published; none: nobody has published it
    metrics: tuple[str, ...] = ("accuracy",)  # their mean is the score: keys of symbert.glue.metrics.METRICS
    head: str = "classes"  # key of symbert.glue.train.HEADS
    evaluated: tuple[str, ...] = ("validation",)  # splits that are scored
    folder: str = ""  # at the hub; none: its name
    files: dict[str, File] = field(default_factory=dict)  # of a task of the user's own, by split
    custom_columns: tuple[str, ...] = ()  # of these files: the texts, and last the label
    form: str = ""  # function of symbert.glue.forms that makes texts of a row; none: the columns are the texts
    details: dict[str, str] = field(default_factory=dict)  # further columns at the hub; types of symbert.glue.sources
    index: str = "int32"  # the type of the column idx at the hub; none: it has no such column
    has_label: bool = True  # the hub has a column of labels; none: the form makes them
    row_tokens: int = 36  # without padding, about: padding GLUE's training rows to 128 computes 3.6 times as many
    rows_of_row: int = 1  # that the form makes of one, about

    @property
    def splits(self) -> tuple[str, ...]:
        """Training first, then the splits that are scored; the unlabelled test splits are never read."""
        return ("train", *self.evaluated)

    @property
    def official_rows(self) -> dict[str, int]:
        """How many rows each split has as published; empty for a task of the user's own."""
        return dict(zip(self.splits, self.rows, strict=False))

    @property
    def scores(self) -> dict[str, str]:
        """The score column of each split that is scored."""
        return {split: split.replace("validation", self.name) for split in self.evaluated}

    @property
    def num_labels(self) -> int:
        """Outputs: one for a grade, or for each of several choices."""
        return 1 if self.head in ("grades", "choices") else len(self.labels)

    @property
    def rows_of_example(self) -> int:
        """Rows that are drawn together, and that a batch counts as one: all choices, of which one is right."""
        return CHOICES if self.head == "choices" else 1


@dataclass(frozen=True)
class Suite:
    """Tasks of one publisher: they are fine-tuned under one protocol, and their mean is one score.

    The protocol is the section `glue` of the configuration, but for the keys that the section `suites` has of this one.
    """

    name: str
    title: str
    repository: str  # of the hub
    tasks: dict[str, Task]  # by name
    revision: str = ""  # commit of the repository; none: `glue.revision`
    note: str = ""  # sentence in the caption of its scores

    @property
    def columns(self) -> tuple[str, ...]:
        """The score columns of its tasks."""
        return tuple(column for task in self.tasks.values() for column in task.scores.values())

    @property
    def score(self) -> str:
        """The name of the mean of its columns."""
        return f"{self.name}_score"


PAIR, ENTAILMENT, TRUTH = ("sentence1", "sentence2"), ("entailment", "not_entailment"), ("False", "True")
_GLUE = (
    Task("mrpc", PAIR, ("not_equivalent", "equivalent"), rows=(3_668, 408), metrics=("accuracy", "f1")),
    Task("cola", ("sentence",), ("unacceptable", "acceptable"), rows=(8_551, 1_043), metrics=("matthews",)),
    Task(
        "mnli",
        ("premise", "hypothesis"),
        ("entailment", "neutral", "contradiction"),
        rows=(392_702, 9_815, 9_832),
        evaluated=("validation_matched", "validation_mismatched"),
    ),
    Task(
        "qqp",
        ("question1", "question2"),
        ("not_duplicate", "duplicate"),
        rows=(363_846, 40_430),
        metrics=("accuracy", "f1"),  # the paper's text says accuracy; its printed numbers are this mean
    ),
    Task("rte", PAIR, ENTAILMENT, rows=(2_490, 277)),
    Task("stsb", PAIR, (), rows=(5_749, 1_500), metrics=("pearson", "spearman"), head="grades"),
    Task("qnli", ("question", "sentence"), ENTAILMENT, rows=(104_743, 5_463)),
    Task("sst2", ("sentence",), ("negative", "positive"), rows=(67_349, 872)),
    # The authors run it, but leave it out of the GLUE score.
    Task("wnli", PAIR, ("not_entailment", "entailment"), rows=(635, 71)),
)

# The texts of BERT's baseline (Wang et al., "SuperGLUE", NeurIPS 2019, section 4.1): a pair for BoolQ, CB, RTE; the
# context beside each answer for COPA, MultiRC, ReCoRD, where COPA takes the choice with the higher output, MultiRC
# classifies each answer and ReCoRD takes the likeliest candidate. Not as there: the words of WiC and the phrases of WSC
# are marked in the text (Raffel et al., JMLR 21, 2020, do so for WSC), and [CLS] alone is classified.
_SUPERGLUE = (
    Task("boolq", ("question", "passage"), TRUTH, rows=(9_427, 3_270), row_tokens=140),
    Task(
        "cb",
        ("premise", "hypothesis"),
        ("entailment", "contradiction", "neutral"),
        rows=(250, 56),
        metrics=("accuracy", "macro_f1"),
        row_tokens=85,
    ),
    Task(
        "copa",
        ("premise", "choice1", "choice2", "question"),
        ("choice1", "choice2"),
        rows=(400, 100),
        metrics=("chosen_right",),
        head="choices",
        form="choices",
        row_tokens=22,
        rows_of_row=2,
    ),
    Task(
        "multirc",
        ("paragraph", "question", "answer"),
        TRUTH,
        rows=(27_243, 4_848),
        metrics=("f1", "whole_groups"),
        form="answers",
        index="paragraph question answer",
        row_tokens=250,
    ),
    Task(
        "record",
        ("passage", "query"),
        TRUTH,  # of a candidate
        rows=(100_730, 10_000),
        metrics=("chosen_right", "chosen_credit"),
        head="candidates",
        form="candidates",
        details={"entities": "texts", "answers": "texts"},
        index="passage query",
        has_label=False,
        row_tokens=250,
        rows_of_row=10,
    ),
    Task("superglue_rte", ("premise", "hypothesis"), ENTAILMENT, rows=(2_490, 277), folder="rte", row_tokens=70),
    Task(
        "wic",
        ("word", "sentence1", "sentence2"),
        TRUTH,
        rows=(5_428, 638),
        form="marked_words",
        details=dict.fromkeys(("start1", "start2", "end1", "end2"), "int32"),
        row_tokens=30,
    ),
    Task(
        "wsc",
        ("text", "span1_text", "span2_text"),
        TRUTH,
        rows=(554, 104),
        form="marked_phrases",
        details={"span1_index": "int32", "span2_index": "int32"},
        row_tokens=40,
    ),
)


# Of 130,319 training questions 86,821 have an answer, of 11,873 for evaluation 5,928 (Rajpurkar, Jia and Liang, "Know
# What You Don't Know", ACL 2018, table 2). `symbert.glue.squad` has how they are read and scored.
_SQUAD2 = (
    Task(
        "squad2",
        ("id", "title", "context", "question"),
        ("first", "last"),  # outputs of each token
        rows=(130_319, 11_873),
        metrics=("f1",),
        head="spans",
        folder="squad_v2",
        details={"answers": "text answer_start"},
        index="",
        has_label=False,
        row_tokens=165,
    ),
)


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("glue", "GLUE", "nyu-mll/glue", {task.name: task for task in _GLUE}),
        Suite(
            "superglue",
            "SuperGLUE",
            "aps/super_glue",
            {task.name: task for task in _SUPERGLUE},
            revision="3de24cf8022e94f4ee4b9d55a6f539891524d646",
            note=(
                "Majority baseline: the most frequent training class for every row; for copa and record the answer at "
                "the place where the right one stands most often in training."
            ),
        ),
        Suite(
            "squad2",
            "SQuAD 2.0",
            "rajpurkar/squad_v2",
            {task.name: task for task in _SQUAD2},
            revision="3ffb306f725f7d2ce8394bc1873b24868140c412",
            note="The score is the F1 of answers. Majority baseline: no answer to any question.",
        ),
        Suite(
            "blimp",  # minimal pairs, which models judge without fine-tuning: symbert.glue.blimp
            "BLiMP",
            "nyu-mll/blimp",
            {},
            revision="877fba0801ffb7cbd8c39c1ff314a46f053f6036",
        ),
    )
}
BESIDE_GLUE = tuple(suite for suite in SUITES.values() if suite.name != "glue")


def suite_of(task: str) -> Suite:
    """The suite of a task; GLUE of one of the user's own, which stands beside its tasks."""
    return next((suite for suite in SUITES.values() if task in suite.tasks), SUITES["glue"])


def published_split(task: Task, split: str) -> PublishedFile:
    """The hub's file of a split."""
    return PublishedFile(
        "dataset", suite_of(task.name).repository, f"{task.folder or task.name}/{split}-00000-of-00001.parquet"
    )


METRICS_OF_CLASSES = ("accuracy", "f1", "matthews")
METRICS_OF_GRADES = ("pearson", "spearman")
Metric = Literal["accuracy", "f1", "matthews", "pearson", "spearman"]
COLUMNS_OF_TABLES = ("model", "size", "attention", "pretrain_seed", "step", "finetune_seed", "finetune_seeds")
COLUMNS_OF_TABLES += ("task", "column", *(suite.score for suite in SUITES.values()), "std")

GLUE: dict[str, Task] = SUITES["glue"].tasks
PUBLISHED = ChainMap(*(suite.tasks for suite in reversed(SUITES.values())))  # which names the last map's keys first


def task_named(name: str, known: Mapping[str, Task] = PUBLISHED) -> Task:
    """The row of a task; UsageError suggests the nearest name."""
    if name in known:
        return known[name]
    raise UsageError(f"unknown task '{name}'{suggestion(name, known)}")


def tasks_of_sweep(suites: list[str], tasks: list[str]) -> list[str]:
    """The tasks that are fine-tuned: those of `tasks` that are of these suites or the user's own, and every task of a
    suite other than GLUE of which `tasks` names none.

    None where the only suites are those without fine-tuning. ConfigError for a task whose suite is not chosen, but for
    GLUE's, which the default names; and where none is left of suites that have some.
    """
    for name in tasks:
        if name in PUBLISHED and (suite := suite_of(name).name) not in ("glue", *suites):
            raise ConfigError(f"config: 'sweep.tasks' has {name}, but 'sweep.suites' lacks {suite}; add it there")
    unchosen = {name for suite in SUITES.values() if suite.name not in suites for name in suite.tasks}
    chosen = [name for name in tasks if name not in unchosen]
    whole = [SUITES[name].tasks for name in suites if name != "glue" and SUITES[name].tasks.keys().isdisjoint(chosen)]
    fine_tuned = [*chosen, *(name for rows in whole for name in rows)]
    if not fine_tuned and any(SUITES[name].tasks for name in suites):
        raise ConfigError("config: 'sweep.suites' has none of the tasks of 'sweep.tasks'; add their suite")
    return fine_tuned


def tasks_of_suite(suite: str, tasks: list[str]) -> list[str]:
    """Those of `tasks` that are reported with a suite: the user's own with GLUE's."""
    return [name for name in tasks if suite_of(name).name == suite]


def columns_of(task: str) -> tuple[str, ...]:
    """The score columns of a task: of one of the user's own its name."""
    return tuple(PUBLISHED[task].scores.values()) if task in PUBLISHED else (task,)


# Tasks of the user's own.


class Columns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is read of the files of a task of the user's own, and how it is scored."""

    columns: Annotated[list[str], Meta(min_length=1, max_length=2)]  # of text
    metric: Metric | Annotated[list[Metric], Meta(min_length=1)]  # of several, the mean is the score
    label: str = "label"  # its column
    labels: Annotated[list[str | int | bool], Meta(min_length=2)] | None = None  # class names
    problem_type: Literal["classification", "regression"] = "classification"


class CustomRows(Columns, frozen=True, kw_only=True):
    """A task of the user's own, whose files count by their content."""

    files: dict[str, File]  # by split


class CustomTask(Columns, frozen=True, kw_only=True):
    """A task of the user's own in the configuration: its files, and what to read of them."""

    train: str
    validation: str

    @property
    def files(self) -> dict[str, File]:
        """Its files by split, whose content is not looked at."""
        return {"train": File(self.train), "validation": File(self.validation)}

    def digested(self) -> CustomRows:
        """The same with the digests of its files; MissingInputError where one is absent."""
        files = {split: File(file.path, known_sha256(file.path)) for split, file in self.files.items()}
        return CustomRows(files=files, **{name: getattr(self, name) for name in Columns.__struct_fields__})


def tasks_of(custom: Mapping[str, CustomTask | CustomRows]) -> dict[str, Task]:
    """All tasks, the user's own among them; ConfigError as `custom_task`."""
    return {**PUBLISHED, **{name: custom_task(name, definition) for name, definition in custom.items()}}


def custom_task(name: str, definition: CustomTask | CustomRows) -> Task:
    """A task of the user's own.

    ConfigError for a name that tables have already, for labels that are missing or repeated, and for a metric that does
    not fit them.
    """
    key, labels = f"config: 'tasks.{name}'", tuple(map(label_name, definition.labels or ()))
    metrics = [definition.metric] if isinstance(definition.metric, str) else definition.metric
    taken = {
        *SUITES,
        *PUBLISHED,
        *COLUMNS_OF_TABLES,
        *(column for suite in SUITES.values() for column in suite.columns),
    }
    if name in taken or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise ConfigError(
            f"config: 'tasks' has '{name}', which is a task or column of this project or has more than letters, "
            "digits, '_' and '-'; choose another name"
        )
    if (definition.problem_type == "regression") == bool(labels):
        raise ConfigError(
            f"{key} has {'labels and' if labels else 'no labels, but not'} problem_type: regression; choose one"
        )
    if len(set(labels)) < len(labels):
        raise ConfigError(
            f"{key}: 'labels' has one twice ({', '.join(labels)}); keep one of them, or write them in quotes: YAML "
            "reads no, off and false as one truth value, and 1 and 01 as one number"
        )
    if definition.label in definition.columns:
        raise ConfigError(f"{key}: 'columns' has {definition.label}, the column of labels; name columns of text")
    fitting = METRICS_OF_CLASSES if labels else METRICS_OF_GRADES
    for metric in metrics:
        if metric not in fitting or (metric == "f1" and len(labels) != 2):
            raise ConfigError(f"{key}: 'metric' is {metric}, which does not fit {len(labels)} labels; choose another")
    return Task(
        name,
        columns=("sentence",) if len(definition.columns) == 1 else ("sentence1", "sentence2"),
        labels=labels,
        head="classes" if labels else "grades",
        metrics=tuple(metrics),
        files=definition.files,
        custom_columns=(*definition.columns, definition.label),
    )


def label_name(label: str | int | bool) -> str:
    """The name of a label of the configuration, where YAML reads the words no and yes as truth values."""
    return ("no", "yes")[label] if isinstance(label, bool) else str(label)
