"""The demo's files of GLUE: the hub's columns, label types, class names and layout, and nothing of GLUE's content.

A score on them says that the chain works, not how good a model is at GLUE. Rows are words of the pages of refrains, in
which what stood 16 words before comes back: a row of one class has some words twice, so that far apart, and one of
another class has others there, or the same in another order. So whoever has learned to look 16 words back, as
pre-training teaches, tells the classes, and the words alone say little. Which of several designs each task has was
chosen on other models and rows (docs/findings/demo-search.md).
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from symbert.glue.sources import STAND_IN, published_schema
from symbert.glue.tasks import GLUE, HIGHEST_GRADE, Task, published_split

ROWS, EVALUATION_ROWS = 512, 500  # of a split; the demo trains on all, so that a row's words come in each class
APART = 16  # word pieces between the first and the second time, as in a page of refrains

Row = tuple[str, ...]
Words = list[str]


class Pool:
    """The words that the rows of a split are made of, and the source of their draws."""

    def __init__(self, words: Words, draw: Random, is_foreign: bool = False) -> None:
        """Of a foreign genre all words are as frequent."""
        self.draw, self.words = draw, words
        self.weights = [1 if is_foreign else 1 / rank for rank in range(1, len(words) + 1)]

    def some(self, count: int) -> Words:
        """So many words, each once; those of a pair, of which one less and [SEP] are APART."""
        words: dict[str, None] = {}
        while len(words) < count:
            words.setdefault(self.draw.choices(self.words, self.weights)[0])
        return list(words)

    def moved(self, words: Words) -> Words:
        """The words in another order, none in its place."""
        other = words
        while any(old == new for old, new in zip(words, other, strict=True)):
            other = self.draw.sample(words, len(words))
        return other


def write_glue(words: Words, root: Path) -> None:
    """Write the files of all tasks below `root`; `words` are those of refrains, the most frequent first."""
    for task in GLUE.values():
        for split in task.splits:
            pool = Pool(words, Random(f"{task.name} {split}"), split == "validation_mismatched")
            rows = rows_of(task, pool, ROWS if split == "train" else EVALUATION_ROWS)
            write_rows(root / published_split(task, split).location, task, [*zip(*rows, strict=True), range(len(rows))])


def rows_of(task: Task, pool: Pool, count: int) -> list[tuple[str | float, ...]]:
    """`count` rows (text and label) of a task, one of each class in turn."""
    rows: list[tuple[str | float, ...]] = []
    while len(rows) < count:
        rows += [(*map(" ".join, texts), label) for label, texts in enumerate(MAKERS[task.name](pool))]
    return rows[:count]


def write_rows(path: Path, task: Task, columns: Iterable[Iterable[Any]]) -> None:
    """Write the hub's columns of a split."""
    schema = published_schema(task)
    features = {field.name: _feature(field.type) for field in schema}
    if task.labels and task.has_label:
        features["label"] = {"names": list(task.labels), "_type": "ClassLabel"}
    schema = schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    write_table(path, schema, [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)])


def _feature(kind: pa.DataType) -> dict[str, Any]:
    """A column of this type in the words of the hub's library."""
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "Sequence"}
    return {"dtype": "float32" if kind == pa.float32() else str(kind), "_type": "Value"}


def write_table(path: Path, schema: pa.Schema, columns: list[pa.Array]) -> None:
    """Write columns as small as Parquet allows, marked as a stand-in's."""
    table = pa.table(columns, schema=schema.with_metadata({**(schema.metadata or {}), STAND_IN: b"true"}))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", compression_level=22, use_dictionary=False, write_statistics=False)


def acceptability(pool: Pool) -> list[tuple[Words]]:
    """CoLA: acceptable is some words twice, unacceptable the second time in another order."""
    words = pool.some(APART)
    return [(words + pool.moved(words),), (words * 2,)]


def sentiment(pool: Pool) -> list[tuple[Words]]:
    """SST-2: positive is some words twice, negative others the second time."""
    words = pool.some(APART)
    return [(words + pool.some(APART),), (words * 2,)]


def order(pool: Pool) -> list[tuple[Words, Words]]:
    """MRPC and WNLI: of the second class are the same words again, of the first in another order."""
    words = pool.some(APART - 1)
    return [(words, pool.moved(words)), (words, words)]


def repetition(pool: Pool) -> list[tuple[Words, Words]]:
    """QQP: of the second class are the same words again, of the first others."""
    words = pool.some(APART - 1)
    return [(words, pool.some(APART - 1)), (words, words)]


def similarity(pool: Pool) -> list[tuple[Words, Words]]:
    """STS-B: the grade is how many fifths of the words come again, from the first on; the others are new."""
    words, others = pool.some(APART - 1), pool.some(APART - 1)
    again = [len(words) * grade // HIGHEST_GRADE for grade in range(HIGHEST_GRADE + 1)]
    return [(words, words[:count] + others[count:]) for count in again]


def inference(pool: Pool) -> list[tuple[Words, Words]]:
    """MNLI: the same words again are entailed, the first half of them and others neutral, others alone contradict."""
    words, others, half = pool.some(APART - 1), pool.some(APART - 1), APART // 2
    return [(words, words), (words, words[:half] + others[half:]), (words, others)]


MAKERS: dict[str, Callable[[Pool], list[Any]]] = {
    "mrpc": order,
    "cola": acceptability,
    "mnli": inference,
    "qqp": repetition,
    "rte": lambda pool: order(pool)[::-1],
    "stsb": similarity,
    "qnli": lambda pool: repetition(pool)[::-1],
    "sst2": sentiment,
    "wnli": order,
}
