"""What a classifier reads of a row whose columns are not one or two texts: texts, label, and which rows are a group.

A function below takes the rows of a split one by one, as the hub has them, and gives each `Reading`. A task without a
form is read as its columns stand. `symbert.glue.tasks` says which task has which form, and where it comes from.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from symbert.errors import DataError
from symbert.glue.tasks import Task

QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}  # of COPA
PLACEHOLDER, HIGHLIGHT = "@placeholder", "@highlight"  # of ReCoRD
TEXTS = ("text", "pair")  # columns of what is read
TRUTH = {"label": pa.int64(), "group": pa.int32(), "credit": pa.float32()}

AT_ONCE = 2_000  # rows that are Python objects: ReCoRD has a million, each with its passage

Row = dict[str, Any]


@dataclass(frozen=True)
class Reading:
    """What a classifier reads and is asked."""

    texts: tuple[str, ...]
    label: int
    group: int | None = None  # the question that the row is one answer of; groups are numbered from 0, end to end
    credit: float = 0.0  # of the answer, 0 to 1


def formed(task: Task, split: str, rows: pa.Table) -> Iterator[pa.Table]:
    """The rows themselves or, of a task with a form, text, pair and label of what that makes of them, some rows at a
    time.

    Rows of several answers to one question have `group` and `credit`, too. DataError names task, split and the row
    whose text lacks what is asked about.
    """
    if not task.form:
        yield rows
        return
    each = (row for batch in rows.to_batches(max_chunksize=AT_ONCE) for row in batch.to_pylist())
    every = iter(globals()[task.form](each))
    while readings := _some(every, f"{task.name}: {split}"):
        texts = dict(zip(TEXTS, zip(*(reading.texts for reading in readings), strict=True), strict=False))
        columns = {name: pa.array(values, pa.string()) for name, values in texts.items()}
        truth = TRUTH if readings[0].group is not None else {"label": TRUTH["label"]}
        columns |= {name: pa.array([getattr(one, name) for one in readings], kind) for name, kind in truth.items()}
        yield pa.table(columns)


def _some(readings: Iterator[Reading], place: str) -> list[Reading]:
    try:
        return list(islice(readings, AT_ONCE))
    except DataError as error:
        raise DataError(f"{place}, {error}; get the file again") from None


def choices(rows: Iterable[Row]) -> Iterator[Reading]:
    """COPA: the premise and the question beside each of the two choices."""
    for group, row in enumerate(rows):
        if row["question"] not in QUESTIONS:
            raise DataError(f"row {row['idx']}: its question is {row['question']!r}, expected {' or '.join(QUESTIONS)}")
        premise = f"{row['premise']} {QUESTIONS[row['question']]}"
        for number, choice in enumerate(("choice1", "choice2")):
            yield Reading((premise, row[choice]), int(row["label"] == number), group)


def answers(rows: Iterable[Row]) -> list[Reading]:
    """MultiRC: the paragraph beside question and answer; the answers to one question are a group."""
    groups: dict[tuple[int, int], int] = {}
    readings = []
    for row in rows:
        group = groups.setdefault((row["idx"]["paragraph"], row["idx"]["question"]), len(groups))
        texts = row["paragraph"], f"{row['question']} {row['answer']}"
        readings.append(Reading(texts, row["label"], group, float(row["label"])))
    return sorted(readings, key=lambda reading: reading.group)


def candidates(rows: Iterable[Row]) -> Iterator[Reading]:
    """ReCoRD: the passage beside the query, in which each entity of the passage takes its turn in the gap.

    An entity is right when it is an answer, and has the highest F1 of its words and those of an answer as its credit.
    """
    for group, row in enumerate(rows):
        if PLACEHOLDER not in row["query"] or not row["entities"]:
            raise DataError(f"row {row['idx']}: its query has no {PLACEHOLDER}, or its passage no entities")
        passage, right = row["passage"].replace(HIGHLIGHT, " "), {normal(answer) for answer in row["answers"]}
        for entity in dict.fromkeys(row["entities"]):
            credit = max((overlap(entity, answer) for answer in row["answers"]), default=0.0)
            query = row["query"].replace(PLACEHOLDER, entity)
            yield Reading((passage, query), int(normal(entity) in right), group, credit)


def marked_words(rows: Iterable[Row]) -> Iterator[Reading]:
    """WiC: both sentences with the word between asterisks, where it is asked about."""
    return (Reading(tuple(_marked_word(row, number) for number in (1, 2)), row["label"]) for row in rows)


def _marked_word(row: Row, number: int) -> str:
    text, start, end = (row[f"{name}{number}"] for name in ("sentence", "start", "end"))
    if not 0 <= start < end <= len(text):
        raise DataError(f"row {row['idx']}: characters {start} to {end} are not in its sentence{number}")
    return f"{text[:start]}* {text[start:end]} *{text[end:]}"


def marked_phrases(rows: Iterable[Row]) -> Iterator[Reading]:
    """WSC: one text with the noun phrase between asterisks and the pronoun between hash signs."""
    return (Reading((_marked_phrases(row),), row["label"]) for row in rows)


def _marked_phrases(row: Row) -> str:
    """An index counts the words of the text, which blanks part."""
    words = row["text"].split()
    for number, mark in ((1, "*"), (2, "#")):
        first = row[f"span{number}_index"]
        last = first + len(row[f"span{number}_text"].split()) - 1
        if not 0 <= first <= last < len(words):
            raise DataError(f"row {row['idx']}: words {first} to {last} of 'span{number}' are not in its text")
        words[first] = f"{mark} {words[first]}"
        words[last] = f"{words[last]} {mark}"
    return " ".join(words)


def normal(text: str) -> str:
    """A text as the official scripts of SQuAD and ReCoRD compare it: lower case, no punctuation, no articles."""
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def overlap(text: str, answer: str) -> float:
    """F1 of the words that two texts share, 0 to 1."""
    ours, theirs = normal(text).split(), normal(answer).split()
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0
