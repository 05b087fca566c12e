"""The demo's files of SuperGLUE, SQuAD 2.0 and BLiMP: the hub's columns and layout, and nothing of their content.

A function below turns one sentence into rows of the hub's columns but for `idx`; of a task with classes one of each.
A context of SQuAD is some sentences of one package, now and then more than a row holds. Of each, four questions name
words that follow each other; the answer is what comes next. Half of the questions name words of another package, and
have none. Of a pair of BLiMP the better sentence is one of documentation, the worse one has two words exchanged.
"""

import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from demo_documentation import Passage
from demo_tasks import write_rows, write_table

from symbert.glue.blimp import PARADIGMS, STAND_IN_PAIRS, published_pairs
from symbert.glue.forms import PLACEHOLDER, QUESTIONS
from symbert.glue.prepare import SENTENCES
from symbert.glue.sources import published_schema
from symbert.glue.tasks import SUITES, Task, published_split

ROWS, EVALUATION_ROWS = 1_000, 500  # of a split
EVALUATION_SHARE = 5  # one sentence in so many is for evaluation only
FEWEST_WORDS, MOST_WORDS = 6, 10  # so that a pair fits 64 word pieces
ENTITIES = 4  # of a passage of ReCoRD, at most
FEWEST_SENTENCES, MOST_SENTENCES = 1, 5  # of a context of SQuAD
ASKED = 3  # words
PAIRS = 2  # of a question with and one without answer, of a context

TEXTS = [pa.field(name, pa.string()) for name in (*SENTENCES, "field", "linguistics_term", "UID")]  # of BLiMP
METHODS = ("simple_LM_method", "one_prefix_method", "two_prefix_method", "lexically_identical")
PUBLISHED = pa.schema([*TEXTS, *(pa.field(name, pa.bool_()) for name in METHODS), pa.field("pair_id", pa.int64())])

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")

Row = dict[str, Any]


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


def write_superglue(sentences: list[Sentence], root: Path) -> None:
    """Write the files of SuperGLUE's tasks below `root`."""
    for task in SUITES["superglue"].tasks.values():
        for split in task.splits:
            rows = rows_of(task, Pool(of_split(sentences, split), Random(f"{task.name} {split}")), rows_in(split))
            columns = [[row[column] for row in rows] for column in published_schema(task).names]
            write_rows(root / published_split(task, split).location, task, columns)


def sentences_in(passages: Iterable[Passage]) -> list[Sentence]:
    """The first sentence of each passage, if it is neither short nor long; each once."""
    sentences: dict[tuple[str, ...], Sentence] = {}
    for passage in passages:
        text = _SENTENCE_END.split(passage.text, maxsplit=1)[0]
        words = tuple(text.removesuffix(".").split())
        if text.endswith(".") and FEWEST_WORDS <= len(words) <= MOST_WORDS:
            sentences.setdefault(words, Sentence(passage.package, words))
    return list(sentences.values())


def of_split(sentences: list[Sentence], split: str) -> list[Sentence]:
    """Training and evaluation share no sentence."""
    return [
        sentence
        for sentence in sentences
        if (zlib.crc32(sentence.clause.encode()) % EVALUATION_SHARE == 0) == (split != "train")
    ]


def rows_in(split: str) -> int:
    """How many rows a split has."""
    return ROWS if split == "train" else EVALUATION_ROWS


def rows_of(task: Task, pool: Pool, count: int) -> list[Row]:
    """`count` rows of a task: those of one sentence after the other."""
    rows: list[Row] = []
    index, passage = published_schema(task).field("idx").type, 0
    while len(rows) < count:
        for answer, row in enumerate(MAKERS[task.name](pool, pool.draw.choice(pool.all))):
            numbers = {"paragraph": passage, "passage": passage, "question": 0, "query": 0, "answer": answer}
            whole = {field.name: numbers[field.name] for field in index} if pa.types.is_struct(index) else len(rows)
            rows.append({**row, "idx": whole})
        passage += 1
    return rows[:count]


def question_of_passage(pool: Pool, sentence: Sentence) -> list[Row]:
    """BoolQ: the passage says what is asked, but not when the words of the question are shuffled."""
    passage = f"{pool.elsewhere(sentence).text} {sentence.text}"
    questions = shuffled_words(pool, sentence), beginning_of(pool, sentence)
    return [
        {"question": question_of(words), "passage": passage, "label": label} for label, words in enumerate(questions)
    ]


def inference(pool: Pool, sentence: Sentence) -> list[tuple[str, str]]:
    """A sentence entails its beginning; mixed with another it is neutral, read backwards it contradicts."""
    premises = (sentence.words, mixed_words(pool, sentence), sentence.words[::-1])
    return [(text_of(words), text_of(beginning_of(pool, sentence))) for words in premises]


def two_classes(pool: Pool, sentence: Sentence) -> list[tuple[str, str]]:
    """As `inference`, where neutral and contradiction are one class."""
    entailed, *others = inference(pool, sentence)
    return [entailed, pool.draw.choice(others)]


def commitment(pool: Pool, sentence: Sentence) -> list[Row]:
    """CB: as `inference`."""
    entailed, neutral, contradicted = inference(pool, sentence)
    texts = entailed, contradicted, neutral
    return [{"premise": row[0], "hypothesis": row[1], "label": label} for label, row in enumerate(texts)]


def entailment(pool: Pool, sentence: Sentence) -> list[Row]:
    """RTE: as `two_classes`."""
    texts = two_classes(pool, sentence)
    return [{"premise": row[0], "hypothesis": row[1], "label": label} for label, row in enumerate(texts)]


def alternatives(pool: Pool, sentence: Sentence) -> list[Row]:
    """COPA: the premise is the first half of a sentence, the right choice its second half, not that of another one."""
    half = len(sentence.words) // 2
    ends = text_of(sentence.words[half:]), text_of(pool.elsewhere(sentence).words[-half:])
    label = pool.draw.randrange(2)
    return [
        {
            "premise": text_of(sentence.words[:half]),
            "choice1": ends[label],
            "choice2": ends[1 - label],
            "question": pool.draw.choice(sorted(QUESTIONS)),
            "label": label,
        }
    ]


def answers(pool: Pool, sentence: Sentence) -> list[Row]:
    """MultiRC: what follows some words of a paragraph; right is a beginning of the rest, and not words of another."""
    other, half = pool.elsewhere(sentence), len(sentence.words) // 2
    right = [sentence.words[half:], sentence.words[half : half + 2]][: pool.draw.randint(1, 2)]
    told = [(words, 1) for words in right] + [(other.words[-half:], 0), (other.words[:2], 0)]
    pool.draw.shuffle(told)
    question = f"What follows {' '.join(sentence.words[:half])}?"
    asked = {"paragraph": f"{sentence.text} {other.text}", "question": question}
    return [{**asked, "answer": " ".join(words), "label": label} for words, label in told]


def cloze(pool: Pool, sentence: Sentence) -> list[Row]:
    """ReCoRD: a word of the sentence is missing from the query, and is among the entities of the passage."""
    other = pool.elsewhere(sentence)
    place = pool.draw.randrange(len(sentence.words))
    query = [*sentence.words[:place], PLACEHOLDER, *sentence.words[place + 1 :]]
    entities = list(dict.fromkeys([*pool.draw.sample(other.words, ENTITIES - 1), sentence.words[place]]))
    pool.draw.shuffle(entities)
    text = {"passage": f"{sentence.text} {other.text}", "query": text_of(query)}
    return [{**text, "entities": entities, "answers": [sentence.words[place]]}]


def senses(pool: Pool, sentence: Sentence) -> list[Row]:
    """WiC: a word has another sense where the words around it stand in another order."""
    place = pool.draw.randrange(len(sentence.words))
    word, around = sentence.words[place], [*sentence.words[:place], *sentence.words[place + 1 :]]
    shuffled = pool.draw.sample(around, len(around))
    rows = []
    for label, words in enumerate(([*shuffled[:place], word, *shuffled[place:]], sentence.words)):
        start1, start2 = (len(" ".join([*before[:place], ""])) for before in (sentence.words, words))
        row = {"word": word, "sentence1": sentence.clause, "sentence2": " ".join(words), "label": label}
        rows.append({**row, "start1": start1, "end1": start1 + len(word), "start2": start2, "end2": start2 + len(word)})
    return rows


def reference(pool: Pool, sentence: Sentence) -> list[Row]:
    """WSC: a pronoun stands for the word that the same words follow before."""
    place, other = pool.draw.sample(range(len(sentence.words) - 1), 2)
    words = [*sentence.words, "it", *sentence.words[place + 1 :]]
    said = {"text": " ".join(words), "span2_text": "it", "span2_index": len(sentence.words)}
    spans = enumerate((other, place))
    return [{**said, "span1_text": words[at], "span1_index": at, "label": label} for label, at in spans]


MAKERS: dict[str, Callable[[Pool, Sentence], list[Row]]] = {
    "boolq": question_of_passage,
    "cb": commitment,
    "copa": alternatives,
    "multirc": answers,
    "record": cloze,
    "superglue_rte": entailment,
    "wic": senses,
    "wsc": reference,
}


def write_squad2(sentences: list[Sentence], root: Path) -> None:
    """Write the files of SQuAD 2.0 below `root`."""
    task = SUITES["squad2"].tasks["squad2"]
    for split in task.splits:
        pool, rows = Pool(of_split(sentences, split), Random(f"squad2 {split}")), []
        while len(rows) < rows_in(split):
            rows += questions_of(pool, pool.draw.choice(pool.all), 1 if split == "train" else 2)
        rows = [{"id": f"{split}-{number}", **row} for number, row in enumerate(rows[: rows_in(split)])]
        columns = [[row[name] for row in rows] for name in (*task.columns, *task.details)]
        write_rows(root / published_split(task, split).location, task, columns)


def questions_of(pool: Pool, sentence: Sentence, answers: int) -> list[Row]:
    """Questions on a context with this sentence: in turn one with as many answers as said, and one without."""
    same = [each for each in pool.all if each.package == sentence.package and each != sentence]
    others = pool.draw.sample(same, min(pool.draw.randint(FEWEST_SENTENCES, MOST_SENTENCES) - 1, len(same)))
    sentences = [sentence, *others]
    pool.draw.shuffle(sentences)
    context, rows = " ".join(each.text for each in sentences), []
    for asked in (pool.draw.choice(sentences) for _ in range(PAIRS)):
        place, start = pool.draw.randrange(len(asked.words) - ASKED - 1), context.index(asked.text)
        begin = start + len(" ".join(asked.words[: place + ASKED])) + 1
        texts = [" ".join(asked.words[place + ASKED :][: words + 1]) for words in range(answers)]
        texts = [text for text in texts if context.startswith(text, begin)]
        known = {"text": texts, "answer_start": [begin] * len(texts)}
        while (unknown := " ".join(pool.elsewhere(sentence).words[:ASKED])) in context:
            pass
        given = " ".join(asked.words[place : place + ASKED])
        for words, found in ((given, known), (unknown, {"text": [], "answer_start": []})):
            question = f"What follows {words}?"
            rows.append({"title": sentence.package, "context": context, "question": question, "answers": found})
    return rows


def write_blimp(sentences: list[Sentence], root: Path) -> None:
    """Write pairs of all paradigms below `root`."""
    for paradigm, phenomenon in PARADIGMS.items():
        draw, rows = Random(paradigm), []
        while len(rows) < STAND_IN_PAIRS:
            words = list(draw.choice(sentences).words)
            first, second = draw.sample(range(len(words)), 2)
            worse = [*words]
            worse[first], worse[second] = words[second], words[first]
            if worse != words:
                texts = text_of(words), text_of(worse), "stand-in", phenomenon, paradigm
                rows.append((*texts, True, False, False, True, len(rows)))
        columns = [*map(pa.array, zip(*rows, strict=True), PUBLISHED.types)]
        write_table(root / published_pairs(paradigm).location, PUBLISHED, columns)


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
