"""Rows of a task of the user's own, with the hub's columns, from the files that the `datasets` library reads."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from symbert.corpus.document import DIALECTS, LOADERS, open_data, read_cells, suffix_of
from symbert.errors import ConfigError, DataError
from symbert.files import known_sha256
from symbert.glue.tasks import Layout, Task

KINDS = (*DIALECTS, *LOADERS)  # of files: those with columns
# Cells of a boolean column, and how pandas writes them; YAML reads no and yes as truth values, too.
ALIASES = {"no": ("false", "False"), "yes": ("true", "True")}


def check_files(task: Task) -> None:
    """Refuse files of a task that cannot be read as one, where a workflow starts.

    ConfigError where both splits are the same, DataError where a .csv or .tsv lacks a column.
    """
    if known_sha256(task.files["train"]) == known_sha256(task.files["validation"]):
        files = " and ".join(dict.fromkeys(task.files.values()))
        raise ConfigError(
            f"config: 'tasks.{task.name}': train and validation are the same ({files}); give validation rows that "
            "nothing is trained on"
        )
    for path in map(Path, task.files.values()):
        if path.is_file() and suffix_of(path) in DIALECTS:
            next(_cells(path, task.layout), None)


def read_own_split(task: Task, split: str, schema: pa.Schema) -> pa.Table:
    """The rows of a split with the columns of `schema`: text, label, and their place in the file.

    DataError names file and row for a missing column, an empty cell and another label, and the file for no rows at all.
    """
    path, layout = Path(task.files[split]), task.layout
    rows = []
    for place, cells in enumerate(_cells(path, layout)):
        for name in (*layout.text, layout.label):
            if cells[name] in (None, ""):
                raise DataError(f"{path}: row {place + 1}: '{name}' is empty; fill it, or leave the row out")
        texts = [cells[name] for name in layout.text]
        if not all(isinstance(text, str) for text in texts):
            raise DataError(f"{path}: row {place + 1}: a text is {texts}, no text; correct it")
        rows.append([*texts, _label(task, cells[layout.label], f"{path}: row {place + 1}"), place])
    if not rows:
        raise DataError(f"{path}: has no rows; give '{task.name}' some")
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.table(arrays, schema=schema.remove_metadata())


def refuse_shared_texts(task: Task, train: pa.Table, validation: pa.Table) -> None:
    """DataError where more than half of the validation rows have the texts of a training row; a line on stderr where
    fewer do."""
    trained, validated = (
        zip(*(rows[name].to_pylist() for name in task.columns), strict=True) for rows in (train, validation)
    )
    known = set(trained)
    shared = sum(texts in known for texts in validated)
    said = f"{task.files['validation']}: {shared:,} of {validation.num_rows:,} rows have the text of a training row"
    if 2 * shared > validation.num_rows:
        raise DataError(f"{said}; give '{task.name}' validation rows that nothing is trained on")
    if shared:
        print(f"warning: {said}", file=sys.stderr)


def _cells(path: Path, layout: Layout) -> Iterator[dict[str, Any]]:
    """The cells of each row, with those of text and label."""
    if not path.is_dir() and suffix_of(path) not in KINDS:
        raise DataError(f"{path}: is no {', '.join(KINDS)} and no folder of save_to_disk; convert it")
    is_text = not path.is_dir() and suffix_of(path) in DIALECTS
    for row in read_cells(path, absent="correct its path") if is_text else _dataset_cells(path, layout.label):
        if isinstance(row, DataError):
            raise row
        for name in (*layout.text, layout.label):
            if name not in row:
                raise DataError(f"{path}: no column '{name}', found {', '.join(row)}; correct 'tasks'")
        yield row


def _dataset_cells(path: Path, label: str) -> Iterator[dict[str, Any]]:
    """The cells of each row that `datasets` reads; class numbers of its own kind become names."""
    with open_data(path, absent="correct its path") as splits:
        if len(splits) > 1:
            first = path / next(iter(splits))
            raise DataError(f"{path}: has the splits {', '.join(splits)}; name one of them, such as {first}")
        (data,) = splits.values()
        names = getattr((data.features or {}).get(label), "names", None)
        for row in data:
            number = row.get(label)
            yield {**row, label: names[number]} if names and number is not None else row


def _label(task: Task, cell: Any, place: str) -> int | float:
    """The number of a class by its name, or by itself where names are no numbers; or a grade."""
    if task.labels:
        classes = {word: number for number, name in enumerate(task.labels) for word in (name, *ALIASES.get(name, ()))}
        if not any(name.lstrip("-").isdigit() for name in task.labels):
            classes |= {str(number): number for number in range(len(task.labels))}
        word = str(cell).lower() if isinstance(cell, bool) else str(cell)
        if word in classes:
            return classes[word]
        raise DataError(
            f"{place}: '{task.layout.label}' is {cell!r}, expected one of {', '.join(task.labels)}; correct it"
        )
    try:
        grade = float(cell)
    except (TypeError, ValueError):
        grade = math.nan
    if math.isfinite(grade):
        return grade
    raise DataError(f"{place}: '{task.layout.label}' is {cell!r}, expected a number; correct it")
