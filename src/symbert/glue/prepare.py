"""From texts to token ids, once for all models and seeds: rows of tasks, noisy and out-of-domain sets, minimal pairs.

A row of a task is [CLS] a [SEP] or [CLS] a [SEP] b [SEP].
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tokenizers import Tokenizer

from symbert.configuration import MinimalPairSettings, RobustnessSettings, TaskSettings, settings_from
from symbert.corpus.wordpiece import SPECIAL_TOKENS, encoder
from symbert.draws import mix
from symbert.errors import ConfigError, DataError
from symbert.files import publish, read_json
from symbert.glue.blimp import PAIRS_OF_PARADIGM, PARADIGMS, published_pairs
from symbert.glue.challenges import challenges_for
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
from symbert.glue.tasks import Task, define, task_named
from symbert.sources import Config, verified

FACTS = b"symbert"  # key of the metadata of a file
ROWS_AT_ONCE = 2_000
ROW_GROUP = 2**28  # bytes from which rows are written and no longer held; of all tasks ReCoRD alone has more
IDS, TYPES = pa.list_(pa.int32()), pa.list_(pa.int8())  # of the columns input_ids and token_type_ids
SENTENCES = ("sentence_good", "sentence_bad")  # of a minimal pair
PAIRS = pa.schema(dict.fromkeys((*SENTENCES, "UID"), pa.string()))

Counts = dict[str, int]
Sets = Iterator[tuple[str, dict[str, Any], pa.Table, int]]  # name, facts, rows of text of each set, and rows published


def prepare_task(file: Path, /, allow_partial: bool = False) -> None:
    """Write results/tasks/{rows}/{task}.parquet, as settings.json beside it says: token ids of a task's rows, of its
    noisy and out-of-domain sets, or of minimal pairs. The file's metadata has facts (see `facts_of`).

    DataError where a published file is damaged or of another shape, a file of the user's own was changed since the
    start, or there are not as many rows as published and `allow_partial` is false.
    """
    settings = read_json(file.parent / "settings.json", {"kind": str, "vocabulary": str, "max_length": int})
    define_own(settings)
    kind, write = KINDS[settings["kind"]]
    chosen = {key: settings[key] for key in kind.__struct_fields__ if key in settings}
    write(file, settings, settings_from({**chosen, "allow_partial": allow_partial}, kind, str(file.parent)))


def define_own(settings: Config) -> Config:
    """Make the tasks of the user's own known that the settings of a folder of rows define; gives them."""
    own = settings.get("own", {})
    for name, definition in own.items():
        define(name, definition)
    return own


def prepare_rows(file: Path, settings: Config, wanted: TaskSettings) -> None:
    """Write split, input_ids, token_type_ids, label of a task, as far as the settings want rows.

    Where rows are answers to a question, the column `group` is its number and `credit` the worth of the answer.
    Where answers are spans of contexts, it has the columns of `symbert.glue.squad`, and a split of rows held out.
    Facts are counts of all rows too: `moved`, by split, of texts whose published places are others (WSC), and `seen`,
    by score column, of [rows with the token ids of a training row, rows].
    """
    task, vocabulary = task_named(file.stem), verified(settings["vocabulary"])
    available = {split: read_split(task, split, settings) for split in task.splits}
    if task.files:
        refuse_shared_texts(task, *available.values())
    official = task.official_rows or {split: rows.num_rows for split, rows in available.items()}
    for split, rows in available.items():
        check_complete(f"{task.name}: split '{split}'", rows.num_rows, official[split], wanted)
    used = {split: sample(task, split, rows, wanted) for split, rows in available.items()}
    counts = {split: rows.num_rows for split, rows in used.items()}
    stand_in = any(map(is_stand_in, available.values()))
    facts = {"task": task.name, "stand_in": stand_in, "rows": counts, "official_rows": official, "moved": {}}
    if task.head == "spans":
        used["train"], used[HELD_OUT] = hold_out(used["train"])
        prepared = (
            tokenise_questions(split, rows, encoder(vocabulary), wanted.max_length) for split, rows in used.items()
        )
    else:
        prepared = _tokenised(task, used, pair_encoder(vocabulary, wanted.max_length), facts["moved"])
    facts |= {"partial": counts != official, "seen": {}}
    write_prepared(file, _counted(task, prepared, facts["seen"]), facts)


def _tokenised(task: Task, used: dict[str, pa.Table], tokenizer: Tokenizer, moved: Counts) -> Iterator[pa.Table]:
    """The prepared rows of each split, some at a time; `moved` counts those whose published places are others."""
    for split, rows in used.items():
        for part in formed(task, split, rows):
            if "moved" in part.column_names:
                moved[split] = moved.get(split, 0) + pc.sum(part["moved"]).as_py()
            yield named("split", split, tokenise(task, part, tokenizer))


def _counted(task: Task, prepared: Iterable[pa.Table], seen: dict[str, list[int]]) -> Iterator[pa.Table]:
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
            both = seen.setdefault(column, [0, 0])
            seen[column] = [both[0] + sum(row in trained for row in rows), both[1] + len(rows)]
            labels[split] += table["label"].to_pylist() if task.head != "spans" else []
        yield table
    for split, column in task.scores.items():
        place = task.files.get(split, f"{task.name}: split '{split}'")
        if task.head != "spans":
            check_measurable(place, task.metrics, np.array(labels[split]))
        tell_shared(task, place, *seen[column], "token ids")


def _hashes(table: pa.Table) -> list[int]:
    """A number for the token ids of each row."""
    ids = table["input_ids"].combine_chunks()
    return [hash(row.tobytes()) for row in np.split(ids.flatten().to_numpy(), np.cumsum(ids.value_lengths())[:-1])]


def prepare_sets(file: Path, settings: Config, wanted: TaskSettings) -> None:
    """Write set, input_ids, token_type_ids, label of all noisy and out-of-domain sets that ask a task's classifier.

    Noise changes the evaluation rows that `prepare_rows` takes. Facts are the task, whether its rows are a `stand_in`,
    and of each set its `kind` (noise or out-of-domain), `name` (of the noise or of the challenge set), `share` of the
    letters that are struck, score `column` of the evaluation split that was changed, `metrics` (their mean is the
    score), `classes` (the label that each predicted class counts as; null: itself), `rows`, `official_rows` and whether
    it is `partial`. A task without sets has a file without rows.
    """
    task, chosen = task_named(file.stem), settings_from(settings["robustness"], RobustnessSettings, str(file.parent))
    tokenizer = pair_encoder(verified(settings["vocabulary"]), wanted.max_length)
    available = {split: read_split(task, split, settings) for split in task.scores}
    first, facts = next(iter(available.values())), {}
    texts = {"": first.slice(0, 0)}
    for name, description, rows, official in chain(
        _noise(task, available, wanted, chosen), _challenges(task, wanted, chosen)
    ):
        check_measurable(f"the set '{name}'", description["metrics"], rows["label"].to_numpy())
        counts = {"rows": len(rows), "official_rows": official, "partial": len(rows) != official}
        facts[name], texts[name] = {**description, **counts}, rows
    prepared = (named("set", name, tokenise(task, rows, tokenizer)) for name, rows in texts.items())
    write_prepared(file, prepared, {"task": task.name, "stand_in": is_stand_in(first), "sets": facts})


def _noise(task: Task, splits: dict[str, pa.Table], wanted: TaskSettings, chosen: RobustnessSettings) -> Sets:
    for split, column in task.scores.items():
        rows, official = sample(task, split, splits[split], wanted), task.official_rows.get(split, len(splits[split]))
        for kind, share in product(chosen.noise_kinds, chosen.noise):
            origin = {"kind": "noise", "name": kind, "share": share, "column": column}
            struck = _struck(task, split, rows, kind, share)
            yield (
                name_of_set(kind, share, column),
                {**origin, "metrics": task.metrics, "classes": None},
                struck,
                official,
            )


def _struck(task: Task, split: str, rows: pa.Table, kind: str, share: float) -> pa.Table:
    """Rows with noise in each of their texts, another in each; it follows from split and `idx`."""
    for place, column in enumerate(task.columns):
        numbers = task.splits.index(split), rows["idx"].to_numpy(), place
        texts = noisy(rows[column].to_pylist(), kind, share, *numbers)
        rows = rows.set_column(rows.column_names.index(column), column, pa.array(texts, pa.string()))
    return rows


def _challenges(task: Task, wanted: TaskSettings, chosen: RobustnessSettings) -> Sets:
    for challenge in challenges_for(task, chosen.sets):
        available = read_challenge(challenge, Path(chosen.root))
        check_complete(f"the set '{challenge.name}'", len(available), challenge.official_rows, wanted)
        origin = {"kind": "out-of-domain", "name": challenge.name, "share": None, "column": challenge.column}
        scored = {"metrics": challenge.metrics, "classes": challenge.classes}
        rows = spread(available, wanted.max_evaluation_examples, 0)
        yield challenge.name, {**origin, **scored}, rows, challenge.official_rows


def prepare_pairs(output: Path, settings: Config, wanted: MinimalPairSettings) -> None:
    """Write paradigm, and token ids of sentence_good and sentence_bad, of BLiMP's pairs.

    Facts are whether they are `partial`, or a `stand_in`, and the id of the mask. ConfigError for a pair that
    `max_length` makes equal.
    """
    tokenizer, tables = pair_encoder(verified(settings["vocabulary"]), wanted.max_length), []
    facts = {"task": "blimp", "stand_in": False, "mask": tokenizer.token_to_id(SPECIAL_TOKENS["mask"])}
    for draw, paradigm in enumerate(PARADIGMS):
        published = published_pairs(paradigm)
        file = verified(f"{settings['source']}/{published.path}")
        available = read_published(file, published.location, PAIRS)
        if strangers := set(available["UID"].to_pylist()) - {paradigm}:
            raise DataError(f"{published.location}: has pairs of {min(strangers)}, expected {paradigm}; get it again")
        check_complete(f"blimp: {paradigm}", available.num_rows, PAIRS_OF_PARADIGM, wanted)
        rows = spread(available, wanted.max_evaluation_examples, draw)
        good, bad = (
            [encoding.ids for encoding in tokenizer.encode_batch_fast(rows[name].to_pylist())] for name in SENTENCES
        )
        for place, ids in enumerate(good):
            if ids == bad[place] and len(ids) == wanted.max_length:
                raise ConfigError(
                    f"config: 'suites.blimp.max_length' is {wanted.max_length}, which cuts the two sentences of a pair "
                    f"to the same tokens ({paradigm}: '{rows[SENTENCES[0]][place]}'); raise it"
                )
        columns = {name: pa.array(ids, IDS) for name, ids in zip(SENTENCES, (good, bad), strict=True)}
        tables.append(named("paradigm", paradigm, pa.table(columns)))
        facts["stand_in"] |= is_stand_in(available)
    pairs = sum(table.num_rows for table in tables)
    write_prepared(output, tables, {**facts, "partial": pairs != PAIRS_OF_PARADIGM * len(PARADIGMS)})


KINDS = {
    "tasks": (TaskSettings, prepare_rows),
    "robustness": (TaskSettings, prepare_sets),
    "pairs": (MinimalPairSettings, prepare_pairs),
}


def named(column: str, value: str, rows: pa.Table) -> pa.Table:
    """Rows with a first column that has one value."""
    return rows.add_column(0, column, pa.array([value] * len(rows), pa.string()))


def is_stand_in(rows: pa.Table) -> bool:
    """Whether published rows only have the shape of a task."""
    return STAND_IN in (rows.schema.metadata or {})


def write_prepared(output: Path, tables: Iterable[pa.Table], facts: dict[str, Any]) -> None:
    """Publish a file of all rows, with facts in its metadata.

    Tables are made while the file is written, and may add to the facts: no more are held than a row group has.
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
        writer.add_key_value_metadata({FACTS: json.dumps(facts)})


def facts_of(prepared: Path) -> dict[str, Any]:
    """Facts in the metadata of a prepared file: of `prepare_rows` task, stand_in, rows and official_rows (by split),
    partial, moved and seen, or those of `prepare_sets` or `prepare_pairs`. DataError names a file without facts."""
    try:
        return json.loads((pq.read_metadata(prepared).metadata or {})[FACTS])
    except (pa.ArrowInvalid, KeyError, ValueError):
        raise DataError(f"{prepared}: no prepared rows, or damaged; delete it and run again") from None


def pair_encoder(vocabulary: Path, max_length: int) -> Tokenizer:
    """BERT's encoder of sentences and pairs; the longer sentence of a pair is cut first, from its end."""
    tokenizer = encoder(vocabulary)
    tokenizer.enable_truncation(max_length, strategy="longest_first")
    return tokenizer


def sample(task: Task, split: str, rows: pa.Table, settings: TaskSettings) -> pa.Table:
    """At most as many rows of a split as the settings allow, in file order; whole questions where a metric wants all
    answers to a question."""
    limit = settings.max_examples if split == "train" else settings.max_evaluation_examples
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


def tokenise(task: Task, rows: pa.Table, tokenizer: Tokenizer) -> pa.Table:
    """Columns input_ids, token_type_ids and label for rows of text, as `symbert.glue.forms.formed` gives them."""
    ids, types = [], []
    names = [name for name in (TEXTS if task.form else task.columns) if name in rows.column_names]
    for batch in rows.select(names).to_batches(max_chunksize=ROWS_AT_ONCE):
        texts = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        encodings = tokenizer.encode_batch_fast([row if len(row) == 2 else row[0] for row in texts])
        ids.append(pa.array([encoding.ids for encoding in encodings], IDS))
        types.append(pa.array([encoding.type_ids for encoding in encodings], TYPES))
    columns = {"input_ids": pa.chunked_array(ids, IDS), "token_type_ids": pa.chunked_array(types, TYPES)}
    return pa.table({**columns, **{name: rows[name] for name in TRUTH if name in rows.column_names}})


def check_complete(name: str, rows: int, official: int, settings: TaskSettings | MinimalPairSettings) -> None:
    """DataError when rows are not as many as published and the settings do not allow that, or when there are none."""
    if rows == 0 or (rows != official and not settings.allow_partial):
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
