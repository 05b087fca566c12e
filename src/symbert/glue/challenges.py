"""Challenge sets: rows of another origin than a task's, for the classifier that was fine-tuned on it. One row per set.

HANS (McCoy et al., ACL 2019): entailments that shallow heuristics get wrong. AX, GLUE's diagnostics (Wang et al.,
ICLR 2019): phenomena of language. AdvGLUE (Wang et al., NeurIPS 2021): evaluation rows of GLUE, changed to mislead;
its publishers score it with the metrics of the task: for QQP the mean of accuracy and F1.
"""

from dataclasses import dataclass

from symbert.glue.tasks import GLUE


@dataclass(frozen=True)
class Challenge:
    """A challenge set: the task whose classifier it asks, its files, labels and metrics."""

    collection: str  # the word of `glue.robustness.sets` that asks for it
    name: str
    task: str
    labels: tuple[str, ...]  # class names by label
    metrics: tuple[str, ...]  # their mean is the score
    official_rows: int
    publisher: str
    file: str
    classes: tuple[int, ...] | None = None  # the label that each class of the task counts as; None: itself
    column: str | None = None  # score column of the evaluation split that was changed


HANS = Challenge(
    "hans",
    "hans",
    "mnli",
    ("entailment", "non-entailment"),
    ("accuracy",),
    30_000,
    "huggingface.co/datasets/jhu-cogsci/hans (split validation)",
    "hans.parquet",
    classes=(0, 1, 1),
)
AX = Challenge(
    "ax",
    "ax",
    "mnli",
    GLUE["mnli"].labels,
    ("matthews",),
    1_104,
    "gluebenchmark.com/diagnostics, with labels (the hub's copy has none), as docs/glue.md says",
    "ax.parquet",
)
ADVERSARIAL = (  # each with the score column of the rows that were changed, and their number
    *(("sst2", "sst2", 148), ("qqp", "qqp", 78), ("mnli", "mnli_matched", 121)),
    *(("mnli_mismatched", "mnli_mismatched", 162), ("qnli", "qnli", 148), ("rte", "rte", 81)),
)


def _adversarial(name: str, column: str, rows: int) -> Challenge:
    task = GLUE[name.partition("_")[0]]
    return Challenge(
        "advglue",
        f"adv_{name}",
        task.name,
        task.labels,
        task.metrics,
        rows,
        "huggingface.co/datasets/AI-Secure/adv_glue",
        f"advglue/adv_{name}.parquet",
        column=column,
    )


CHALLENGES = {row.name: row for row in (HANS, AX, *(_adversarial(*row) for row in ADVERSARIAL))}
COLLECTIONS = tuple(dict.fromkeys(row.collection for row in CHALLENGES.values()))


def challenges_for(task: str, collections: list[str]) -> list[Challenge]:
    """The sets of the named collections that ask a task's classifier."""
    return [row for row in CHALLENGES.values() if row.task == task and row.collection in collections]
