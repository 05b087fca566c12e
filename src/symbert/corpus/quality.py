"""OSCAR's quality warnings, for text that comes without them (ungoliant b26f11d; facts as published).

A line ends at `\\n`; a `\\r` before it is no part of it.
"""

import unicodedata
from collections import Counter

MOST_CHARACTERS_OF_A_SHORT_LINE = 100
FEWEST_BYTES_OF_A_LONG_LINE = 100
FEWEST_LINES = 5


def quality_warnings(content: str) -> list[str]:
    """The warnings that `content` deserves, in OSCAR's order; empty when it deserves none."""
    lines = _lines(content)
    edge = len(lines) // 5
    found = {
        "tiny": len(lines) < FEWEST_LINES,
        "short_sentences": _mostly([len(line) <= MOST_CHARACTERS_OF_A_SHORT_LINE for line in lines]),
        "header": _mostly(_are_few_bytes(lines[:edge])),
        "footer": _mostly(_are_few_bytes(lines[len(lines) - edge :])),
        "noisy": is_noisy(content),
    }
    return [warning for warning, deserved in found.items() if deserved]


def is_noisy(content: str) -> bool:
    """Whether more than half of the characters are neither letters nor marks; white space counts among them."""
    others = sum(
        count for character, count in Counter(content).items() if unicodedata.category(character)[0] not in "LM"
    )
    return others > len(content) // 2


def _lines(content: str) -> list[str]:
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()  # a final line end opens no new line
    return [line.removesuffix("\r") for line in lines]


def _are_few_bytes(lines: list[str]) -> list[bool]:
    return [len(line.encode()) < FEWEST_BYTES_OF_A_LONG_LINE for line in lines]


def _mostly(answers: list[bool]) -> bool:
    return sum(answers) > len(answers) // 2
