"""Rows whose columns are not one or two texts as texts, label and, of several answers to one question, group.

A function below takes the rows of a split as the hub has them, and gives rows of COLUMNS. A task without a form is read
as its columns stand. `symbert.glue.tasks` says which task has which form, and where it comes from.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from symbert.errors import DataError
from symbert.glue.tasks import Task

QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}  # of COPA
PLACEHOLDER, HIGHLIGHT = "@placeholder", "@highlight"  # of ReCoRD
TEXTS = ("text", "pair")
# `group` is the question that a row is one answer of, numbered from 0, end to end; `credit` is the worth of the answer.
TRUTH = {"label": pa.int64(), "group": pa.int32(), "credit": pa.float32()}
COLUMNS = dict.fromkeys(TEXTS, pa.string()) | TRUTH | {"moved": pa.bool_()}  # whether the published place was wrong

AT_ONCE = 2_000  # rows that are Python objects: ReCoRD has a million, each with its passage

Row = dict[str, Any]


def formed(task: Task, split: str, rows: pa.Table) -> Iterator[pa.Table]:
    """The rows themselves or, of a task with a form, COLUMNS of the rows that it makes of them, some rows at a time.

    DataError names task, split and the row whose text lacks the word, phrase or gap that is asked about.
    """
    if not task.form:
        yield rows
        return
    published = (row for batch in rows.to_batches(max_chunksize=AT_ONCE) for row in batch.to_pylist())
    formed_rows = iter(globals()[task.form](published))
    try:
        while part := list(islice(formed_rows, AT_ONCE)):
            schema = pa.schema([(name, kind) for name, kind in COLUMNS.items() if name in part[0]])
            yield pa.Table.from_pylist(part, schema)
    except DataError as error:
        raise DataError(f"{task.name}: {split}, {error}; get the file again") from None


def _answer(texts: tuple[str, str], label: int, group: int, credit: float) -> Row:
    return {**dict(zip(TEXTS, texts, strict=True)), "label": label, "group": group, "credit": credit}


def choices(rows: Iterable[Row]) -> Iterator[Row]:
    """COPA: the premise and the question beside each of the two choices."""
    for group, row in enumerate(rows):
        if row["question"] not in QUESTIONS:
            raise DataError(f"row {row['idx']}: its question is {row['question']!r}, expected {' or '.join(QUESTIONS)}")
        premise = f"{row['premise']} {QUESTIONS[row['question']]}"
        for number, choice in enumerate(("choice1", "choice2")):
            yield _answer((premise, row[choice]), int(row["label"] == number), group, 0.0)


def answers(rows: Iterable[Row]) -> list[Row]:
    """MultiRC: the paragraph beside question and answer; the answers to one question are a group."""
    groups: dict[tuple[int, int], int] = {}
    answers = []
    for row in rows:
        group = groups.setdefault((row["idx"]["paragraph"], row["idx"]["question"]), len(groups))
        texts = row["paragraph"], f"{row['question']} {row['answer']}"
        answers.append(_answer(texts, row["label"], group, float(row["label"])))
    return sorted(answers, key=lambda answer: answer["group"])


def candidates(rows: Iterable[Row]) -> Iterator[Row]:
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
            yield _answer((passage, query), int(normal(entity) in right), group, credit)


def marked_words(rows: Iterable[Row]) -> Iterator[Row]:
    """WiC: both sentences with the word between asterisks, where it is asked about."""
    for row in rows:
        marked = []
        for number in (1, 2):
            text, start, end = (row[f"{name}{number}"] for name in ("sentence", "start", "end"))
            if not 0 <= start < end <= len(text):
                raise DataError(f"row {row['idx']}: characters {start} to {end} are not in its sentence{number}")
            marked.append(f"{text[:start]}* {text[start:end]} *{text[end:]}")
        yield {**dict(zip(TEXTS, marked, strict=True)), "label": row["label"]}


def marked_phrases(rows: Iterable[Row]) -> Iterator[Row]:
    """WSC: one text with the noun phrase between asterisks and the pronoun between hash signs; an index counts words,
    which blanks part. Where other words stand at an index the phrase is marked nearest to it, and the row is `moved`:
    so in the validation rows as published, of which one says "it" and means "use"."""
    for row in rows:
        words, is_moved, marks = row["text"].split(), False, []
        for number, mark in ((1, "*"), (2, "#")):
            phrase, index = row[f"span{number}_text"].split(), row[f"span{number}_index"]
            first = min(_places(phrase, words), key=lambda place: abs(place - index), default=None)
            if first is None:
                raise DataError(
                    f"row {row['idx']}: its text lacks {' '.join(phrase)!r}, which 'span{number}_text' names"
                )
            is_moved |= first != index
            marks.append((mark, first, first + len(phrase) - 1))
        for mark, first, last in marks:
            words[first] = f"{mark} {words[first]}"
            words[last] = f"{words[last]} {mark}"
        yield {"text": " ".join(words), "label": row["label"], "moved": is_moved}


def _places(phrase: list[str], words: list[str]) -> list[int]:
    """Where a phrase stands among words, of whatever case, and with an ending or punctuation as in "Emma's"."""
    has_phrase = re.compile(rf"(?<!\w){re.escape(' '.join(phrase))}(?!\w)", re.IGNORECASE).search
    places = range(len(words) - len(phrase) + 1) if phrase else ()
    return [place for place in places if has_phrase(" ".join(words[place : place + len(phrase)]))]


def normal(text: str) -> str:
    """A text as the official scripts of SQuAD and ReCoRD compare it: lower case, no punctuation, no articles."""
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def overlap(text: str, answer: str) -> float:
    """F1 of the words that two texts share, 0 to 1."""
    ours, theirs = normal(text).split(), normal(answer).split()
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0
