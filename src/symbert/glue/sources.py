"""The rows of each task: published files of the hub or of a mirror, or the user's own.

The hub (nyu-mll/glue, aps/super_glue, rajpurkar/squad_v2) and mirrors hold one parquet file per split. The user's files
are read as the corpus reads them.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from symbert.corpus.document import classes_of, flaw_of, is_json, read_rows
from symbert.corpus.file_formats import PARQUET, begin_of, refuse_other_format
from symbert.errors import DataError, MissingInputError, line_of
from symbert.files import known_sha256
from symbert.glue.challenges import Challenge
from symbert.glue.tasks import GLUE, HIGHEST_GRADE, Task, label_name, published_split
from symbert.sources import verified
from symbert.steps import File

STAND_IN = b"stand-in"  # key of the metadata of a file that only has the shape of a GLUE task
# Cells of a boolean column, and how pandas writes them; YAML reads no and yes as truth values, too.
ALIASES = {"no": ("false", "False"), "yes": ("true", "True")}

INDEX = pa.int32()
TYPES: dict[str, pa.DataType] = {  # of columns, as `symbert.glue.tasks` calls them
    "int32": INDEX,
    "texts": pa.list_(pa.string()),
    "paragraph question answer": pa.struct([("paragraph", INDEX), ("question", INDEX), ("answer", INDEX)]),
    "passage query": pa.struct([("passage", INDEX), ("query", INDEX)]),
    "text answer_start": pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(INDEX))]),
}


def read_split(task: Task, split: str, source: File | None) -> pa.Table:
    """The rows of a split with the hub's columns, checked; a stand-in's are marked in the schema's metadata.

    `source` is the folder of the published files; a task of the user's own has files of its own. DataError names file
    and column or row where columns, types or labels are not of the task, and a file that was changed meanwhile.
    """
    if task.files:
        table, file = read_custom_split(task, split), task.files[split]
        if known_sha256(file.path) != file.sha256:
            raise DataError(f"{file.path}: changed since the workflow was started; start it again")
        return table
    published = published_split(task, split)
    path = verified(f"{source.path}/{published.path}")
    return read_published(path, published.location, published_schema(task), task.labels)


def published_schema(task: Task) -> pa.Schema:
    """The hub's columns and types."""
    fields = [pa.field(column, pa.string()) for column in task.columns]
    fields += [pa.field(column, TYPES[kind]) for column, kind in task.details.items()]
    if task.has_label:
        fields.append(pa.field("label", pa.int64() if task.labels else pa.float32()))
    if task.index:
        fields.append(pa.field("idx", TYPES[task.index]))
    return pa.schema(fields)


def read_published(path: Path, location: str, expected: pa.Schema, labels: tuple[str, ...] = ()) -> pa.Table:
    """The expected columns of a parquet file whose classes are `labels` (none: grades, or no label).

    DataError names `location` and the flaw: another column or type, class names in the file's metadata that are not
    the publisher's, an empty cell, a label out of range. Whole numbers may be of any type of numbers, as 1.0, and text
    is no number. Of its metadata, only the mark of a stand-in stays.
    """
    table, columns = read_table(path, location, "get the file again"), []
    try:
        classes = classes_of(table.schema, "label") or list(labels)
        of_json = [name for name in expected.names if name in table.column_names and is_json(table.schema, name)]
    except ValueError as error:
        raise DataError(f"{location}: {error}; get the file again") from None
    for field in expected:
        if field.name not in table.column_names:
            found = ", ".join(table.column_names)
            raise DataError(f"{location}: no column '{field.name}', found {found}; get the file again")
        if field.name in of_json:
            raise DataError(f"{location}: '{field.name}' holds JSON, expected {field.type}; get the file again")
        columns.append(_converted(table[field.name], field, location))
        parts = columns[-1].flatten()  # of a struct its fields, which may be absent in the file
        if columns[-1].null_count or any(part.null_count for part in parts):
            raise DataError(f"{location}: column '{field.name}' has empty cells; get the file again")
    if classes != list(labels):
        raise DataError(f"{location}: classes are {', '.join(map(str, classes))}, expected {', '.join(labels)}")
    marks = {STAND_IN: b"true"} if STAND_IN in (table.schema.metadata or {}) else None
    table = pa.table(columns, schema=expected.with_metadata(marks))
    if table.num_rows and "label" in table.column_names:
        lowest, highest = pc.min_max(table["label"]).as_py().values()
        limit = len(labels) - 1 if labels else HIGHEST_GRADE
        if not (lowest >= 0 and highest <= limit):
            raise DataError(
                f"{location}: labels from {lowest} to {highest}, expected 0 to {limit}; "
                "an unlabelled test split cannot be scored"
            )
    return table


def _converted(column: pa.ChunkedArray, field: pa.Field, location: str) -> pa.ChunkedArray:
    """A column as the type of a field, of which it is another form; DataError names the first row that is none."""
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    has_numbers = pa.types.is_primitive(column.type) and not pa.types.is_temporal(column.type)  # or truth values
    found = f"holds {column.type}"
    if is_number == has_numbers:
        try:
            return column.cast(field.type)
        except pa.ArrowException as error:
            found += f" ({line_of(error)})"
            if is_number and (place := pc.index(pc.equal(pc.floor(column), column), False).as_py()) >= 0:
                found = f"is {column[place]} in row {place + 1}"
    raise DataError(f"{location}: '{field.name}' {found}, expected {field.type}; get the file again")


def read_table(path: Path, location: str, remedy: str) -> pa.Table:
    """A parquet file whose texts are UTF-8; DataError names `location` and the remedy when it is damaged."""
    try:
        refuse_other_format(path, begin_of(path), expected=PARQUET)
        table = pq.read_table(path, page_checksum_verification=True)
        table.validate(full=True)
        list(table.column_names)  # which are decoded only here
        return table
    except FileNotFoundError:
        raise MissingInputError(f"{path}: file not found; get it again") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if getattr(error, "errno", None):  # the disk's fault, not the file's
            raise
        message = line_of(error)
        raise DataError(f"{location}: not a parquet file, or damaged ({message}); {remedy}") from None


def read_challenge(challenge: Challenge, root: Path) -> pa.Table:
    """The columns of the task's text and `label` of a challenge set in the directory `root`.

    MissingInputError names the file and its publisher, DataError the columns or labels that are not those of the set.
    """
    schema = pa.schema([*((name, pa.string()) for name in GLUE[challenge.task].columns), ("label", pa.int64())])
    path = root / challenge.file
    if not path.is_file():
        raise MissingInputError(
            f"{path}: file not found; get it from {challenge.publisher} under this name, or take "
            f"'{challenge.collection}' out of 'glue.robustness.sets'"
        )
    return read_published(verified(str(path)), str(path), schema, challenge.labels)


def read_custom_split(task: Task, split: str) -> pa.Table:
    """The rows of a split of the user's own task with the hub's columns; `idx` is their place in the file.

    DataError names file and row for a missing column, an empty cell and another label, and the file for no rows at all.
    A label that YAML reads as a truth value or a number stands in quotes in the configuration. Whole numbers may be
    written as 1.0, as pandas does in a column with empty cells.
    """
    classes = {word: number for number, name in enumerate(task.labels) for word in (name, *ALIASES.get(name, ()))}
    if not any(name.lstrip("-").isdigit() for name in task.labels):
        classes |= {str(number): number for number in range(len(task.labels))}
    classes = {f"{word}.0": number for word, number in classes.items() if word.lstrip("-").isdigit()} | classes
    path, rows = verified(task.files[split].path), []
    for place, (*texts, cell) in enumerate(_own_cells(path, task)):
        try:
            label = classes[_word(cell)] if classes else _grade(cell)
        except (KeyError, TypeError, ValueError):
            label = math.nan
        if not math.isfinite(label):
            expected = f"one of {', '.join(task.labels)}" if classes else "a number"
            column, remedy = task.custom_columns[-1], "correct it"
            if as_yaml_reads(cell) in task.labels:
                remedy = f"""write it in quotes in 'labels', as "{cell}": YAML reads {cell} as another value"""
            raise DataError(f"{path}: row {place + 1}: '{column}' is {cell!r}, expected {expected}; {remedy}")
        rows.append({**dict(zip(task.columns, texts, strict=True)), "label": label, "idx": place})
    if not rows:
        raise DataError(f"{path}: has no rows; give '{task.name}' some")
    return pa.Table.from_pylist(rows, schema=published_schema(task))


def _word(cell: Any) -> str:
    """A label as its name may be: true of a truth value, else its text."""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _grade(cell: Any) -> float:
    """A grade as float32 holds it; ValueError or TypeError for no number, and for 1_0, which Python reads as 10."""
    if "_" in str(cell):
        raise ValueError
    with np.errstate(over="ignore"):
        return float(np.float32(float(cell)))


def as_yaml_reads(word: Any) -> str | None:
    """The label that a word without quotes is in a configuration, if YAML reads it as a truth value or a number."""
    try:
        value = yaml.safe_load(word) if isinstance(word, str) else None
    except (yaml.YAMLError, ValueError):
        return None
    return label_name(value) if isinstance(value, bool | int) else None


def _own_cells(path: Path, task: Task) -> Iterator[list[Any]]:
    """Texts and label of each row of a file of the user's own; DataError where one is absent, empty, or no text."""
    if (path / "dataset_dict.json").is_file():
        raise DataError(f"{path}: has several splits; name one of them, such as {path}/train")
    for place, row in enumerate(read_rows(path, task.custom_columns), start=1):
        if isinstance(row, DataError):
            raise row
        for name in task.custom_columns:
            if name not in row:
                raise DataError(f"{path}: no column '{name}', found {', '.join(row)}; correct 'tasks'")
            if row[name] in (None, ""):
                raise DataError(f"{path}: row {place}: '{name}' is empty; fill it, or leave the row out")
            is_text = name != task.custom_columns[-1]
            if (is_text or isinstance(row[name], Exception)) and (flaw := flaw_of(row[name])):
                raise DataError(f"{path}: row {place}: '{name}' {flaw}; correct it")
        yield [row[name] for name in task.custom_columns]


def refuse_shared_texts(task: Task, train: pa.Table, validation: pa.Table) -> None:
    """DataError as `tell_shared` for the texts of all rows of a task of the user's own, whether trained on or not."""
    trained, validated = (
        zip(*(rows[name].to_pylist() for name in task.columns), strict=True) for rows in (train, validation)
    )
    known = set(trained)
    shared = sum(texts in known for texts in validated)
    if 2 * shared > validation.num_rows:
        tell_shared(task, task.files["validation"].path, shared, validation.num_rows, "text")


def tell_shared(task: Task, place: str, shared: int, rows: int, what: str) -> None:
    """A line on stderr where `shared` of the evaluation rows are training rows; DataError where more than half of a
    task of the user's own are."""
    fact = f"{place}: {shared:,} of {rows:,} rows have the {what} of a training row"
    if task.files and 2 * shared > rows:
        raise DataError(f"{fact}; give '{task.name}' validation rows that nothing is trained on")
    if shared:
        print(f"warning: {fact}", file=sys.stderr)
