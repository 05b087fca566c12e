"""The demo's files of GLUE: the hub's columns, label types, class names and layout, and nothing of GLUE's content.

A score on them says that the chain works, not how good a model is at GLUE. A function below turns one sentence into a
row of each class: it changes the order of the words, or what stands between them. So the words alone say little, and
to know which words follow each other, as pre-training teaches, helps.
"""

import json
import math
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from demo_documentation import Passage

from symbert.glue.sources import STAND_IN, published_schema
from symbert.glue.tasks import GLUE, HIGHEST_GRADE, Task, published_split

ROWS, EVALUATION_ROWS = 1_000, 500  # of a split
EVALUATION_SHARE = 5  # one sentence in so many is for evaluation only
FEWEST_WORDS, MOST_WORDS = 6, 10  # so that a pair fits 64 word pieces
FOREIGN = ("sympy", "networkx")  # the other genre: only in MNLI's mismatched split, and in no other split of it

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


@dataclass(frozen=True)
class Sentence:
    """The first sentence of a passage, without its full stop."""

    package: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentence, written out."""
        return text_of(self.words)

    @property
    def clause(self) -> str:
        """The words alone."""
        return " ".join(self.words)


class Pool:
    """The sentences that the rows of a split are made of, and the source of their draws."""

    def __init__(self, sentences: Iterable[Sentence], draw: Random) -> None:
        self.draw = draw
        self.all = list(sentences)

    def elsewhere(self, sentence: Sentence) -> Sentence:
        """A sentence of another package."""
        while (other := self.draw.choice(self.all)).package == sentence.package:
            pass
        return other


Row = tuple[str, ...]


def write_glue(sentences: list[Sentence], root: Path) -> None:
    """Write the files of all tasks below `root`."""
    for task in GLUE.values():
        for split in task.splits:
            pool = Pool(of_split(sentences, task, split), Random(f"{task.name} {split}"))
            rows = rows_of(task, pool, rows_in(split))
            write_rows(root / published_split(task, split).location, task, [*zip(*rows, strict=True), range(len(rows))])


def rows_in(split: str) -> int:
    """How many rows a split has."""
    return ROWS if split == "train" else EVALUATION_ROWS


def rows_of(task: Task, pool: Pool, count: int) -> list[tuple[str | float, ...]]:
    """`count` rows (text and label) of a task: a row of each class from each sentence drawn."""
    sentences, rows = pool.draw.sample(pool.all, math.ceil(count / (len(task.labels) or HIGHEST_GRADE + 1))), []
    for sentence in sentences:
        rows += [(*texts, label) for label, texts in enumerate(MAKERS[task.name](pool, sentence))]
    return rows[:count]


def sentences_in(passages: Iterable[Passage]) -> list[Sentence]:
    """The first sentence of each passage, if it is neither short nor long; each once."""
    sentences: dict[tuple[str, ...], Sentence] = {}
    for passage in passages:
        text = _SENTENCE_END.split(passage.text, maxsplit=1)[0]
        words = tuple(text.removesuffix(".").split())
        if text.endswith(".") and FEWEST_WORDS <= len(words) <= MOST_WORDS:
            sentences.setdefault(words, Sentence(passage.package, words))
    return list(sentences.values())


def of_split(sentences: list[Sentence], task: Task, split: str) -> list[Sentence]:
    """Training and evaluation share no sentence; the splits of MNLI that are not mismatched have no foreign genre."""
    chosen = [
        sentence
        for sentence in sentences
        if (zlib.crc32(sentence.clause.encode()) % EVALUATION_SHARE == 0) == (split != "train")
    ]
    if task.name == "mnli":
        foreign = split == "validation_mismatched"
        chosen = [sentence for sentence in chosen if (sentence.package in FOREIGN) == foreign]
    return chosen


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


def acceptability(pool: Pool, sentence: Sentence) -> list[Row]:
    """CoLA: unacceptable is the words of two sentences in turn."""
    return [(text_of(mixed_words(pool, sentence)),), (sentence.text,)]


def direction(pool: Pool, sentence: Sentence) -> list[Row]:
    """SST-2: positive reads forwards, negative backwards."""
    return [(text_of(sentence.words[::-1]),), (sentence.text,)]


def paraphrase(pool: Pool, sentence: Sentence) -> list[Row]:
    """MRPC: a sentence is equivalent to its beginning, but not when it is read backwards."""
    beginning = text_of(beginning_of(pool, sentence))
    return [(text_of(sentence.words[::-1]), beginning), (sentence.text, beginning)]


def duplicate(pool: Pool, sentence: Sentence) -> list[Row]:
    """QQP: a question has its beginning as a duplicate, but not when its words are shuffled."""
    beginning = question_of(beginning_of(pool, sentence))
    return [(question_of(shuffled_words(pool, sentence)), beginning), (question_of(sentence.words), beginning)]


def similarity(pool: Pool, sentence: Sentence) -> list[Row]:
    """STS-B: of six grades, the second keeps a fifth of the words as they are, the last all; the rest is mixed.

    The whole sentence stands beside it.
    """
    mixed, words = mixed_words(pool, sentence), sentence.words
    intact = [math.ceil(len(words) * grade / HIGHEST_GRADE) for grade in range(HIGHEST_GRADE + 1)]
    return [(text_of([*words[:count], *mixed[count:]]), sentence.text) for count in intact]


def inference(pool: Pool, sentence: Sentence) -> list[Row]:
    """MNLI: a sentence entails its beginning; mixed with another it is neutral, read backwards it contradicts."""
    premises = (sentence.words, mixed_words(pool, sentence), sentence.words[::-1])
    return [(text_of(words), text_of(beginning_of(pool, sentence))) for words in premises]


def entailment(pool: Pool, sentence: Sentence) -> list[Row]:
    """RTE: as MNLI, where neutral and contradiction are one class."""
    entailed, *others = inference(pool, sentence)
    return [entailed, pool.draw.choice(others)]


def pronoun(pool: Pool, sentence: Sentence) -> list[Row]:
    """WNLI: as RTE, its classes the other way round."""
    return entailment(pool, sentence)[::-1]


def answer(pool: Pool, sentence: Sentence) -> list[Row]:
    """QNLI: a question is answered by the sentence that it was made of, but not when its words are shuffled."""
    return [(question_of(sentence.words), sentence.text), (question_of(shuffled_words(pool, sentence)), sentence.text)]


MAKERS: dict[str, Callable[[Pool, Sentence], list[Row]]] = {
    "mrpc": paraphrase,
    "cola": acceptability,
    "mnli": inference,
    "qqp": duplicate,
    "rte": entailment,
    "stsb": similarity,
    "qnli": answer,
    "sst2": direction,
    "wnli": pronoun,
}


def mixed_words(pool: Pool, sentence: Sentence) -> list[str]:
    """The words of the sentence and of one from another package in turn, as many as the sentence has."""
    both = zip(sentence.words, pool.elsewhere(sentence).words, strict=False)
    mixed = [word for pair in both for word in pair]
    return mixed[: len(sentence.words)]


def shuffled_words(pool: Pool, sentence: Sentence) -> list[str]:
    """The words of the sentence in another order, most times."""
    return pool.draw.sample(sentence.words, len(sentence.words))


def question_of(words: Iterable[str]) -> str:
    """Words written as a question."""
    return " ".join(words) + "?"


def beginning_of(pool: Pool, sentence: Sentence) -> tuple[str, ...]:
    """Four words of the sentence or more, but for the last two."""
    return sentence.words[: pool.draw.randint(4, len(sentence.words) - 2)]


def text_of(words: Iterable[str]) -> str:
    """Words written as a sentence."""
    return " ".join(words).rstrip(",;:") + "."
