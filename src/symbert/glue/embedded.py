"""The stand-in tasks as files, made from the documentation of packages: no network, same shape as GLUE.

They have the hub's columns, label types, class names and file layout, and nothing of GLUE's content: a score on
them says that the chain works, not how good a model is at GLUE.
"""

import math
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from symbert.corpus.documentation import DOCUMENTATION, Passage, read_documentation
from symbert.files import publish
from symbert.glue import stand_ins
from symbert.glue.sources import STAND_IN, published_schema, published_split
from symbert.glue.stand_ins import STAND_IN_EVALUATION_ROWS, STAND_IN_ROWS, Pool, Sentence, StandIn
from symbert.progress import Progress
from symbert.tasks import GLUE, Task

EVALUATION_SHARE = 5  # one sentence in so many is for evaluation only
FEWEST_WORDS, MOST_WORDS = 6, 10  # so that a pair fits 64 word pieces
FOREIGN = ("sympy", "networkx")  # the other genre: only in MNLI's mismatched split, and in no other split of it

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def write_embedded_tasks(root: Path, documentation: Path = DOCUMENTATION) -> None:
    """Write the files of all tasks below `root` in the hub's layout, the same bytes for the same documentation."""
    sentences = _sentences(read_documentation(documentation))
    progress = Progress("write embedded tasks", len(GLUE), "tasks", interval=0)
    for done, (name, task) in enumerate(GLUE.items(), start=1):
        for split in task.splits:
            pool = Pool(_of_split(sentences, task, split), Random(f"{name} {split}"))
            rows = rows_of(task, pool, STAND_IN_ROWS if split == "train" else STAND_IN_EVALUATION_ROWS)
            _write(root / published_split(task, split).location, task, rows)
        progress.update(done, name)


def rows_of(task: Task, pool: Pool, count: int) -> list[tuple[str | float, ...]]:
    """`count` rows (text and label) of a task: a row of each class from each sentence drawn."""
    stand_in: StandIn = getattr(stand_ins, task.stand_in)
    sentences = pool.draw.sample(pool.all, math.ceil(count / (task.highest_label + 1)))
    rows = [(*texts, label) for sentence in sentences for label, texts in enumerate(stand_in(pool, sentence))]
    return rows[:count]


def _sentences(passages: Iterable[Passage]) -> list[Sentence]:
    """The first sentence of each passage, if it is neither short nor long; each once."""
    sentences: dict[tuple[str, ...], Sentence] = {}
    for passage in passages:
        text = _SENTENCE_END.split(passage.text, maxsplit=1)[0]
        words = tuple(text.removesuffix(".").split())
        if text.endswith(".") and FEWEST_WORDS <= len(words) <= MOST_WORDS:
            sentences.setdefault(words, Sentence(passage.package, words))
    return list(sentences.values())


def _of_split(sentences: list[Sentence], task: Task, split: str) -> list[Sentence]:
    """Training and evaluation share no sentence; the splits of MNLI that are not mismatched have no foreign genre."""
    chosen = [sentence for sentence in sentences if _is_for_evaluation(sentence) == (split != "train")]
    if task.name == "mnli":
        foreign = split == "validation_mismatched"
        chosen = [sentence for sentence in chosen if (sentence.package in FOREIGN) == foreign]
    return chosen


def _is_for_evaluation(sentence: Sentence) -> bool:
    return zlib.crc32(sentence.clause.encode()) % EVALUATION_SHARE == 0


def _write(path: Path, task: Task, rows: list[tuple[str | float, ...]]) -> None:
    schema = published_schema(task)
    columns = [*zip(*rows, strict=True), range(len(rows))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    table = pa.table(arrays, schema=schema.with_metadata({**schema.metadata, STAND_IN: b"true"}))
    with publish(path) as temporary:
        pq.write_table(table, temporary)
