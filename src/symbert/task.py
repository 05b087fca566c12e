"""What is known of a task and of a suite of tasks, whatever it is: the classes of the rows of `symbert.suites`."""

from dataclasses import dataclass, field

HIGHEST_GRADE = 5  # of similarity; the lowest is 0
CHOICES = 2  # of which one is right


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
    columns: tuple[str, ...]  # text: one sentence, or a pair; of a task with a form, what that makes texts of
    labels: tuple[str, ...]  # class names by label; empty: the label is a grade from 0 to HIGHEST_GRADE
    metrics: tuple[str, ...]  # their mean is the score: keys of symbert.glue.metrics.METRICS
    scores: dict[str, str]  # score column of each evaluation split
    official_rows: dict[str, int] = field(default_factory=dict)  # of each split; none: nobody has published it
    folder: str = ""  # of GLUE's original files
    layout: Layout | None = None  # of the files in that folder, or of the user's; None: the columns, and `label`
    files: dict[str, str] = field(default_factory=dict)  # of a task of the user's own, by split
    folder_at_hub: str = ""  # none: its name
    head: str = "classes"  # what a model is asked: key of symbert.glue.heads.HEADS
    form: str = ""  # the function of symbert.glue.forms that makes of a row what is read; none: the columns are that
    details: dict[str, str] = field(default_factory=dict)  # further columns at the hub; types of symbert.glue.sources
    index: str = "int32"  # the type of the column idx at the hub; none: it has no such column
    has_label: bool = True  # the hub has a column of labels; none: the form makes them
    row_tokens: int = 36  # without padding, about: padding GLUE's training rows to 128 computes 3.6 times as many
    rows_of_row: int = 1  # that the form makes of one, about

    @property
    def num_labels(self) -> int:
        """Outputs: one for a grade, or for each of several choices."""
        return 1 if self.head in ("grades", "choices") else len(self.labels)

    @property
    def rows_of_example(self) -> int:
        """Rows that are drawn together, and that a batch counts as one: all choices, of which one is right."""
        return CHOICES if self.head == "choices" else 1

    @property
    def has_contexts(self) -> bool:
        """Whether what is asked for is a span of a context, or none: `symbert.glue.spans`."""
        return self.head == "spans"

    @property
    def highest_label(self) -> int:
        """The last class, or the highest grade; the lowest is 0."""
        return len(self.labels) - 1 if self.labels else HIGHEST_GRADE

    @property
    def splits(self) -> tuple[str, ...]:
        """Training first, then the splits that are scored; the unlabelled test splits are never read."""
        return ("train", *self.scores)


@dataclass(frozen=True)
class Suite:
    """Tasks of one publisher: they are fine-tuned under one protocol, and their mean is one score.

    The protocol is the section `glue` of the configuration, but for the keys that the section `suites` has of this one.
    """

    name: str
    title: str
    repository: str  # of the hub
    tasks: dict[str, Task]  # by name
    bytes: int  # of its tables as published
    revision: str = ""  # commit of the repository; none: `glue.revision`
    note: str = ""  # what the caption of its scores says of them

    @property
    def columns(self) -> tuple[str, ...]:
        """The score columns of its tasks."""
        return tuple(column for task in self.tasks.values() for column in task.scores.values())

    @property
    def score(self) -> str:
        """The name of the mean of its columns."""
        return f"{self.name}_score"

    @property
    def rows_section(self) -> str:
        """The section of settings that its rows are made by; that of its fine-tuning is called as the suite."""
        return "task" if self.name == "glue" else f"{self.name}_task"
