"""GLUE as published, checked and joined to one file per task.

The hub (nyu-mll/glue) and mirrors hold one parquet file per split, GLUE's archives tab-separated ones (`tsv`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from symbert.corpus.sources import SOURCES, PublishedFile, Source, open_source, resolve
from symbert.errors import DataError
from symbert.files import publish, read_json, write_json
from symbert.glue import tsv
from symbert.glue.tasks import HIGHEST_GRADE, Task, task_named
from symbert.settings import SourceSettings, read_settings

STAND_IN = b"stand-in"  # key of the metadata of a file that only has the shape of a GLUE task
REPOSITORY = "nyu-mll/glue"


def resolve_glue(settings: Path, output: Path) -> None:
    """Write sources.json: the commit of GLUE's repository, if it is the hub's, from which all tasks are downloaded."""
    read = read_settings(settings, SourceSettings)
    write_json(output, resolve(read, {REPOSITORY: ("dataset", read.revision)}))


def download_task(settings: Path, sources: Path, task: str, output: Path) -> None:
    """Write a task's training and evaluation rows to one parquet file: the hub's columns and `split`.

    Raises DataError, naming file and column or line, when columns, types or labels are not those of the task.
    """
    row, read = task_named(task), read_settings(settings, SourceSettings)
    if read.source == "files":
        splits = [_original_rows(Path(read.root), row, split) for split in row.splits]
    else:
        source = open_source(read, read_json(sources, SOURCES))
        splits = [_published_rows(source, row, split, output) for split in row.splits]
    with publish(output) as temporary:
        pq.write_table(pa.concat_tables(splits), temporary)


def _original_rows(root: Path, task: Task, split: str) -> pa.Table:
    rows = pa.Table.from_pylist(list(tsv.read_split(root, task, split)), schema=published_schema(task))
    return _of_split(rows.replace_schema_metadata(None), split)


def _published_rows(source: Source, task: Task, split: str, output: Path) -> pa.Table:
    file = published_split(task, split)
    with _fetched(source, file, output.with_name(f".{task.name}-{split}.parquet")) as path:
        return _of_split(read_published(path, file.location, published_schema(task), task.labels), split)


def _of_split(rows: pa.Table, split: str) -> pa.Table:
    return rows.append_column("split", pa.array([split] * len(rows), pa.string()))


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


def read_published(path: Path, location: str, wanted: pa.Schema, labels: tuple[str, ...]) -> pa.Table:
    """The wanted columns of a parquet file whose classes are `labels` (none: grades); DataError says what is not so.

    Of its metadata, only the mark of a stand-in stays.
    """
    table = read_table(path, location, "get the file again")
    _check_columns(table.schema, location, wanted)
    _check_class_names(table.schema, location, labels)
    _check_values(table.select(wanted.names), location, labels)
    marks = {STAND_IN: b"true"} if STAND_IN in (table.schema.metadata or {}) else None
    return table.select(wanted.names).cast(wanted.remove_metadata()).replace_schema_metadata(marks)


def read_table(path: Path, location: str, remedy: str) -> pa.Table:
    """A parquet file whose texts are UTF-8; DataError names `location` and the remedy when it is damaged."""
    try:
        table = pq.read_table(path)
        table.validate(full=True)
        list(table.column_names)  # which are decoded only here
        return table
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if getattr(error, "errno", None):  # the disk's fault, not the file's
            raise
        raise DataError(f"{location}: not a parquet file, or damaged ({_one_line(error)}); {remedy}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _check_columns(schema: pa.Schema, location: str, wanted: pa.Schema) -> None:
    for field in wanted:
        if field.name not in schema.names:
            raise DataError(
                f"{location}: no column '{field.name}', found {', '.join(schema.names)}; get the file again"
            )
        found = schema.field(field.name).type
        if found != field.type and not (pa.types.is_large_string(found) and pa.types.is_string(field.type)):
            raise DataError(f"{location}: column '{field.name}' is {found}, expected {field.type}; get the file again")


def _check_class_names(schema: pa.Schema, location: str, labels: tuple[str, ...]) -> None:
    """Class numbers mean what the publisher's names say, where the file has them."""
    try:
        written = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        names = tuple(written.get("info", {}).get("features", {}).get("label", {}).get("names", labels))
    except (ValueError, AttributeError, TypeError):
        raise DataError(f"{location}: its metadata are not those of the hub's library; get the file again") from None
    if names != labels:
        raise DataError(f"{location}: classes are {', '.join(map(str, names))}, expected {', '.join(labels)}")


def _check_values(table: pa.Table, location: str, labels: tuple[str, ...]) -> None:
    empty = [column for column in table.column_names if table[column].null_count]
    if empty:
        raise DataError(f"{location}: column '{empty[0]}' has empty cells; get the file again")
    if not table.num_rows:
        return
    bounds = pc.min_max(table["label"]).as_py()
    highest = len(labels) - 1 if labels else HIGHEST_GRADE
    if not (bounds["min"] >= 0 and bounds["max"] <= highest):
        raise DataError(
            f"{location}: labels from {bounds['min']} to {bounds['max']}, expected 0 to {highest}; "
            "an unlabelled test split cannot be scored"
        )
