"""tokie behind its guard: ids as tokenizers gives them, more than ten times as fast.

tokie (https://github.com/chonkie-inc/tokie) is young. It gets no text with a character around which the two differ:
each character is compared when it first occurs. The vocabulary is compared at the start.
"""

import string
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from symbert.corpus.wordpiece import CHUNK, CODE_POINTS, LONGEST_WORD, SPECIAL_TOKENS, Reference, joined

CONTEXTS = (
    "x?x",
    "? X? ?X 1?1 .?.",
    "\u0301?x ?\u0301 x\u0301?\u0301x i\u0307?İ",
    "é?É Σ?Σ?ς 中?中 ᄀ?ᅡ \u200d?\ufe0f",
)
"""Texts around a code point `?`, where `x` is a letter of the vocabulary: words of either case, accents, sigmas
(whose small form may depend on the place), ideographs, parts of syllables, joiners."""

TEXTS_AT_ONCE = 128
LATIN = 0x100  # the code points that are compared at the start
NOT_USED = ("Cn", "Cs")  # categories: not assigned, surrogates
PRIVATE_PLANES = 0xF0000
SEPARATOR = SPECIAL_TOKENS["pad"]


class DisagreementError(Exception):
    """tokie gave other ids than tokenizers, or broke down."""


def guarded(reference: Reference) -> "Guarded | None":
    """tokie behind its guard; None, and a line that says why, where it cannot be trusted: the ids are the same."""
    tokie, vocabulary = load_tokie(reference.tokenizer), reference.tokenizer.get_vocab()
    letter = next((x for x in string.ascii_lowercase if x in vocabulary and f"##{x}" in vocabulary), None)
    if tokie is None:
        problem = "tokie is not installed (no wheel for this platform, or: pip install -c envs/constraints.txt tokie)"
    elif letter is None:
        problem = "the vocabulary has no letter that both begins and continues words, by which to compare tokie"
    else:
        fast = Guarded(tokie, reference, letter)
        differing = fast.difference_in(_odd_texts(letter), _words(vocabulary, letter))
        if differing is None:
            return fast
        problem = f"with this vocabulary tokie and tokenizers differ on {differing[:60]!a}"
    print(f"{problem}: tokenizers alone gives the ids, the same, at a tenth of the speed", file=sys.stderr)
    return None


class Guarded:
    """tokie, and tokenizers for the text that tokie is not trusted with; `referred` counts documents with such text.

    Around which code points tokie gives the ids of tokenizers is compared when each is first met. Around code points of
    the private planes, and those that Unicode, as Python knows it, does not assign, it is never trusted.
    """

    def __init__(self, tokie: Any, reference: Reference, letter: str) -> None:
        self.name = f"tokie {metadata.version('tokie')}"
        self.referred = self._chunks_referred = 0
        self._tokie, self._reference = tokie, reference
        self._contexts = [context.replace("x", letter).replace("X", letter.upper()) for context in CONTEXTS]
        self._compared, self._agreeing = np.zeros((2, CODE_POINTS), bool)
        self._compare(np.arange(LATIN))
        for point in np.flatnonzero(self._agreeing[:128]):  # alone: text that is all ASCII has a path of its own
            self._agreeing[point] = all(self._agree(context.replace("?", chr(point))) for context in self._contexts)
        self._differing_ascii = [chr(point) for point in np.flatnonzero(~self._agreeing[:128])]

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, [CLS] ... [SEP]; DisagreementError when tokie breaks down."""
        return np.concatenate([*self.stream([text])])

    def stream(self, pieces: Iterable[str]) -> Iterator[np.ndarray]:
        """The same, one after the other, of a text in pieces that begin where a line ends."""
        before = self._chunks_referred
        yield from joined(self.encoded(pieces))
        self.referred += self._chunks_referred > before

    def encoded(self, pieces: Iterable[str]) -> Iterator[np.ndarray]:
        """The ids of its chunks, each [CLS] ... [SEP]."""
        for chunk in self._reference.chunks(pieces):
            if self._accepts(chunk):
                yield encode_chunk(self._tokie, chunk)
            else:
                self._chunks_referred += 1
                yield self._reference.encode(chunk)

    def _accepts(self, chunk: str) -> bool:
        # From 65,536 bytes on tokie cuts a text for its threads, within words where it finds no blank (seen on 0.1.4).
        if len(chunk) > CHUNK:
            return False
        if chunk.isascii():
            return not any(character in chunk for character in self._differing_ascii)
        return self.trusts(np.frombuffer(chunk.encode("utf-32-le"), np.uint32))

    def trusts(self, points: np.ndarray) -> bool:
        """Whether both give the same ids around all of these code points."""
        if self._agreeing.take(points).all():
            return True
        self._compare(np.unique(points[~self._compared[points]]))
        return bool(self._agreeing[points].all())

    def difference_in(self, texts: list[str], words: list[str]) -> str | None:
        """A text or word on which the two differ though they agree around its code points, if there is one."""
        characters = set("".join([*texts, *words]))
        self.trusts(np.array([ord(character) for character in characters]))  # which compares many at once
        differing = {character for character in characters if not self.trusts(np.array([ord(character)]))}
        texts, words = ([text for text in some if differing.isdisjoint(text)] for some in (texts, words))
        groups = [[text] for text in texts]
        groups += [words[first : first + TEXTS_AT_ONCE] for first in range(0, len(words), TEXTS_AT_ONCE)]
        return next((group[place] for group in groups for place in np.flatnonzero(self._differ(group))), None)

    def _compare(self, points: np.ndarray) -> None:
        self._compared[points] = True
        used = [
            point for point in points if point < PRIVATE_PLANES and unicodedata.category(chr(point)) not in NOT_USED
        ]
        for first in range(0, len(used), TEXTS_AT_ONCE):
            some = np.array(used[first : first + TEXTS_AT_ONCE])
            for context in self._contexts:
                if len(some):
                    some = some[~self._differ([context.replace("?", chr(point)) for point in some])]
            self._agreeing[some] = True

    def _differ(self, texts: list[str]) -> np.ndarray:
        """For each text, whether the ids differ: first all together, special tokens between them."""
        if len(texts) > 1 and self._agree(SEPARATOR.join(texts)):
            return np.zeros(len(texts), bool)
        return np.array([not self._agree(text) for text in texts])

    def _agree(self, text: str) -> bool:
        try:
            return np.array_equal(self._reference.encode(text), encode_chunk(self._tokie, text))
        except DisagreementError:
            return False


def _odd_texts(x: str) -> list[str]:
    """Texts about blanks, word length, the size of chunks, and special tokens; `x` is a letter of the vocabulary."""
    lengths = [letter * count for letter in (x, "é", "\U00020000") for count in (99, 100, 101, CHUNK)]
    odd = ["", "   ", "\n", f"##{x}", f"{x}##{x}", "[unused1]", f"{x} " * (CHUNK // 2), "\u00a0é" * (CHUNK // 2)]
    for token in SPECIAL_TOKENS.values():
        odd += [token, token * 2, f"{x}{token}{x}", f"[{token}]", f" {token} é "]
        odd += [token.lower(), token[:-1], token[1:], f"{token[:-1]}{token}"]
    return lengths + odd


def _words(vocabulary: dict[str, int], letter: str) -> list[str]:
    """Every beginning of every piece: the rest of a word may begin like a piece and be none."""
    stems = {letter + piece[2:] if piece.startswith("##") else piece for piece in vocabulary}
    return sorted({stem[:length] for stem in stems for length in range(1, min(len(stem), LONGEST_WORD) + 1)})


def encode_chunk(tokie: Any, chunk: str) -> np.ndarray:
    """tokie's ids of a text of at most CHUNK characters; DisagreementError when it breaks down."""
    # One text at a time: given several, tokie starts a thread per processor, whatever RAYON_NUM_THREADS says.
    try:
        return tokie.encode_batch_flat([chunk])[0]
    except BaseException as error:  # a panic in Rust is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise DisagreementError(f"tokie broke down ({error})") from None


def load_tokie(tokenizer: Tokenizer) -> Any:
    """tokie's tokenizer with the settings of `tokenizer`; None where tokie is not installed."""
    try:
        import tokie
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "tokenizer.json"))
        tokenizer.save(path)
        return tokie.Tokenizer.from_json(path)
