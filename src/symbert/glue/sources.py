"""GLUE's files as published (nyu-mll/glue, one parquet file per split), checked and joined to one file per task."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from symbert.corpus.sources import PublishedFile, Source, open_source, resolve
from symbert.errors import DataError
from symbert.files import publish, read_json, write_json
from symbert.glue.tasks import Task, task_named
from symbert.settings import SourceSettings, read_settings

STAND_IN = b"stand-in"  # key of the metadata of a file that only has the shape of a GLUE task
HIGHEST_GRADE = 5
REPOSITORY = "nyu-mll/glue"


def resolve_glue(settings: Path, output: Path) -> None:
    """Write sources.json: the commit of GLUE's repository from which all tasks are downloaded."""
    read = read_settings(settings, SourceSettings)
    write_json(output, resolve(read, {REPOSITORY: ("dataset", read.revision)}))


def download_task(settings: Path, sources: Path, task: str, output: Path) -> None:
    """Write a task's training and evaluation rows to one parquet file: the hub's columns and `split`.

    Raises DataError, naming file and column, when columns, types or labels are not those of the task.
    """
    row, source = task_named(task), open_source(read_settings(settings, SourceSettings), read_json(sources))
    splits = []
    for split in row.splits:
        file = published_split(row, split)
        with _fetched(source, file, output.with_name(f".{task}-{split}.parquet")) as path:
            splits.append(_read(path, file.location, row, split))
    with publish(output) as temporary:
        pq.write_table(pa.concat_tables(splits), temporary)


@contextmanager
def _fetched(source: Source, file: PublishedFile, path: Path) -> Iterator[Path]:
    """A published file at `path` for as long as the block lasts."""
    try:
        source.fetch(file, path)
        yield path
    finally:
        path.unlink(missing_ok=True)


def published_split(task: Task, split: str) -> PublishedFile:
    """The hub's file of a split."""
    return PublishedFile("dataset", REPOSITORY, f"{task.name}/{split}-00000-of-00001.parquet")


def published_schema(task: Task) -> pa.Schema:
    """The hub's columns and types, with the class names as its library writes them."""
    text = {column: {"dtype": "string", "_type": "Value"} for column in task.columns}
    label = (
        {"names": list(task.labels), "_type": "ClassLabel"} if task.labels else {"dtype": "float32", "_type": "Value"}
    )
    features = {**text, "label": label, "idx": {"dtype": "int32", "_type": "Value"}}
    fields = [pa.field(column, pa.string()) for column in task.columns]
    fields += [pa.field("label", pa.int64() if task.labels else pa.float32()), pa.field("idx", pa.int32())]
    return pa.schema(fields, {"huggingface": json.dumps({"info": {"features": features}})})


def _read(path: Path, location: str, task: Task, split: str) -> pa.Table:
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{location}: not a parquet file ({error}); get the file again") from None
    _check_columns(table.schema, location, task)
    _check_class_names(table.schema, location, task)
    _check_values(table, location, task)
    marks = {STAND_IN: b"true"} if STAND_IN in (table.schema.metadata or {}) else None
    schema = published_schema(task)
    rows = table.select(schema.names).cast(schema.remove_metadata())
    return rows.append_column("split", pa.array([split] * len(rows))).replace_schema_metadata(marks)


def _check_columns(schema: pa.Schema, location: str, task: Task) -> None:
    for field in published_schema(task):
        if field.name not in schema.names:
            raise DataError(
                f"{location}: no column '{field.name}', found {', '.join(schema.names)}; get the file again"
            )
        found = schema.field(field.name).type
        if found != field.type and not (pa.types.is_large_string(found) and pa.types.is_string(field.type)):
            raise DataError(f"{location}: column '{field.name}' is {found}, expected {field.type}; get the file again")


def _check_class_names(schema: pa.Schema, location: str, task: Task) -> None:
    """Class numbers mean what the publisher's names say, where the file has them."""
    written = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    names = written.get("info", {}).get("features", {}).get("label", {}).get("names", list(task.labels))
    if tuple(names) != task.labels:
        raise DataError(f"{location}: classes are {', '.join(names)}, expected {', '.join(task.labels)}")


def _check_values(table: pa.Table, location: str, task: Task) -> None:
    empty = [column for column in (*task.columns, "label") if table[column].null_count]
    if empty:
        raise DataError(f"{location}: column '{empty[0]}' has empty cells; get the file again")
    if not table.num_rows:
        return
    bounds = pc.min_max(table["label"]).as_py()
    highest = task.num_labels - 1 if task.labels else HIGHEST_GRADE
    if not (bounds["min"] >= 0 and bounds["max"] <= highest):
        raise DataError(
            f"{location}: labels from {bounds['min']} to {bounds['max']}, expected 0 to {highest}; "
            "an unlabelled test split cannot be scored"
        )
