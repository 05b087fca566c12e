"""The rows of tasks as published, checked.

The hub (nyu-mll/glue, aps/super_glue) and mirrors hold one parquet file per split; GLUE's original files, as
gluebenchmark.com gives them, a folder per task and a tab-separated file per split. Those are read by the rules of
Hugging Face's script (github.com/huggingface/datasets, datasets/glue/glue.py), from which the hub's parquet was made:
quotation marks are text, a label is a class by its name or its number, a row's `idx` is its place in the file. Unlike
there, a line ends at \\n only: the text may hold other separators.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from symbert.errors import DataError, MissingInputError
from symbert.files import known_sha256
from symbert.glue.own_files import read_own_split
from symbert.glue.tasks import HIGHEST_GRADE, Layout, Task, published_split
from symbert.sources import Config, verified

STAND_IN = b"stand-in"  # key of the metadata of a file that only has the shape of a GLUE task

# MRPC comes from Microsoft, unsplit: GLUE adds the pairs of sentence numbers that make the evaluation split.
PARAPHRASES, EVALUATION_PAIRS = "msr_paraphrase_train.txt", "dev_ids.tsv"
PAIR = ("#1 ID", "#2 ID")

INDEX = pa.int32()
TYPES: dict[str, pa.DataType] = {  # of columns, as `symbert.glue.tasks` calls them
    "int32": INDEX,
    "texts": pa.list_(pa.string()),
    "paragraph question answer": pa.struct([("paragraph", INDEX), ("question", INDEX), ("answer", INDEX)]),
    "passage query": pa.struct([("passage", INDEX), ("query", INDEX)]),
    "text answer_start": pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(INDEX))]),
}

Record = dict[str, str]
Row = dict[str, Any]


def read_split(task: Task, split: str, settings: Config) -> pa.Table:
    """The rows of a split with the hub's columns, checked; a stand-in's are marked in the schema's metadata.

    `settings` are of the folder of prepared rows: `original_files` is the folder of GLUE's original files, `source` the
    folder of the published ones; of a task of the user's own `own` has the SHA-256 of its files. DataError names file
    and column or line where columns, types or labels are not of the task, and a file that was changed meanwhile.
    """
    schema = published_schema(task)
    if task.files:
        rows, file = read_own_split(task, split, schema), task.files[split]
        if known_sha256(file) != settings["own"][task.name]["sha256"][split]:
            raise DataError(f"{file}: changed since the workflow was started; start it again")
        return rows
    if "original_files" in settings:
        rows = read_original_split(Path(settings["original_files"]), task, split)
        return pa.Table.from_pylist(list(rows), schema=schema).replace_schema_metadata(None)
    file = published_split(task, split)
    return read_published(verified(f"{settings['source']}/{file.path}"), file.location, schema, task.labels)


def published_schema(task: Task) -> pa.Schema:
    """The hub's columns and types, with the class names as its library writes them."""
    fields = [pa.field(column, pa.string()) for column in task.columns]
    fields += [pa.field(column, TYPES[kind]) for column, kind in task.details.items()]
    if task.has_label:
        fields.append(pa.field("label", pa.int64() if task.labels else pa.float32()))
    if task.index:
        fields.append(pa.field("idx", TYPES[task.index]))
    features = {field.name: _feature(field.type) for field in fields}
    if task.labels and task.has_label:
        features["label"] = {"names": list(task.labels), "_type": "ClassLabel"}
    return pa.schema(fields, {"huggingface": json.dumps({"info": {"features": features}})})


def _feature(kind: pa.DataType) -> dict[str, Any]:
    """What the hub's library says of a column of this type."""
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "Sequence"}
    return {"dtype": "float32" if kind == pa.float32() else str(kind), "_type": "Value"}


def _fits(kind: pa.DataType, expected: pa.DataType) -> bool:
    """Whether a column can be read as one of the expected type: texts, indices and lists may be of another width."""
    if pa.types.is_struct(kind) and pa.types.is_struct(expected):
        return {field.name for field in kind} == {field.name for field in expected}
    if pa.types.is_list(expected):
        return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _fits(kind.value_type, expected.value_type)
    if pa.types.is_string(expected):
        return pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return kind == expected or (pa.types.is_int32(expected) and pa.types.is_integer(kind))


def read_published(path: Path, location: str, expected: pa.Schema, labels: tuple[str, ...]) -> pa.Table:
    """The expected columns of a parquet file whose classes are `labels` (none: grades).

    DataError names `location` and the flaw: another column or type, class names in the file's metadata that are not
    the publisher's, an empty cell, a label out of range. Of its metadata, only the mark of a stand-in stays.
    """
    table = read_table(path, location, "get the file again")
    metadata = table.schema.metadata or {}
    for field in expected:
        if field.name not in table.column_names:
            found = ", ".join(table.column_names)
            raise DataError(f"{location}: no column '{field.name}', found {found}; get the file again")
        kind = table.schema.field(field.name).type
        if not _fits(kind, field.type):
            raise DataError(f"{location}: column '{field.name}' is {kind}, expected {field.type}; get the file again")
    try:
        written = json.loads(metadata.get(b"huggingface", b"{}"))
        names = tuple(written.get("info", {}).get("features", {}).get("label", {}).get("names", labels))
    except (ValueError, AttributeError, TypeError):
        raise DataError(f"{location}: its metadata are not those of the hub's library; get the file again") from None
    if names != labels:
        raise DataError(f"{location}: classes are {', '.join(map(str, names))}, expected {', '.join(labels)}")
    table = table.select(expected.names)
    for column in table.column_names:
        if table[column].null_count:
            raise DataError(f"{location}: column '{column}' has empty cells; get the file again")
    if table.num_rows and "label" in table.column_names:
        lowest, highest = pc.min_max(table["label"]).as_py().values()
        limit = len(labels) - 1 if labels else HIGHEST_GRADE
        if not (lowest >= 0 and highest <= limit):
            raise DataError(
                f"{location}: labels from {lowest} to {highest}, expected 0 to {limit}; "
                "an unlabelled test split cannot be scored"
            )
    marks = {STAND_IN: b"true"} if STAND_IN in metadata else None
    return table.cast(expected.remove_metadata()).replace_schema_metadata(marks)


def read_table(path: Path, location: str, remedy: str) -> pa.Table:
    """A parquet file whose texts are UTF-8; DataError names `location` and the remedy when it is damaged."""
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        table.validate(full=True)
        list(table.column_names)  # which are decoded only here
        return table
    except FileNotFoundError:
        raise MissingInputError(f"{path}: file not found; get it again") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if getattr(error, "errno", None):  # the disk's fault, not the file's
            raise
        message = " ".join(str(error).split())
        raise DataError(f"{location}: not a parquet file, or damaged ({message}); {remedy}") from None


def read_original_split(root: Path, task: Task, split: str) -> Iterator[Row]:
    """The rows of a split in GLUE's original files, with the hub's columns.

    DataError names file and line, MissingInputError the file.
    """
    folder, layout = root / task.folder, task.layout or Layout(task.columns)
    if not (task.name == "mrpc" and (folder / PARAPHRASES).is_file()):
        return read_rows(folder / f"{split.replace('validation', 'dev')}.tsv", layout, task.columns, task.labels)
    evaluated = {tuple(fields) for _, fields in _lines(folder / EVALUATION_PAIRS)}

    def belongs(record: Record) -> bool:
        return (tuple(map(record.get, PAIR)) in evaluated) == (split != "train")

    return read_rows(folder / PARAPHRASES, layout, task.columns, task.labels, belongs)


def read_rows(
    path: Path,
    layout: Layout,
    columns: tuple[str, ...],
    labels: tuple[str, ...],
    belongs: Callable[[Record], bool] = lambda record: True,
) -> Iterator[Row]:
    """The rows of a tab-separated file that belong: text as `columns`, `label` (class number, or grade), and `idx`."""
    numbers = {name: number for number, label in enumerate(labels) for name in (str(number), label)}
    for place, line, record in _records(path, layout):
        if not belongs(record):
            continue
        value = record[layout.label]
        try:
            label = numbers[value] if labels else float(value)
        except (KeyError, ValueError):
            label = math.nan
        if not 0 <= label <= (len(labels) if labels else HIGHEST_GRADE):
            expected = f"one of {', '.join(labels)}" if labels else f"a number from 0 to {HIGHEST_GRADE}"
            raise DataError(
                f"{path}:{line}: {layout.label} is {value!r}, expected {expected}; only GLUE's labelled rows can be "
                "trained on and scored"
            )
        text = {column: record[name] for column, name in zip(columns, layout.text, strict=True)}
        yield {**text, "label": label, "idx": place}


def _records(path: Path, layout: Layout) -> Iterator[tuple[int, int, Record]]:
    """Place, line number and fields by column name of each row with text and label."""
    lines, broken = _lines(path), []
    header = layout.header
    if not header:
        _, header = next(lines, (1, []))
        for name in (*layout.text, layout.label):
            if name not in header:
                raise DataError(
                    f"{path}:1: no column '{name}', found {', '.join(header) or 'nothing'}; get GLUE's labelled file"
                )
    for place, (line, fields) in enumerate(lines):
        record = dict(zip(header, fields, strict=False))
        if record.get(layout.label) and all(name in record for name in layout.text):
            yield place, line, record
        elif layout.has_broken_rows:
            broken.append(line)
        else:
            raise DataError(f"{path}:{line}: text or label is missing ({len(fields)} fields); get the file again")
    if broken:
        print(
            f"warning: {path}: skipped {len(broken)} rows without text or label, first line {broken[0]}",
            file=sys.stderr,
        )


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line that is not empty; a byte order mark and \\r before \\n are not text."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
                if text:
                    yield number, text.split("\t")
    except FileNotFoundError:
        raise MissingInputError(f"{path}: file not found; put GLUE's {path.parent.name} there") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}:{number}: not UTF-8; get the file again") from None
