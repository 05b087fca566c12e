"""OSCAR's annotations by its own rules, for text that comes without them (ungoliant b26f11d; facts as published)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from symbert.corpus.document import Document, LongDocument, Metadata
from symbert.corpus.file_formats import begin_of, refuse_other_format
from symbert.errors import ConfigError, DataError, line_of

MOST_CHARACTERS_OF_A_SHORT_LINE = 100
FEWEST_BYTES_OF_A_LONG_LINE = 100
FEWEST_LINES = 5
INSTALL_KENLM = "with g++ and Python's headers: pip install kenlm"
# The Unicode property White_Space. `str.split` would also split at U+001C to U+001F.
WHITE_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(f"[^{WHITE_SPACE}]+")


def quality_warnings(pieces: Iterable[str]) -> list[str]:
    """The warnings that a text deserves, in OSCAR's order; empty when it deserves none.

    Its pieces but the first begin with `\\n`, where a line ends; a `\\r` before it is no part of the line.
    """
    is_short, has_few_bytes, counts = bytearray(), bytearray(), Counter[str]()  # by line; by character
    lines = [""]
    for piece in pieces:
        counts.update(piece)
        lines = piece.split("\n")[bool(is_short) :]
        bare = [line.removesuffix("\r") for line in lines]
        is_short += bytes(len(line) <= MOST_CHARACTERS_OF_A_SHORT_LINE for line in bare)
        has_few_bytes += bytes(len(line.encode()) < FEWEST_BYTES_OF_A_LONG_LINE for line in bare)
    if lines[-1] == "":  # a final line end opens no new line
        is_short, has_few_bytes = is_short[:-1], has_few_bytes[:-1]
    count = len(is_short)
    edge = count // 5
    found = {
        "tiny": count < FEWEST_LINES,
        "short_sentences": _mostly(is_short),
        "header": _mostly(has_few_bytes[:edge]),
        "footer": _mostly(has_few_bytes[count - edge :]),
        "noisy": are_noisy(counts),
    }
    return [warning for warning, deserved in found.items() if deserved]


def are_noisy(counts: Counter[str]) -> bool:
    """Whether more than half of the characters are neither letters nor marks; white space counts among them."""
    others = sum(count for character, count in counts.items() if unicodedata.category(character)[0] not in "LM")
    return others > counts.total() // 2


def _mostly(answers: bytearray) -> bool:
    return sum(answers) > len(answers) // 2


def words(text: str) -> list[str]:
    """The words of a text, which Unicode white space separates."""
    return _WORD.findall(text)


def harmful_perplexity(model: Path) -> Callable[[str], float]:
    """A function that gives the perplexity of a document under a KenLM model (ARPA or binary).

    10^(-(sum of log10 p(word) + log10 p(</s>)) / (words + 1)) in 32-bit floats, from the `<s>` state.
    DataError names a file that is absent or no model. ConfigError where kenlm is not installed: it has to be compiled.
    """
    try:
        import kenlm
    except ImportError as error:
        fact = f"corpus.filter.rules: perplexity needs the package kenlm for computed annotations ({line_of(error)})"
        raise ConfigError(f"{fact}; {INSTALL_KENLM}, or leave perplexity out") from None

    settings = kenlm.Config()
    settings.show_progress = False
    settings.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        language_model = kenlm.Model(str(model), settings)
    except (OSError, RuntimeError) as error:
        if model.is_file():
            refuse_other_format(model, begin_of(model), expected="KenLM")
        raise DataError(f"{model}: not a KenLM model ({line_of(error)})") from None

    def perplexity(text: str) -> float:
        sentence = words(text)
        # The binding splits at ASCII white space only, hence the single spaces, and ends at a NUL; upstream a word with
        # a NUL is an unknown word, as one with a noncharacter is.
        text = " ".join(sentence).replace("\0", "\uffff")
        log10 = np.float32(language_model.score(text, bos=True, eos=True))
        value = np.float32(10) ** (-log10 / np.float32(len(sentence) + 1))
        return float(str(value))  # the shortest decimal that is this 32-bit float, as upstream writes it

    return perplexity


def annotator(
    harmful_model: Path | None, look_up: Callable[[str | None], frozenset[str] | None]
) -> Callable[[Document | LongDocument], Metadata]:
    """A function that gives the annotations of a document: the categories that `look_up` finds of its URL, quality
    warnings, and harmful perplexity under a KenLM model, if there is one; null where OSCAR writes null.
    """
    perplexity = harmful_perplexity(harmful_model) if harmful_model else None

    def annotate(document: Document | LongDocument) -> Metadata:
        return Metadata(
            harmful_pp=perplexity(document.content) if perplexity else None,
            quality_warnings=quality_warnings(document.pieces) or None,
            categories=sorted(look_up(document.url) or ()) or None,
        )

    return annotate
