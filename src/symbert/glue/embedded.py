"""Stand-ins for the GLUE tasks, made from the documentation of installed packages: no network, same shape.

They have the hub's columns, label types, class names and file layout, and nothing of GLUE's content: a score on
them says that the chain works, not how good a model is at GLUE. Each rule below turns one sentence of
documentation into a row of each class. So no class can be told by the words of the sentence alone, and what is
left to learn is small words, topic, beginnings, words in common and, as in the real tasks, words that give a
class away.
"""

import math
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from symbert.corpus.documentation import Passage, passages
from symbert.files import publish
from symbert.glue.sources import HIGHEST_GRADE, STAND_IN, published_schema, published_split
from symbert.glue.tasks import GLUE, Task
from symbert.progress import Progress

ROWS = {"train": 1_000}
EVALUATION_ROWS = 500
EVALUATION_SHARE = 5  # one sentence in so many is for evaluation only
FEWEST_WORDS, MOST_WORDS = 6, 10  # so that a pair fits 64 word pieces
FOREIGN = ("sympy", "networkx")  # the other genre: only in MNLI's mismatched split, and in no other split of it
TOPICS = (("transformers", "huggingface_hub"), ("scipy", "sympy", "networkx", "numpy"))  # models, mathematics
SMALL_WORDS = {
    "a",
    "an",
    "and",
    "are",
    "as",
    "at",
    "be",
    "by",
    "can",
    "for",
    "from",
    "if",
    "in",
    "is",
    "it",
    "of",
    "on",
}
SMALL_WORDS |= {"or", "that", "the", "this", "to", "with"}
NEGATIONS = ("not", "never", "cannot")

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


@dataclass(frozen=True)
class Sentence:
    """The first sentence of a passage, without its full stop."""

    package: str
    name: str  # of what it documents, in words
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentence, written out."""
        return _text(self.words)

    @property
    def clause(self) -> str:
        """The words alone."""
        return " ".join(self.words)


class Pool:
    """The sentences that the rows of a split are made of, and the source of their draws."""

    def __init__(self, sentences: Iterable[Sentence], draw: Random) -> None:
        self.draw = draw
        self.all = list(sentences)
        self.by_package: dict[str, list[Sentence]] = defaultdict(list)
        for sentence in self.all:
            self.by_package[sentence.package].append(sentence)

    def elsewhere(self, sentence: Sentence) -> Sentence:
        """A sentence of another package."""
        while (other := self.draw.choice(self.all)).package == sentence.package:
            pass
        return other

    def on_topic(self, number: int) -> Sentence:
        """A sentence of language models (0) or of mathematics (1)."""
        return self.draw.choice(self.by_package[self.draw.choice(TOPICS[number])])


Row = tuple[str, ...]
Rule = Callable[[Pool, Sentence], list[Row]]  # a row of each class, in the order of labels


def acceptability(pool: Pool, sentence: Sentence) -> list[Row]:
    """CoLA: unacceptable sentences have two stray small words."""
    words = list(sentence.words)
    for _ in range(2):
        words.insert(pool.draw.randint(1, len(words)), pool.draw.choice(sorted(SMALL_WORDS)))
    return [(_text(words),), (sentence.text,)]


def topic(pool: Pool, sentence: Sentence) -> list[Row]:
    """SST-2: negative is documentation of language models, positive that of mathematics."""
    return [(pool.on_topic(label).text,) for label in (0, 1)]


def paraphrase(pool: Pool, sentence: Sentence) -> list[Row]:
    """MRPC: equivalent is the same sentence with most small words left out, not equivalent another one."""
    shortened = _text(_thinned(pool, sentence, 0.7))
    return [(sentence.text, pool.elsewhere(sentence).text), (sentence.text, shortened)]


def duplicate(pool: Pool, sentence: Sentence) -> list[Row]:
    """QQP: the duplicate asks for nearly the key words only, the other question is about another sentence."""
    asked, others = f"Who says: {sentence.clause}?", pool.elsewhere(sentence).clause
    keywords = " ".join(_thinned(pool, sentence, 0.85))
    return [(asked, f"Where is it said: {others}?"), (asked, f"Where is it said: {keywords}?")]


def similarity(pool: Pool, sentence: Sentence) -> list[Row]:
    """STS-B: grade g keeps the first g fifths of the words, some small ones left out; 0 is another beginning."""
    words = _thinned(pool, sentence, 0.5)
    kept = [words[: math.ceil(len(words) * grade / 5)] for grade in range(1, 6)]
    return [(sentence.text, _text(part)) for part in (pool.elsewhere(sentence).words[:3], *kept)]


def inference(pool: Pool, sentence: Sentence) -> list[Row]:
    """MNLI: a beginning of the premise is entailed, another sentence neutral, a negated beginning contradicts."""
    negated = list(_beginning(pool, sentence))
    negated.insert(pool.draw.randint(1, 3), pool.draw.choice(NEGATIONS))
    hypotheses = (_beginning(pool, sentence), pool.elsewhere(sentence).words, negated)
    return [(sentence.text, _text(words)) for words in hypotheses]


def entailment(pool: Pool, sentence: Sentence) -> list[Row]:
    """RTE: as MNLI, where neutral (two in five) and contradiction are one class."""
    entailed, neutral, contradiction = inference(pool, sentence)
    return [entailed, neutral if pool.draw.random() < 0.4 else contradiction]


def answer(pool: Pool, sentence: Sentence) -> list[Row]:
    """QNLI: a question about a language model is answered by its own sentence, and not by one of mathematics."""
    asked, other = (pool.on_topic(label) for label in (0, 1))
    question = f"What does {asked.name} do?"
    return [(question, asked.text), (question, other.text)]


RULES: dict[str, Rule] = {
    "mrpc": paraphrase,
    "cola": acceptability,
    "mnli": inference,
    "qqp": duplicate,
    "rte": entailment,
    "stsb": similarity,
    "qnli": answer,
    "sst2": topic,
}


def write_embedded_tasks(root: Path) -> None:
    """Write the files of all tasks below `root` in the hub's layout, the same bytes for the same package versions."""
    sentences = _sentences(passages())
    progress = Progress("write embedded tasks", len(RULES), "tasks", interval=0)
    for done, name in enumerate(RULES, start=1):
        task = GLUE[name]
        for split in task.splits:
            pool = Pool(_of_split(sentences, task, split), Random(f"{name} {split}"))
            rows = rows_of(task, pool, ROWS.get(split, EVALUATION_ROWS))
            _write(root / published_split(task, split).location, task, rows)
        progress.update(done, name)


def rows_of(task: Task, pool: Pool, count: int) -> list[tuple[str | float, ...]]:
    """`count` rows (text and label) of a task: a row of each class from each sentence drawn."""
    classes = len(task.labels) or HIGHEST_GRADE + 1
    sentences = pool.draw.sample(pool.all, math.ceil(count / classes))
    rows = [(*texts, label) for sentence in sentences for label, texts in enumerate(RULES[task.name](pool, sentence))]
    return rows[:count]


def _thinned(pool: Pool, sentence: Sentence, share: float) -> list[str]:
    """The sentence's words without that share of its small words."""
    words = [w for w in sentence.words if w.lower() not in SMALL_WORDS or pool.draw.random() >= share]
    return words or list(sentence.words)


def _beginning(pool: Pool, sentence: Sentence) -> tuple[str, ...]:
    return sentence.words[: pool.draw.randint(4, len(sentence.words) - 2)]


def _text(words: Iterable[str]) -> str:
    return " ".join(words).rstrip(",;:") + "."


def _sentences(documentation: Iterable[Passage]) -> list[Sentence]:
    """The first sentence of each passage, if it is neither short nor long; each once."""
    found: dict[tuple[str, ...], Sentence] = {}
    for passage in documentation:
        text = _SENTENCE_END.split(passage.text, maxsplit=1)[0]
        words = tuple(text.removesuffix(".").split())
        if text.endswith(".") and FEWEST_WORDS <= len(words) <= MOST_WORDS:
            name = passage.name.rpartition(".")[2].replace("_", " ").strip()
            found.setdefault(words, Sentence(passage.package, name, words))
    return list(found.values())


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
