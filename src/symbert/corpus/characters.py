"""Where tokie and tokenizers differ: around which code points, and whether on words of the vocabulary or odd texts."""

import string
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from symbert.corpus.wordpiece import (
    CODE_POINTS,
    PIECE,
    SPECIAL_TOKENS,
    DisagreementError,
    Reference,
    encode_piece,
    encoder,
    load_tokie,
    read_vocabulary,
    versions,
)
from symbert.files import sha256_of, write_json
from symbert.progress import Progress

CONTEXTS = (
    "x?x",
    "? X? ?X 1?1 .?.",
    "\u0301?x ?\u0301 x\u0301?\u0301x i\u0307?İ",
    "é?É Σ?Σ?ς 中?中 ᄀ?ᅡ \u200d?\ufe0f",
)
"""Texts around a code point `?`, where `x` is a letter of the vocabulary: words of either case, accents, sigmas
(whose small form may depend on the place), ideographs, parts of syllables, joiners."""

TEXTS_AT_ONCE = 1024
WORDS_AT_ONCE = 128
LONGEST_WORD = 100  # characters; a longer one is [UNK]
NOT_USED = ("Cn", "Cs")  # categories: not assigned, surrogates
PRIVATE_PLANES = 0xF0000
SEPARATOR = SPECIAL_TOKENS["pad"]


def scan_characters(vocabulary: Path, output: Path) -> None:
    """Write as JSON the ranges of code points around which tokie gives other ids than tokenizers.

    Among them, without comparison, are those that no text should have, six in seven: those of the private planes, and
    those that Unicode, as Python knows it, does not assign. `versions` says what was compared; `problem` is null, or
    says why tokie cannot be used with it at all.
    """
    reference = Reference(encoder(vocabulary))
    tokie = load_tokie(reference.tokenizer)
    pieces = read_vocabulary(vocabulary)
    letter = next((x for x in string.ascii_lowercase if x in pieces and f"##{x}" in pieces), None)
    differing = np.zeros(CODE_POINTS, bool)
    if tokie is None:
        problem = "tokie was not installed when the characters were scanned"
    elif letter is None:
        problem = f"{vocabulary}: no letter that both begins and continues words, by which to compare tokie"
    else:
        comparison = _Comparison(reference, tokie, pieces[SEPARATOR])
        differing = _differing_points(comparison, letter)
        problem = _problem(comparison, _odd_texts(letter), _words(pieces, letter), differing)
    edges = np.flatnonzero(np.diff(differing, prepend=False, append=False)).reshape(-1, 2)
    ranges = [[int(first), int(after) - 1] for first, after in edges]
    write_json(output, {"versions": versions(sha256_of(vocabulary)), "problem": problem, "differing": ranges})


class _Comparison:
    """The two encoders on the same texts."""

    def __init__(self, reference: Reference, tokie: Any, separator: int) -> None:
        self._reference, self._tokie, self._separator = reference, tokie, separator

    def differ(self, texts: list[str]) -> np.ndarray:
        """For each text, whether the ids differ; the texts are encoded together, special tokens between them."""
        joined = SEPARATOR.join(texts)
        expected = self._reference.encode(joined).astype(np.uint32)
        try:
            found = encode_piece(self._tokie, joined)
        except DisagreementError:
            found = np.empty(0, np.uint32)  # none are right: there is always a [CLS]
        if np.array_equal(expected, found):
            return np.zeros(len(texts), bool)
        if len(texts) == 1:
            return np.ones(1, bool)
        one, other = list(self._split(expected)), list(self._split(found))
        if len(one) == len(other) == len(texts):
            return np.array([ids != others for ids, others in zip(one, other, strict=True)])
        half = len(texts) // 2
        return np.concatenate([self.differ(texts[:half]), self.differ(texts[half:])])

    def _split(self, ids: np.ndarray) -> Iterator[bytes]:
        start = 0
        for end in [*np.flatnonzero(ids == self._separator), len(ids)]:
            yield ids[start:end].tobytes()
            start = end + 1


def _differing_points(comparison: _Comparison, letter: str) -> np.ndarray:
    """For each code point, whether it is not used, or the ids differ in some context: alone where all is ASCII, which
    has a path of its own, and among others."""
    contexts = [context.replace("x", letter).replace("X", letter.upper()) for context in CONTEXTS]
    points = range(min(CODE_POINTS, PRIVATE_PLANES))
    used = np.array([point for point in points if unicodedata.category(chr(point)) not in NOT_USED])
    differing = np.ones(CODE_POINTS, bool)
    differing[used] = False
    for point in range(128):
        differing[point] = any(comparison.differ([context.replace("?", chr(point))])[0] for context in contexts)
    progress = Progress("scan characters", len(used), "code points")
    for first in range(0, len(used), TEXTS_AT_ONCE):
        some = used[first : first + TEXTS_AT_ONCE]
        for context in contexts:
            points = some[~differing[some]]
            if len(points):
                differing[points] = comparison.differ([context.replace("?", chr(point)) for point in points])
        progress.update(first + len(some), f"{np.count_nonzero(differing[used]):,} differ")
    return differing


def _problem(comparison: _Comparison, odd_texts: list[str], words: list[str], differing: np.ndarray) -> str | None:
    """Names a text without differing code points on which the two encoders differ, if there is one."""
    points = {chr(point) for point in np.flatnonzero(differing)}
    groups = [[text] for text in odd_texts if points.isdisjoint(text)]
    words = [word for word in words if points.isdisjoint(word)]
    groups += [words[first : first + WORDS_AT_ONCE] for first in range(0, len(words), WORDS_AT_ONCE)]
    for group in groups:
        for place in np.flatnonzero(comparison.differ(group)):
            return f"with this vocabulary tokie and tokenizers differ on {group[place][:60]!a}"
    return None


def _odd_texts(x: str) -> list[str]:
    """Texts about blanks, word length, the size of pieces, and special tokens; `x` is a letter of the vocabulary."""
    lengths = [letter * count for letter in (x, "é", "\U00020000") for count in (99, 100, 101, PIECE)]
    odd = ["", "   ", "\n", f"##{x}", f"{x}##{x}", "[unused1]", f"{x} " * (PIECE // 2), "\u00a0é" * (PIECE // 2)]
    for token in SPECIAL_TOKENS.values():
        odd += [token, token * 2, f"{x}{token}{x}", f"[{token}]", f" {token} é "]
        odd += [token.lower(), token[:-1], token[1:], f"{token[:-1]}{token}"]
    return lengths + odd


def _words(pieces: dict[str, int], letter: str) -> list[str]:
    """Every piece, cut short after each of its characters: what follows a piece may begin like one and be none."""
    stems = {letter + piece[2:] if piece.startswith("##") else piece for piece in pieces}
    return sorted({stem[:length] for stem in stems for length in range(1, min(len(stem), LONGEST_WORD) + 1)})
