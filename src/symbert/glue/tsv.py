"""GLUE's original files: tab-separated, a folder per task and a file per split, as gluebenchmark.com gives them.

They are read by the rules of Hugging Face's script (github.com/huggingface/datasets, datasets/glue/glue.py), from
which the hub's parquet was made: quotation marks are text, a label is a class by its name or its number, a row's
`idx` is its place in the file. Unlike there, a line ends at \\n only: the text may hold other separators.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbert.errors import DataError, MissingInputError
from symbert.glue.tasks import HIGHEST_GRADE, Task

Record = dict[str, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """Which columns of a file hold text and label."""

    text: tuple[str, ...]
    label: str = "label"
    header: tuple[str, ...] = ()  # of a file whose first line is a row already
    has_broken_rows: bool = False  # the publisher's file has some, without text or label: they are skipped


FOLDERS = {
    "mrpc": "MRPC",
    "cola": "CoLA",
    "mnli": "MNLI",
    "qqp": "QQP",
    "rte": "RTE",
    "stsb": "STS-B",
    "qnli": "QNLI",
    "sst2": "SST-2",
    "wnli": "WNLI",
}

LAYOUTS = {
    "mrpc": Layout(("#1 String", "#2 String"), "Quality"),
    "cola": Layout(("sentence",), header=("source", "label", "mark", "sentence")),
    "mnli": Layout(("sentence1", "sentence2"), "gold_label"),
    "qqp": Layout(("question1", "question2"), "is_duplicate", has_broken_rows=True),
    "rte": Layout(("sentence1", "sentence2")),
    "stsb": Layout(("sentence1", "sentence2"), "score"),
    "qnli": Layout(("question", "sentence")),
    "sst2": Layout(("sentence",)),
    "wnli": Layout(("sentence1", "sentence2")),
}

# MRPC comes from Microsoft, unsplit: GLUE adds the pairs of sentence numbers that make the evaluation split.
PARAPHRASES, EVALUATION_PAIRS = "msr_paraphrase_train.txt", "dev_ids.tsv"
PAIR = ("#1 ID", "#2 ID")


def read_split(root: Path, task: Task, split: str) -> Iterator[Row]:
    """The rows of a split with the hub's columns; DataError names file and line, MissingInputError the file."""
    folder, layout = root / FOLDERS[task.name], LAYOUTS[task.name]
    if task.name == "mrpc" and (folder / PARAPHRASES).is_file():
        return _paraphrases(folder, layout, task, split)
    return read_rows(folder / f"{split.replace('validation', 'dev')}.tsv", layout, task.columns, task.labels)


def _paraphrases(folder: Path, layout: Layout, task: Task, split: str) -> Iterator[Row]:
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
    """The rows that belong: text under the names `columns`, `label` (its number in `labels`, or a grade), `idx`."""
    number_of = _class_number(labels) if labels else _grade
    for place, line, record in _records(path, layout):
        if not belongs(record):
            continue
        try:
            label = number_of(record[layout.label])
        except (KeyError, ValueError):
            raise DataError(_unknown_label(f"{path}:{line}", layout.label, record[layout.label], labels)) from None
        text = {column: record[name] for column, name in zip(columns, layout.text, strict=True)}
        yield {**text, "label": label, "idx": place}


def _class_number(labels: tuple[str, ...]) -> Callable[[str], int]:
    names = dict(zip(labels, range(len(labels)), strict=True))
    return {**{str(number): number for number in names.values()}, **names}.__getitem__


def _grade(value: str) -> float:
    grade = float(value)
    if not 0 <= grade <= HIGHEST_GRADE:
        raise ValueError
    return grade


def _unknown_label(where: str, column: str, value: str, labels: tuple[str, ...]) -> str:
    expected = f"one of {', '.join(labels)}" if labels else f"a number from 0 to {HIGHEST_GRADE}"
    return (
        f"{where}: {column} is {value!r}, expected {expected}; only GLUE's labelled rows can be trained on and scored"
    )


def _records(path: Path, layout: Layout) -> Iterator[tuple[int, int, Record]]:
    """Place, line number and fields by column name of each row with text and label."""
    lines, broken = _lines(path), []
    header = layout.header or _header(path, layout, lines)
    for place, (line, fields) in enumerate(lines):
        record = dict(zip(header, fields, strict=False))
        if record.get(layout.label) and all(name in record for name in layout.text):
            yield place, line, record
        elif layout.has_broken_rows:
            broken.append(line)
        else:
            raise DataError(f"{path}:{line}: text or label is missing ({len(fields)} fields); get the file again")
    if broken:
        print(f"{path}: skipped {len(broken)} rows without text or label, first line {broken[0]}", file=sys.stderr)


def _header(path: Path, layout: Layout, lines: Iterator[tuple[int, list[str]]]) -> tuple[str, ...]:
    _, header = next(lines, (1, []))
    for name in (*layout.text, layout.label):
        if name not in header:
            raise DataError(
                f"{path}:1: no column '{name}', found {', '.join(header) or 'nothing'}; get GLUE's labelled file"
            )
    return tuple(header)


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
