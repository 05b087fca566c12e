"""Rows of a task of the user's own, with the hub's columns, from the files that the `datasets` library reads."""

import glob
import hashlib
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from symbert.errors import DataError
from symbert.files import reading, sha256_of
from symbert.tasks import Layout, Task

LOADERS: dict[str, tuple[str, dict[str, Any]]] = {
    ".csv": ("csv", {}),
    ".tsv": ("csv", {"sep": "\t"}),
    ".jsonl": ("json", {}),
    ".ndjson": ("json", {}),
    ".json": ("json", {}),
    ".parquet": ("parquet", {}),
    ".arrow": ("arrow", {}),
}
"""Loader of the `datasets` library and its options, by the end of a file's name; .gz may follow."""

# Cells of a boolean column, and how pandas writes them; YAML reads no and yes as truth values, too.
ALIASES = {"no": ("false", "False"), "yes": ("true", "True")}


def identity_of(task: Task) -> dict[str, Any]:
    """What the rows of a task and their scores follow from: the content of its files, whatever their names."""
    contents = {split: _sha256_of(Path(path), f"tasks.{task.name}.{split}") for split, path in task.files.items()}
    layout = {"columns": list(task.layout.text), "label": task.layout.label}
    return {**layout, "labels": list(task.labels), "metrics": list(task.metrics), "sha256": contents}


def _sha256_of(path: Path, key: str) -> str:
    """Of a folder, that of its files' names and contents. MissingInputError names the key of the configuration."""
    with reading(path, absent=f"correct '{key}' of the configuration"):
        if not path.is_dir():
            return sha256_of(path)
        listed = [
            f"{sha256_of(file)}  {file.relative_to(path)}\n" for file in sorted(path.rglob("*")) if file.is_file()
        ]
        return hashlib.sha256("".join(listed).encode()).hexdigest()


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


def _cells(path: Path, layout: Layout) -> Iterator[dict[str, Any]]:
    """The cells of text and label of each row; class numbers of the library's own kind become names."""
    wanted = (*layout.text, layout.label)
    try:
        with reading(path, absent="correct its path"), tempfile.TemporaryDirectory(prefix="symbert-") as cache:
            data = _opened(path, wanted, cache)
            names = getattr((data.features or {}).get(layout.label), "names", None)
            for row in data:
                for name in wanted:
                    if name not in row:
                        raise DataError(f"{path}: no column '{name}', found {', '.join(row)}; correct 'tasks'")
                number = row[layout.label]
                yield {**row, layout.label: names[number]} if names and number is not None else row
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        message = " ".join(str(error).split())
        raise DataError(f"{path}: damaged, or not what its name says ({message}); correct it") from None


def _opened(path: Path, columns: tuple[str, ...], cache: str) -> Any:
    """A file or a folder of `save_to_disk` as a data set; nothing is copied to a cache that stays."""
    import datasets

    datasets.utils.logging.set_verbosity(datasets.utils.logging.CRITICAL)  # errors are ours to tell
    if path.is_dir():
        saved = datasets.load_from_disk(str(path))
        if isinstance(saved, datasets.DatasetDict):
            raise DataError(
                f"{path}: has the splits {', '.join(saved)}; name one of them, such as {path / next(iter(saved))}"
            )
        return saved
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in LOADERS:
        raise DataError(f"{path}: is no {', '.join(LOADERS)} and no folder of save_to_disk; convert it")
    with open(path, "rb"):  # or `datasets` would tell of it in words of its own
        loader, options = LOADERS[suffix]
    if loader == "csv":  # every cell is text: NA and null are words
        options = {**options, "converters": dict.fromkeys(columns, str), "keep_default_na": False}
    file = glob.escape(str(path))
    return datasets.load_dataset(loader, data_files=file, cache_dir=cache, split="train", streaming=True, **options)


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
