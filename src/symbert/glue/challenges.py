"""Challenge sets: rows of another origin than a task's, for the classifier that was fine-tuned on it. One row per set.

HANS (McCoy et al., ACL 2019): entailments that shallow heuristics get wrong. AX, GLUE's diagnostics (Wang et al.,
ICLR 2019): phenomena of language. AdvGLUE (Wang et al., NeurIPS 2021): evaluation rows of GLUE, changed to mislead.
"""

from dataclasses import dataclass

from symbert.glue.tasks import GLUE, Layout, Task


@dataclass(frozen=True)
class Challenge:
    """A challenge set: the task whose classifier it asks, its files, labels and metrics."""

    name: str
    task: str
    labels: tuple[str, ...]  # class names by label
    metrics: tuple[str, ...]  # their mean is the score
    official_rows: int
    publisher: str
    files: tuple[str, ...]  # the first one found is read
    layout: Layout | None = None  # of a tab-separated file
    classes: tuple[int, ...] | None = None  # the label that each class of the task counts as; None: itself
    column: str | None = None  # score column of the evaluation split that was changed

    @property
    def collection(self) -> str:
        """The word of `glue.robustness.sets` that asks for it."""
        return next(name for name, rows in COLLECTIONS.items() if self in rows)


def _adversarial(task: str, official_rows: int, split: str = "validation", suffix: str = "") -> Challenge:
    """A set of AdvGLUE. Its publishers score it with the metrics of the task: for QQP the mean of accuracy and F1."""
    row, name = GLUE[task], f"adv_{task}{suffix}"
    return Challenge(
        name,
        task,
        row.labels,
        row.metrics,
        official_rows,
        "huggingface.co/datasets/AI-Secure/adv_glue",
        (f"advglue/{name}.parquet", f"AI-Secure/adv_glue/{name}/validation-00000-of-00001.parquet"),
        column=row.scores[split],
    )


COLLECTIONS: dict[str, tuple[Challenge, ...]] = {
    "hans": (
        Challenge(
            "hans",
            "mnli",
            ("entailment", "non-entailment"),
            ("accuracy",),
            30_000,
            "github.com/tommccoy1/hans",
            ("heuristics_evaluation_set.txt", "hans.parquet"),
            Layout(("sentence1", "sentence2"), "gold_label"),
            classes=(0, 1, 1),
        ),
    ),
    "ax": (
        Challenge(
            "ax",
            "mnli",
            GLUE["mnli"].labels,
            ("matthews",),
            1_104,
            "gluebenchmark.com/diagnostics, with labels (the hub's copy has none)",
            ("ax.parquet", "diagnostic-full.tsv"),
            Layout(("Premise", "Hypothesis"), "Label"),
        ),
    ),
    "advglue": (
        _adversarial("sst2", 148),
        _adversarial("qqp", 78),
        _adversarial("mnli", 121, "validation_matched"),
        _adversarial("mnli", 162, "validation_mismatched", "_mismatched"),
        _adversarial("qnli", 148),
        _adversarial("rte", 81),
    ),
}
CHALLENGES: dict[str, Challenge] = {row.name: row for rows in COLLECTIONS.values() for row in rows}


def challenges_for(task: Task, collections: list[str]) -> list[Challenge]:
    """The sets of the named collections that ask a task's classifier."""
    return [row for row in CHALLENGES.values() if row.task == task.name and row.collection in collections]
