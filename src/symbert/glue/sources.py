"""The rows of tasks, checked: as the hub has them, from GLUE's original files, or from the user's own.

The hub (nyu-mll/glue, aps/super_glue) and mirrors hold one parquet file per split; GLUE's original files, as
gluebenchmark.com gives them, a folder per task and a tab-separated file per split. Original files are read by the rules
of Hugging Face's script (github.com/huggingface/datasets, datasets/glue/glue.py), from which the hub's parquet was
made: quotation marks are text, a label is a class by its name or its number, a row's `idx` is its place in the file.
Unlike there, a line ends at \n only: the text may hold other separators. The user's files are read by the `datasets`
library and, where they are .csv or .tsv, as the corpus reads them.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from symbert.corpus.document import CELLS, classes_of, fields_of, read_rows, suffix_of
from symbert.errors import ConfigError, DataError, MissingInputError
from symbert.files import known_sha256
from symbert.glue.challenges import Challenge
from symbert.glue.tasks import GLUE, HIGHEST_GRADE, Layout, Task, published_split
from symbert.sources import Config, verified

STAND_IN = b"stand-in"  # key of the metadata of a file that only has the shape of a GLUE task
# Cells of a boolean column, and how pandas writes them; YAML reads no and yes as truth values, too.
ALIASES = {"no": ("false", "False"), "yes": ("true", "True")}

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

Row = dict[str, Any]
Record = tuple[int, str, Row]  # of a row its number in the file, the words that name it in an error, cells by column


def read_split(task: Task, split: str, settings: Config) -> pa.Table:
    """The rows of a split with the hub's columns, checked; a stand-in's are marked in the schema's metadata.

    `settings` are of the folder of prepared rows: `original_files` is the folder of GLUE's original files, `source` the
    folder of the published ones; of a task of the user's own `own` has the SHA-256 of its files. DataError names file
    and column or line where columns, types or labels are not of the task, and a file that was changed meanwhile.
    """
    if task.files:
        table, file = read_own_split(task, split), task.files[split]
        if known_sha256(file) != settings["own"][task.name]["sha256"][split]:
            raise DataError(f"{file}: changed since the workflow was started; start it again")
        return table
    if "original_files" in settings:
        folder, layout = Path(settings["original_files"]) / task.folder, task.layout or Layout(task.columns)
        table = _table(_original_records(folder, task, split, layout), layout, published_schema(task), task.labels)
        refuse_labels(table, str(folder), task.labels)
        return table
    file = published_split(task, split)
    path = verified(f"{settings['source']}/{file.path}")
    return read_published(path, file.location, published_schema(task), task.labels)


def published_schema(task: Task) -> pa.Schema:
    """The hub's columns and types."""
    fields = [pa.field(column, pa.string()) for column in task.columns]
    fields += [pa.field(column, TYPES[kind]) for column, kind in task.details.items()]
    if task.has_label:
        fields.append(pa.field("label", pa.int64() if task.labels else pa.float32()))
    if task.index:
        fields.append(pa.field("idx", TYPES[task.index]))
    return pa.schema(fields)


def _fits(kind: pa.DataType, expected: pa.DataType) -> bool:
    """Whether a column can be read as one of the expected type: texts, indices and lists may be of another width."""
    if pa.types.is_struct(kind) and pa.types.is_struct(expected):
        return {field.name for field in kind} == {field.name for field in expected}
    if pa.types.is_list(expected):
        return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _fits(kind.value_type, expected.value_type)
    if pa.types.is_string(expected):
        return pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return kind == expected or (pa.types.is_int32(expected) and pa.types.is_integer(kind))


def read_published(path: Path, location: str, expected: pa.Schema, labels: tuple[str, ...] = ()) -> pa.Table:
    """The expected columns of a parquet file whose classes are `labels` (none: grades, or no label).

    DataError names `location` and the flaw: another column or type, class names in the file's metadata that are not
    the publisher's, an empty cell, a label out of range. Of its metadata, only the mark of a stand-in stays.
    """
    table = read_table(path, location, "get the file again")
    metadata = table.schema.metadata or {}
    for field in expected:
        if field.name not in table.column_names:
            columns = ", ".join(table.column_names)
            raise DataError(f"{location}: no column '{field.name}', found {columns}; get the file again")
        kind = table.schema.field(field.name).type
        if not _fits(kind, field.type):
            raise DataError(f"{location}: column '{field.name}' is {kind}, expected {field.type}; get the file again")
    try:
        classes = classes_of(table.schema, "label") or list(labels)
    except ValueError as error:
        raise DataError(f"{location}: {error}; get the file again") from None
    if classes != list(labels):
        raise DataError(f"{location}: classes are {', '.join(map(str, classes))}, expected {', '.join(labels)}")
    table = table.select(expected.names)
    for column in table.column_names:
        if table[column].null_count:
            raise DataError(f"{location}: column '{column}' has empty cells; get the file again")
    refuse_labels(table, location, labels)
    marks = {STAND_IN: b"true"} if STAND_IN in metadata else None
    return table.cast(expected).replace_schema_metadata(marks)


def refuse_labels(table: pa.Table, location: str, labels: tuple[str, ...]) -> None:
    """DataError where a label is no class, or no grade from 0 to HIGHEST_GRADE."""
    if table.num_rows and "label" in table.column_names:
        lowest, highest = pc.min_max(table["label"]).as_py().values()
        limit = len(labels) - 1 if labels else HIGHEST_GRADE
        if not (lowest >= 0 and highest <= limit):
            raise DataError(
                f"{location}: labels from {lowest} to {highest}, expected 0 to {limit}; "
                "an unlabelled test split cannot be scored"
            )


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


def read_challenge(challenge: Challenge, root: Path) -> pa.Table:
    """The columns of the task's text and `label` of a challenge set in the directory `root`.

    MissingInputError names the file and its publisher, DataError the columns or labels that are not those of the set.
    """
    schema = pa.schema([*((name, pa.string()) for name in GLUE[challenge.task].columns), ("label", pa.int64())])
    path = next((root / file for file in challenge.files if (root / file).is_file()), None)
    if path is None:
        raise MissingInputError(
            f"{root / challenge.files[0]}: file not found, nor {challenge.files[1]}; get it from "
            f"{challenge.publisher}, or take '{challenge.collection}' out of 'glue.robustness.sets'"
        )
    try:
        if path.suffix == ".parquet":
            return read_published(path, str(path), schema, challenge.labels)
        return _table(_records(path, challenge.layout), challenge.layout, schema, challenge.labels)
    except DataError as error:
        raise DataError(f"{error} ({challenge.name} is published at {challenge.publisher})") from None


def _original_records(folder: Path, task: Task, split: str, layout: Layout) -> Iterable[Record]:
    """Each row of a split in GLUE's original files."""
    if not (task.name == "mrpc" and (folder / PARAPHRASES).is_file()):
        return _records(folder / f"{split.replace('validation', 'dev')}.tsv", layout)
    evaluated = {tuple(fields) for _, fields in fields_of(folder / EVALUATION_PAIRS)}
    records = _records(folder / PARAPHRASES, layout)
    return (record for record in records if (tuple(map(record[2].get, PAIR)) in evaluated) == (split != "train"))


def _records(path: Path, layout: Layout) -> Iterator[Record]:
    """Each row with text and label of a tab-separated file."""
    lines, broken = fields_of(path), []
    header = layout.header
    if not header:
        _, header = next(lines, (1, []))
        for name in (*layout.text, layout.label):
            if name not in header:
                raise DataError(
                    f"{path}:1: no column '{name}', found {', '.join(header) or 'nothing'}; get GLUE's labelled file"
                )
    for place, (line, fields) in enumerate(lines):
        cells = dict(zip(header, fields, strict=False))
        if cells.get(layout.label) and all(name in cells for name in layout.text):
            yield place, f"{path}:{line}", cells
        elif layout.has_broken_rows:
            broken.append(line)
        else:
            raise DataError(f"{path}:{line}: text or label is missing ({len(fields)} fields); get the file again")
    if broken:
        print(f"warning: {path}: skipped {len(broken)} broken rows, first line {broken[0]}", file=sys.stderr)


def read_own_split(task: Task, split: str) -> pa.Table:
    """The rows of a split of the user's own task with the hub's columns; `idx` is their place in the file.

    DataError names file and row for a missing column, an empty cell and another label, and the file for no rows at all.
    """
    records = _own_records(Path(task.files[split]), task.layout)
    table = _table(records, task.layout, published_schema(task), task.labels)
    if not table.num_rows:
        raise DataError(f"{task.files[split]}: has no rows; give '{task.name}' some")
    return table


def check_files(task: Task) -> None:
    """Refuse files of a task of the user's own that cannot be read as one, where a workflow starts.

    ConfigError where both splits are the same, DataError where a .csv or .tsv lacks a column.
    """
    if known_sha256(task.files["train"]) == known_sha256(task.files["validation"]):
        files = " and ".join(dict.fromkeys(task.files.values()))
        raise ConfigError(
            f"config: 'tasks.{task.name}': train and validation are the same ({files}); give validation rows that "
            "nothing is trained on"
        )
    for path in map(Path, task.files.values()):
        if path.is_file() and suffix_of(path) in CELLS:
            next(_own_records(path, task.layout), None)


def refuse_shared_texts(task: Task, train: pa.Table, validation: pa.Table) -> None:
    """DataError where more than half of the validation rows have the texts of a training row; a line on stderr where
    fewer do."""
    trained, validated = (
        zip(*(rows[name].to_pylist() for name in task.columns), strict=True) for rows in (train, validation)
    )
    known = set(trained)
    shared = sum(texts in known for texts in validated)
    fact = f"{task.files['validation']}: {shared:,} of {validation.num_rows:,} rows have the text of a training row"
    if 2 * shared > validation.num_rows:
        raise DataError(f"{fact}; give '{task.name}' validation rows that nothing is trained on")
    if shared:
        print(f"warning: {fact}", file=sys.stderr)


def _own_records(path: Path, layout: Layout) -> Iterator[Record]:
    """Each row of a file of the user's own; DataError where a text or label is absent, empty, or no text."""
    if (path / "dataset_dict.json").is_file():
        raise DataError(f"{path}: has several splits; name one of them, such as {path}/train")
    for place, row in enumerate(read_rows(path, (*layout.text, layout.label))):
        if isinstance(row, DataError):
            raise row
        for name in (*layout.text, layout.label):
            if name not in row:
                raise DataError(f"{path}: no column '{name}', found {', '.join(row)}; correct 'tasks'")
            if row[name] in (None, ""):
                raise DataError(f"{path}: row {place + 1}: '{name}' is empty; fill it, or leave the row out")
            if name in layout.text and not isinstance(row[name], str):
                raise DataError(f"{path}: row {place + 1}: '{name}' is {row[name]!r}, no text; correct it")
        yield place, f"{path}: row {place + 1}", row


def _table(records: Iterable[Record], layout: Layout, schema: pa.Schema, labels: tuple[str, ...]) -> pa.Table:
    """Records as texts, `label` (a class by its name or number, or a grade) and, where the schema has it, `idx`."""
    classes = {word: number for number, name in enumerate(labels) for word in (name, *ALIASES.get(name, ()))}
    if not any(name.lstrip("-").isdigit() for name in labels):
        classes |= {str(number): number for number in range(len(labels))}
    rows = []
    for place, named, cells in records:
        cell = cells[layout.label]
        try:
            label = classes[str(cell).lower() if isinstance(cell, bool) else str(cell)] if labels else float(cell)
        except (KeyError, TypeError, ValueError):
            label = math.nan
        if not math.isfinite(label):
            expected = f"one of {', '.join(labels)}" if labels else "a number"
            raise DataError(f"{named}: '{layout.label}' is {cell!r}, expected {expected}; correct it")
        texts = zip(schema.names, (cells[name] for name in layout.text), strict=False)
        rows.append({**dict(texts), "label": label, "idx": place})
    return pa.Table.from_pylist(rows, schema=schema)
