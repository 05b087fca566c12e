"""From a task's text to token ids: [CLS] a [SEP] or [CLS] a [SEP] b [SEP], tokenised once for all models and seeds."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tokenizers import Encoding, Tokenizer

from symbert.corpus.wordpiece import encoder
from symbert.draws import mix
from symbert.errors import DataError
from symbert.files import publish
from symbert.glue.forms import TEXTS, TRUTH, formed
from symbert.glue.sources import STAND_IN, read_table
from symbert.glue.spans import HELD_OUT, hold_out, tokenise_questions
from symbert.settings import MinimalPairSettings, TaskSettings, read_settings
from symbert.task import Task
from symbert.tasks import task_named

FACTS = b"symbert"  # key of the schema's metadata
ROWS_AT_ONCE = 2_000
ROW_GROUP = 2**28  # bytes from which rows are written and no longer held; of all tasks ReCoRD alone has more
IDS, TYPES = pa.list_(pa.int32()), pa.list_(pa.int8())  # of the columns input_ids and token_type_ids


def prepare_task(raw: Path, task: str, vocabulary: Path, settings: Path, output: Path) -> None:
    """Write the parquet file split, input_ids, token_type_ids, label of a task, as far as the settings want rows.

    Where rows are answers to one question, its columns `group` and `credit` say to which, and what the answer is worth.
    Where answers are spans of contexts, it has the columns of `symbert.glue.spans`, and a split of rows held out.

    The schema's metadata says under `symbert` how many rows are used and official (see `facts_of`).
    Raises DataError when there are not as many rows as official and `glue.allow_partial` is false.
    """
    row, wanted = task_named(task), read_settings(settings, TaskSettings)
    table = read_table(raw, str(raw), f"delete it and run download-task for {task}")
    tokenizer = pair_encoder(vocabulary, wanted.max_length)
    available = {split: table.filter(pc.field("split") == split) for split in row.splits}
    official = row.official_rows or {split: rows.num_rows for split, rows in available.items()}
    for split, rows in available.items():
        check_complete(f"{task}: split '{split}'", rows.num_rows, official[split], wanted)
    used = {split: sample(row, split, rows, wanted) for split, rows in available.items()}
    counts = {split: rows.num_rows for split, rows in used.items()}
    facts = {
        "task": task,
        "stand_in": STAND_IN in (table.schema.metadata or {}),
        "rows": counts,
        "official_rows": official,
        "partial": counts != official,
    }
    if row.files:  # of an own task these may change; of scores kept under the hash of this file, none is of others
        facts |= {"labels": row.labels, "metrics": row.metrics}
    if row.has_contexts:
        used["train"], used[HELD_OUT] = hold_out(used["train"])
        prepared = (
            tokenise_questions(split, rows, encoder(vocabulary), wanted.max_length) for split, rows in used.items()
        )
    else:
        read = (part for split, rows in used.items() for part in formed(row, split, rows, str(raw)))
        prepared = (tokenise(row, part, tokenizer).add_column(0, "split", part["split"]) for part in read)
    write_prepared(output, prepared, facts)


def write_prepared(output: Path, tables: Iterable[pa.Table], facts: dict[str, Any]) -> None:
    """Publish a prepared file of all rows and, in its schema's metadata, what it says of itself.

    Tables are made while the file is written: no more are held than a row group has.
    """
    tables = iter(tables)
    first = next(tables)
    schema = first.schema.with_metadata({FACTS: json.dumps(facts)})
    with publish(output) as temporary, pq.ParquetWriter(temporary, schema, write_page_checksum=True) as writer:
        for rows in _row_groups(chain([first], tables)):
            writer.write_table(rows)


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of tables, one after the other, in tables of ROW_GROUP bytes, the last one of fewer."""
    held, size = [], 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= ROW_GROUP:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)


def facts_of(prepared: Path) -> dict[str, Any]:
    """What a prepared file says of itself: task, stand_in, rows, official_rows (by split), partial.

    A file of `prepare_robustness` says task, stand_in and sets. DataError names a file that is none of the two.
    """
    try:
        return json.loads((pq.read_schema(prepared).metadata or {})[FACTS])
    except (pa.ArrowInvalid, KeyError, ValueError):
        raise DataError(f"{prepared}: no prepared rows, or damaged; delete it and run prepare-task") from None


def pair_encoder(vocabulary: Path, max_length: int) -> Tokenizer:
    """BERT's encoder of sentences and pairs; the longer sentence of a pair is cut first, from its end."""
    tokenizer = encoder(vocabulary)
    tokenizer.enable_truncation(max_length, strategy="longest_first")
    return tokenizer


def sample(task: Task, split: str, rows: pa.Table, settings: TaskSettings) -> pa.Table:
    """At most as many rows of a split as the settings allow, in file order; whole questions where a metric wants all
    answers to a question."""
    limit, draw = settings.max_examples, task.splits.index(split)
    if split != "train":
        limit = settings.max_evaluation_examples
        if "whole_groups" in task.metrics and limit is not None:
            return _whole_questions(rows, limit, draw)
    return spread(rows, limit, draw)


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
    """Columns input_ids, token_type_ids and label for rows of text, as `symbert.glue.forms.formed` gives them.

    A text of several rows, such as the paragraph of many questions, is tokenised once for ROWS_AT_ONCE rows.
    """
    ids, types = [], []
    names = [name for name in (TEXTS if task.form else task.columns) if name in rows.column_names]
    truncation = tokenizer.truncation
    for batch in rows.select(names).to_batches(max_chunksize=ROWS_AT_ONCE):
        tokenizer.no_truncation()  # how much of a text stays depends on the text beside it
        texts = [_encode(column, tokenizer) for column in batch.columns]
        tokenizer.enable_truncation(**truncation)
        encodings = [tokenizer.post_process(*row) for row in zip(*texts, strict=True)]
        ids.append(pa.array([encoding.ids for encoding in encodings], IDS))
        types.append(pa.array([encoding.type_ids for encoding in encodings], TYPES))
    columns = {"input_ids": pa.chunked_array(ids, IDS), "token_type_ids": pa.chunked_array(types, TYPES)}
    return pa.table({**columns, **{name: rows[name] for name in TRUTH if name in rows.column_names}})


def _encode(texts: pa.Array, tokenizer: Tokenizer) -> list[Encoding]:
    """Each text without special tokens; equal texts have the same object."""
    distinct = texts.dictionary_encode()
    encodings = tokenizer.encode_batch_fast(distinct.dictionary.to_pylist(), add_special_tokens=False)
    return [encodings[place] for place in distinct.indices.to_pylist()]


def check_complete(name: str, rows: int, official: int, settings: TaskSettings | MinimalPairSettings) -> None:
    """DataError when rows are not as many as published and the settings do not allow that, or when there are none."""
    if rows == 0 or (rows != official and not settings.allow_partial):
        raise DataError(
            f"{name} has {rows:,} rows, expected {official:,} as its publisher has; "
            + ("set 'glue.allow_partial: true' to go on with these" if rows else "the source lacks this split")
        )
