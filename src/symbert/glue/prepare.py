"""From texts to token ids, once for all models and seeds: rows of tasks, noisy and out-of-domain sets, minimal pairs.

A row of a task is [CLS] a [SEP] or [CLS] a [SEP] b [SEP], or as the tokenizer of a foreign model has it.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from symbert.configuration import PairLimits, RobustnessSettings, TaskLimits
from symbert.draws import mix
from symbert.errors import ConfigError, DataError
from symbert.files import publish
from symbert.foreign import Tokenizer as ForeignTokenizer
from symbert.glue.blimp import PAIRS_OF_PARADIGM, PARADIGMS, published_pairs
from symbert.glue.challenges import challenges_for
from symbert.glue.encoder import Encoder, encoder_of
from symbert.glue.forms import TEXTS, TRUTH, formed
from symbert.glue.metrics import unmeasurable
from symbert.glue.noise import name_of_set, noisy
from symbert.glue.sources import (
    STAND_IN,
    read_challenge,
    read_published,
    read_split,
    refuse_shared_texts,
    tell_shared,
)
from symbert.glue.squad import HELD_OUT, hold_out, tokenise_questions
from symbert.glue.tasks import CustomRows, Task, published_split, task_named, tasks_of
from symbert.sources import located, verified
from symbert.steps import RESULTS, File, Step, read_step

METADATA = b"symbert"  # key of the metadata of a file
ROWS_AT_ONCE = 2_000
ROW_GROUP = 2**28  # bytes from which rows are written and no longer held; of all tasks ReCoRD alone has more
IDS, TYPES = pa.list_(pa.int32()), pa.list_(pa.int8())  # of the columns input_ids and token_type_ids
SENTENCES = ("sentence_good", "sentence_bad")  # of a minimal pair
PAIRS = pa.schema(dict.fromkeys((*SENTENCES, "UID"), pa.string()))

Counts = dict[str, int]


class PrepareTasks(Step, frozen=True):
    """Token ids of the rows of a suite's tasks, whichever of them are asked for, or of a task of the user's own."""

    suite: str
    limits: TaskLimits
    vocabulary: File | None = None  # of the models that are pre-trained here
    tokenizer: ForeignTokenizer | None = None  # of a foreign model, in its place
    source: File | None = None  # the folder of the published files
    custom: dict[str, CustomRows] = msgspec.field(default_factory=dict)  # in place of the suite's tasks

    @property
    def name(self) -> str:
        """The suite, or the task of the user's own."""
        return next(iter(self.custom), self.suite)

    @property
    def folder(self) -> str:
        """Where the rows lie."""
        return f"{RESULTS}/tasks/{self.name}-{self.key}"

    def task(self, name: str) -> Task:
        """One of its tasks; UsageError for an unknown one."""
        return task_named(name, tasks_of(self.custom))

    def file(self, task: str) -> str:
        """The rows of a task."""
        return f"{self.folder}/{task}.parquet"

    def reads_for(self, task: str) -> list[str]:
        """The paths that the job of a task waits for."""
        row = self.task(task)
        custom = [row.files[split].path for split in row.splits if split in row.files]
        published = [f"{self.source.path}/{published_split(row, split).path}" for split in row.splits if self.source]
        return [*map(located, custom or published), *tokenizer_files(self)]


class PrepareRobustness(Step, frozen=True):
    """Token ids of the noisy and out-of-domain sets of tasks."""

    clean: PrepareTasks  # whose evaluation rows are changed
    chosen: RobustnessSettings
    root: File | None = None  # the folder of the out-of-domain sets

    @property
    def folder(self) -> str:
        """Where the rows lie."""
        return f"{RESULTS}/tasks/{self.clean.name}-robustness-{self.key}"

    def task(self, name: str) -> Task:
        """One of its tasks; UsageError for an unknown one."""
        return self.clean.task(name)

    def file(self, task: str) -> str:
        """The sets of a task."""
        return f"{self.folder}/{task}.parquet"

    def reads_for(self, task: str) -> list[str]:
        """The paths that the job of a task waits for."""
        return self.clean.reads_for(task)


class PreparePairs(Step, frozen=True):
    """Token ids of BLiMP's minimal pairs."""

    limits: PairLimits
    source: File  # the folder of the published files
    vocabulary: File | None = None  # of the models that are pre-trained here
    tokenizer: ForeignTokenizer | None = None  # of a foreign model, in its place

    @property
    def folder(self) -> str:
        """Where the pairs lie."""
        return f"{RESULTS}/tasks/blimp-{self.key}"

    def file(self, task: str = "blimp") -> str:
        """The pairs."""
        return f"{self.folder}/{task}.parquet"

    def reads_for(self, task: str = "blimp") -> list[str]:
        """The paths that the job waits for."""
        published = [f"{self.source.path}/{published_pairs(paradigm).path}" for paradigm in PARADIGMS]
        return [*map(located, published), *tokenizer_files(self)]


def tokenizer_files(step: PrepareTasks | PreparePairs) -> list[str]:
    """The paths of what cuts texts into tokens."""
    files = step.tokenizer.files.values() if step.tokenizer else [step.vocabulary]
    return [located(file.path) for file in files]


class TaskFacts(msgspec.Struct, kw_only=True):
    """The facts of a task's rows, in the metadata of their file."""

    task: str
    stand_in: bool  # whether rows only have the shape of the task
    rows: Counts  # by split
    official_rows: Counts  # by split, as published
    moved: Counts  # by split: texts whose published places are others (WSC)
    partial: bool  # whether `rows` are other than `official_rows`
    seen: dict[str, tuple[int, int]]  # by score column: rows with the token ids of a training row, and all rows


class SetFacts(msgspec.Struct, kw_only=True):
    """The facts of a noisy or an out-of-domain set."""

    kind: str  # noise | out-of-domain
    name: str  # of the noise or of the challenge set
    share: float | None  # of the letters that are struck
    column: str | None  # score column of the evaluation split that was changed
    metrics: tuple[str, ...]  # their mean is the score
    classes: tuple[int, ...] | None  # the label that each predicted class counts as; None: itself
    rows: int
    official_rows: int
    partial: bool


class RobustnessFacts(msgspec.Struct, kw_only=True):
    """The facts of a task's sets, in the metadata of their file."""

    task: str
    stand_in: bool
    sets: dict[str, SetFacts]


class PairFacts(msgspec.Struct, kw_only=True):
    """The facts of minimal pairs, in the metadata of their file."""

    task: str
    stand_in: bool
    mask: int  # the id of the mask
    partial: bool


Facts = TypeVar("Facts", TaskFacts, RobustnessFacts, PairFacts)
Sets = Iterator[tuple[str, SetFacts, pa.Table]]  # name, description, rows of text of each set


def prepare_task(
    folder: Annotated[Path, "folder in results/tasks/, with its settings.json"],
    task: Annotated[str, "name of the task"],
    /,
    allow_partial: Annotated[bool, "accept another number of rows than published"] = False,
) -> None:
    """Write <task>.parquet in a folder of results/tasks/, as its settings.json says: token ids of a task's rows, of its
    noisy and out-of-domain sets, or of minimal pairs. `metadata_of` reads what else the file says.

    DataError where a published file is damaged or of another shape, a file of the user's own was changed since the
    start, or there are not as many rows as published and `allow_partial` is false.
    """
    step = read_step(folder, PrepareTasks | PrepareRobustness | PreparePairs)
    output = folder / f"{task}.parquet"
    if isinstance(step, PreparePairs):
        prepare_pairs(output, step, allow_partial)
    elif isinstance(step, PrepareRobustness):
        prepare_sets(output, step, step.task(task), allow_partial)
    else:
        prepare_rows(output, step, step.task(task), allow_partial)


def prepare_rows(output: Path, step: PrepareTasks, task: Task, allow_partial: bool) -> None:
    """Write split, input_ids, token_type_ids, label of a task, as far as the limits want rows.

    Where rows are answers to a question, the column `group` is its number and `credit` the worth of the answer.
    Where answers are spans of contexts, it has the columns of `symbert.glue.squad`, and a split of rows held out.
    """
    encoder, max_length = encoder_of(step.vocabulary, step.tokenizer), step.limits.max_length
    available = {split: read_split(task, split, step.source) for split in task.splits}
    if task.files:
        refuse_shared_texts(task, *available.values())
    official = task.official_rows or {split: rows.num_rows for split, rows in available.items()}
    for split, rows in available.items():
        check_complete(f"{task.name}: split '{split}'", rows.num_rows, official[split], allow_partial)
    used = {split: sample(task, split, rows, step.limits) for split, rows in available.items()}
    counts = {split: rows.num_rows for split, rows in used.items()}
    metadata = TaskFacts(
        task=task.name,
        stand_in=any(map(is_stand_in, available.values())),
        rows=counts,
        official_rows=official,
        partial=counts != official,
        moved={},
        seen={},
    )
    if task.head == "spans":
        used["train"], used[HELD_OUT] = hold_out(used["train"])
        prepared = (tokenise_questions(split, rows, encoder, max_length) for split, rows in used.items())
    else:
        prepared = _tokenised(task, used, encoder, max_length, metadata.moved)
    write_prepared(output, _counted(task, prepared, metadata.seen), metadata)


def _tokenised(
    task: Task, used: dict[str, pa.Table], encoder: Encoder, max_length: int, moved: Counts
) -> Iterator[pa.Table]:
    """The prepared rows of each split, some at a time; `moved` counts those whose published places are others."""
    for split, rows in used.items():
        for part in formed(task, split, rows):
            if "moved" in part.column_names:
                moved[split] = moved.get(split, 0) + pc.sum(part["moved"]).as_py()
            yield named("split", split, tokenise(task, part, encoder, max_length))


def _counted(task: Task, prepared: Iterable[pa.Table], seen: dict[str, tuple[int, int]]) -> Iterator[pa.Table]:
    """The prepared rows, training first; `seen` counts those scored whose token ids a training row has, and all.

    DataError where nothing can be measured on a split, and as `tell_shared`.
    """
    trained: set[int] = set()
    labels: dict[str, list[Any]] = {split: [] for split in task.scores}
    for table in prepared:
        split, rows = table["split"][0].as_py(), _hashes(table)
        if split == "train":
            trained.update(rows)
        elif column := task.scores.get(split):
            counted = seen.get(column, (0, 0))
            seen[column] = (counted[0] + sum(row in trained for row in rows), counted[1] + len(rows))
            labels[split] += table["label"].to_pylist() if task.head != "spans" else []
        yield table
    for split, column in task.scores.items():
        place = task.files[split].path if task.files else f"{task.name}: split '{split}'"
        if task.head != "spans":
            check_measurable(place, task.metrics, np.array(labels[split]))
        tell_shared(task, place, *seen[column], "token ids")


def _hashes(table: pa.Table) -> list[int]:
    """A number for the token ids of each row."""
    ids = table["input_ids"].combine_chunks()
    return [hash(row.tobytes()) for row in np.split(ids.flatten().to_numpy(), np.cumsum(ids.value_lengths())[:-1])]


def prepare_sets(output: Path, step: PrepareRobustness, task: Task, allow_partial: bool) -> None:
    """Write set, input_ids, token_type_ids, label of all noisy and out-of-domain sets that ask a task's classifier.

    Noise changes the evaluation rows that `prepare_rows` takes. A task without sets has a file without rows.
    """
    encoder, max_length = encoder_of(step.clean.vocabulary, step.clean.tokenizer), step.clean.limits.max_length
    available = {split: read_split(task, split, step.clean.source) for split in task.scores}
    first = next(iter(available.values()))
    metadata = RobustnessFacts(task=task.name, stand_in=is_stand_in(first), sets={})
    texts = {"": first.slice(0, 0)}
    for name, facts_of_set, rows in chain(_noise(task, available, step), _challenges(task, step, allow_partial)):
        check_measurable(f"the set '{name}'", facts_of_set.metrics, rows["label"].to_numpy())
        metadata.sets[name], texts[name] = facts_of_set, rows
    prepared = (named("set", name, tokenise(task, rows, encoder, max_length)) for name, rows in texts.items())
    write_prepared(output, prepared, metadata)


def _noise(task: Task, splits: dict[str, pa.Table], step: PrepareRobustness) -> Sets:
    for split, column in task.scores.items():
        rows = sample(task, split, splits[split], step.clean.limits)
        official = task.official_rows.get(split, len(splits[split]))
        for kind, share in product(step.chosen.noise_kinds, step.chosen.noise):
            metadata = SetFacts(
                kind="noise",
                name=kind,
                share=share,
                column=column,
                metrics=task.metrics,
                classes=None,
                rows=len(rows),
                official_rows=official,
                partial=len(rows) != official,
            )
            yield name_of_set(kind, share, column), metadata, _struck(task, split, rows, kind, share)


def _struck(task: Task, split: str, rows: pa.Table, kind: str, share: float) -> pa.Table:
    """Rows with noise in each of their texts, another in each; it follows from split and `idx`."""
    for place, column in enumerate(task.columns):
        numbers = task.splits.index(split), rows["idx"].to_numpy(), place
        texts = noisy(rows[column].to_pylist(), kind, share, *numbers)
        rows = rows.set_column(rows.column_names.index(column), column, pa.array(texts, pa.string()))
    return rows


def _challenges(task: Task, step: PrepareRobustness, allow_partial: bool) -> Sets:
    for challenge in challenges_for(task.name, step.chosen.sets):
        available, official = read_challenge(challenge, Path(step.root.path)), challenge.official_rows
        check_complete(f"the set '{challenge.name}'", len(available), official, allow_partial)
        rows = spread(available, step.clean.limits.max_evaluation_examples, 0)
        metadata = SetFacts(
            kind="out-of-domain",
            name=challenge.name,
            share=None,
            column=challenge.column,
            metrics=challenge.metrics,
            classes=challenge.classes,
            rows=len(rows),
            official_rows=official,
            partial=len(rows) != official,
        )
        yield challenge.name, metadata, rows


def prepare_pairs(output: Path, step: PreparePairs, allow_partial: bool) -> None:
    """Write paradigm, and token ids of sentence_good and sentence_bad, of BLiMP's pairs.

    ConfigError for a pair that `max_length` makes equal, and for a tokenizer without a mask.
    """
    encoder, max_length = encoder_of(step.vocabulary, step.tokenizer), step.limits.max_length
    if not encoder.can_mask:
        raise ConfigError(
            f"{step.tokenizer.folder}: its tokenizer has no mask, or not one special token on each side of a sentence, "
            "so its model judges no pairs; leave 'blimp' out of 'sweep.suites'"
        )
    tables, stand_in = [], False
    for draw, paradigm in enumerate(PARADIGMS):
        published = published_pairs(paradigm)
        file = verified(f"{step.source.path}/{published.path}")
        available = read_published(file, published.location, PAIRS)
        if strangers := set(available["UID"].to_pylist()) - {paradigm}:
            raise DataError(f"{published.location}: has pairs of {min(strangers)}, expected {paradigm}; get it again")
        check_complete(f"blimp: {paradigm}", available.num_rows, PAIRS_OF_PARADIGM, allow_partial)
        rows = spread(available, step.limits.max_evaluation_examples, draw)
        (good, _), (bad, _) = (encoder.rows(rows[name].to_pylist(), max_length) for name in SENTENCES)
        for place, ids in enumerate(good):
            if ids == bad[place] and len(ids) == max_length:
                raise ConfigError(
                    f"config: 'suites.blimp.max_length' is {max_length}, which cuts the two sentences of a pair "
                    f"to the same tokens ({paradigm}: '{rows[SENTENCES[0]][place]}'); raise it"
                )
        columns = {name: pa.array(ids, IDS) for name, ids in zip(SENTENCES, (good, bad), strict=True)}
        tables.append(named("paradigm", paradigm, pa.table(columns)))
        stand_in |= is_stand_in(available)
    is_partial = sum(table.num_rows for table in tables) != PAIRS_OF_PARADIGM * len(PARADIGMS)
    write_prepared(output, tables, PairFacts(task="blimp", stand_in=stand_in, partial=is_partial, mask=encoder.mask))


def named(column: str, value: str, rows: pa.Table) -> pa.Table:
    """Rows with a first column that has one value."""
    return rows.add_column(0, column, pa.array([value] * len(rows), pa.string()))


def is_stand_in(rows: pa.Table) -> bool:
    """Whether published rows only have the shape of a task."""
    return STAND_IN in (rows.schema.metadata or {})


def write_prepared(output: Path, tables: Iterable[pa.Table], metadata: msgspec.Struct) -> None:
    """Publish a file of all rows, with metadata.

    Tables are made while the file is written, and may add to the metadata: no more are held than a row group has.
    """
    tables = iter(tables)
    first = next(tables)
    schema = first.schema.with_metadata(None)
    with publish(output) as temporary, pq.ParquetWriter(temporary, schema, write_page_checksum=True) as writer:
        held: list[pa.Table] = []
        for table in chain([first], tables):
            held.append(table)
            if sum(part.nbytes for part in held) >= ROW_GROUP:
                writer.write_table(pa.concat_tables(held))
                held = []
        if held:
            writer.write_table(pa.concat_tables(held))
        writer.add_key_value_metadata({METADATA: json.dumps(msgspec.to_builtins(metadata))})


def metadata_of(prepared: Path, kind: type[Facts]) -> Facts:
    """The facts in the metadata of a prepared file; DataError names a file without such."""
    try:
        return msgspec.json.decode((pq.read_metadata(prepared).metadata or {})[METADATA], type=kind)
    except (pa.ArrowInvalid, KeyError, ValueError):
        raise DataError(f"{prepared}: no prepared rows, or damaged; delete it and run again") from None


def sample(task: Task, split: str, rows: pa.Table, limits: TaskLimits) -> pa.Table:
    """At most as many rows of a split as the limits allow, in file order; whole questions where a metric wants all
    answers to a question."""
    limit = limits.max_examples if split == "train" else limits.max_evaluation_examples
    is_whole = split != "train" and "whole_groups" in task.metrics and limit is not None
    return (_whole_questions if is_whole else spread)(rows, limit, task.splits.index(split))


def _whole_questions(rows: pa.Table, limit: int, draw: int) -> pa.Table:
    """All answers to as many of MultiRC's questions as have at most `limit` rows, but to one at least."""
    index = rows["idx"].combine_chunks()
    numbers = np.stack([index.field(name).to_numpy() for name in ("paragraph", "question")])
    _, question, counts = np.unique(numbers, axis=1, return_inverse=True, return_counts=True)
    order = np.argsort(mix(draw, np.arange(len(counts))), kind="stable")
    chosen = order[: max(1, np.searchsorted(np.cumsum(counts[order]), limit, side="right"))]
    return rows.filter(pa.array(np.isin(question.ravel(), chosen)))


def spread(rows: pa.Table, limit: int | None, draw: int) -> pa.Table:
    """At most `limit` rows, in file order; another number `draw` chooses others.

    They are chosen by a hash of the row's place, because published files may be sorted by label.
    """
    if limit is None or limit >= rows.num_rows:
        return rows
    drawn = mix(draw, np.arange(rows.num_rows))
    return rows.take(np.sort(np.argsort(drawn, kind="stable")[:limit]))


def tokenise(task: Task, rows: pa.Table, encoder: Encoder, max_length: int) -> pa.Table:
    """Columns input_ids, token_type_ids and label for rows of text, as `symbert.glue.forms.formed` gives them."""
    ids, types = [], []
    names = [name for name in (TEXTS if task.form else task.columns) if name in rows.column_names]
    for batch in rows.select(names).to_batches(max_chunksize=ROWS_AT_ONCE):
        texts = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        ids_of_batch, types_of_batch = encoder.rows([row if len(row) == 2 else row[0] for row in texts], max_length)
        ids.append(pa.array(ids_of_batch, IDS))
        types.append(pa.array(types_of_batch, TYPES))
    columns = {"input_ids": pa.chunked_array(ids, IDS), "token_type_ids": pa.chunked_array(types, TYPES)}
    return pa.table({**columns, **{name: rows[name] for name in TRUTH if name in rows.column_names}})


def check_complete(name: str, rows: int, official: int, allow_partial: bool) -> None:
    """DataError when rows are not as many as published and that is not allowed, or when there are none."""
    if rows == 0 or (rows != official and not allow_partial):
        raise DataError(
            f"{name} has {rows:,} rows, expected {official:,} as its publisher has; "
            + ("set 'glue.allow_partial: true' to go on with these" if rows else "the source lacks this split")
        )


def check_measurable(place: str, metrics: Iterable[str], labels: np.ndarray) -> None:
    """DataError, which names a file or split, where a metric of these labels is the same whatever is predicted."""
    for metric in metrics:
        if reason := unmeasurable(metric, labels):
            raise DataError(
                f"{place}: {reason}, so {metric} measures nothing; give rows of other labels, another metric, or a "
                "higher 'max_evaluation_examples'"
            )
