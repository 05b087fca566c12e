"""Stand-ins for the GLUE tasks: each function turns one sentence of documentation into a row of each class.

It changes the order of the words, or what stands between them. So the words alone say little, and to know which words
follow each other, as pre-training teaches, helps. `symbert.tasks` says which task has which function.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from symbert.tasks import HIGHEST_GRADE

STAND_IN_ROWS, STAND_IN_EVALUATION_ROWS = 1_000, 500  # of a split


@dataclass(frozen=True)
class Sentence:
    """The first sentence of a passage, without its full stop."""

    package: str
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

    def elsewhere(self, sentence: Sentence) -> Sentence:
        """A sentence of another package."""
        while (other := self.draw.choice(self.all)).package == sentence.package:
            pass
        return other


Row = tuple[str, ...]
StandIn = Callable[[Pool, Sentence], list[Row]]  # gives a row of each class, in the order of labels


def acceptability(pool: Pool, sentence: Sentence) -> list[Row]:
    """CoLA: unacceptable is the words of two sentences in turn."""
    return [(_text(_mixed(pool, sentence)),), (sentence.text,)]


def direction(pool: Pool, sentence: Sentence) -> list[Row]:
    """SST-2: positive reads forwards, negative backwards."""
    return [(_text(sentence.words[::-1]),), (sentence.text,)]


def paraphrase(pool: Pool, sentence: Sentence) -> list[Row]:
    """MRPC: a sentence is equivalent to its beginning, but not when it is read backwards."""
    beginning = _text(_beginning(pool, sentence))
    return [(_text(sentence.words[::-1]), beginning), (sentence.text, beginning)]


def duplicate(pool: Pool, sentence: Sentence) -> list[Row]:
    """QQP: a question has its beginning as a duplicate, but not when its words are shuffled."""
    beginning = _question(_beginning(pool, sentence))
    return [(_question(_shuffled(pool, sentence)), beginning), (_question(sentence.words), beginning)]


def similarity(pool: Pool, sentence: Sentence) -> list[Row]:
    """STS-B: grade g leaves the first g fifths of the words as they are, and mixes the rest with another sentence."""
    mixed, words = _mixed(pool, sentence), sentence.words
    intact = [math.ceil(len(words) * grade / HIGHEST_GRADE) for grade in range(HIGHEST_GRADE + 1)]
    return [(_text([*words[:count], *mixed[count:]]), sentence.text) for count in intact]


def inference(pool: Pool, sentence: Sentence) -> list[Row]:
    """MNLI: a sentence entails its beginning; mixed with another it is neutral, read backwards it contradicts."""
    premises = (sentence.words, _mixed(pool, sentence), sentence.words[::-1])
    return [(_text(words), _text(_beginning(pool, sentence))) for words in premises]


def entailment(pool: Pool, sentence: Sentence) -> list[Row]:
    """RTE: as MNLI, where neutral and contradiction are one class."""
    entailed, *others = inference(pool, sentence)
    return [entailed, pool.draw.choice(others)]


def pronoun(pool: Pool, sentence: Sentence) -> list[Row]:
    """WNLI: as RTE, its classes the other way round."""
    return entailment(pool, sentence)[::-1]


def answer(pool: Pool, sentence: Sentence) -> list[Row]:
    """QNLI: a question is answered by the sentence that it was made of, but not when its words are shuffled."""
    return [(_question(sentence.words), sentence.text), (_question(_shuffled(pool, sentence)), sentence.text)]


def _mixed(pool: Pool, sentence: Sentence) -> list[str]:
    """The words of the sentence and of one from another package in turn, as many as the sentence has."""
    both = zip(sentence.words, pool.elsewhere(sentence).words, strict=False)
    mixed = [word for pair in both for word in pair]
    return mixed[: len(sentence.words)]


def _shuffled(pool: Pool, sentence: Sentence) -> list[str]:
    return pool.draw.sample(sentence.words, len(sentence.words))


def _question(words: Iterable[str]) -> str:
    return " ".join(words) + "?"


def _beginning(pool: Pool, sentence: Sentence) -> tuple[str, ...]:
    return sentence.words[: pool.draw.randint(4, len(sentence.words) - 2)]


def _text(words: Iterable[str]) -> str:
    return " ".join(words).rstrip(",;:") + "."
