"""Typing errors: a share of the letters of a text swapped, dropped, followed by another, or hit one key beside.

The kinds are those of the robustness literature: swaps of neighbouring letters and hits of a neighbouring key
(Belinkov and Bisk, ICLR 2018), swaps, drops and insertions, and several kinds mixed (Karpukhin et al., W-NUT 2019).
As there, they act within words: only the letters a to z and A to Z are struck, so digits, punctuation, spaces and
other scripts stay as they are, and all kinds can strike the same letters.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from symbert.draws import Words, below, mix, stream

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
KEYBOARD = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))  # rows of QWERTY, and their offset in keys
TOUCHING = 1.3  # greatest distance, in keys, between the centres of two that touch
CHOICES = 2**32  # that a draw is one of
SEPARATOR = "\n"  # no letter: no word goes on in the next text

Numbers = NDArray[np.int64]


def noisy(texts: Sequence[str], kind: str, share: float, *row: int | Numbers) -> list[str]:
    """`texts`, of whose letters about a `share` is changed; `kind` is one of KINDS, or mixed: any of them per letter.

    A letter is struck with probability `share`; by a swap, which moves its neighbour too, with half of that.

    The noise of a text follows from its numbers `row` (each one for all texts, or one per text), on any machine. All
    kinds strike the same letters (a swap half of them), and a larger share those of a smaller one and more, so that
    scores differ by the noise and not by luck.
    """
    joined = "".join(text + SEPARATOR for text in texts)
    lengths = np.array([len(text) + 1 for text in texts], dtype=np.int64)
    is_letter = _is_letter(joined)
    places = np.flatnonzero(is_letter)
    where, which, how = _draws(row, lengths, places)
    kinds = below(which, len(KINDS)) if kind == "mixed" else np.full(len(places), KINDS.index(kind))
    swaps = kinds == KINDS.index("swap")
    struck = below(where, CHOICES) < np.where(swaps, share / 2, share) * CHOICES
    characters = list(joined)
    for place, number, choice in zip(places[struck], kinds[struck], below(how[struck], CHOICES), strict=True):
        characters[place] = EDITS[KINDS[number]](characters[place], choice)
    _swap(characters, places[struck & swaps], is_letter)
    ends = np.cumsum(lengths)
    return ["".join(characters[end - length : end - 1]) for end, length in zip(ends, lengths, strict=True)]


def name_of_set(kind: str, share: float, column: str) -> str:
    """The name of evaluation rows with noise, whose scores without it stand in `column`."""
    return f"{kind}-{100 * share:g} {column}"


def _is_letter(text: str) -> NDArray[np.bool_]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    lower = codes | 32  # maps A to Z, and nothing else, to a to z
    return (lower >= ord("a")) & (lower <= ord("z"))


def _draws(row: tuple[int | Numbers, ...], lengths: Numbers, places: Numbers) -> Words:
    """Three words for each of `places`, by the numbers of its text and its place in it."""
    text = np.repeat(np.arange(len(lengths)), lengths)[places]
    numbers = [np.broadcast_to(number, len(lengths))[text] for number in row]
    starts = np.cumsum(lengths) - lengths
    return stream(mix(*numbers, places - starts[text]), 3).T


def _in_case_of(letter: str, drawn: str) -> str:
    return drawn.upper() if letter.isupper() else drawn


_PLACES = {key: complex(x + offset, y) for y, (row, offset) in enumerate(KEYBOARD) for x, key in enumerate(row)}
NEIGHBOURS = {
    key: "".join(other for other in _PLACES if 0 < abs(_PLACES[key] - _PLACES[other]) <= TOUCHING) for key in _PLACES
}
"""The letters whose keys touch that of each letter."""
EDITS: dict[str, Callable[[str, int], str]] = {
    "swap": lambda letter, choice: letter,  # it is swapped when all other edits are made
    "drop": lambda letter, choice: "",
    "insert": lambda letter, choice: letter + _in_case_of(letter, ALPHABET[choice % len(ALPHABET)]),
    "keyboard": lambda letter, choice: _in_case_of(letter, (near := NEIGHBOURS[letter.lower()])[choice % len(near)]),
}
KINDS = tuple(EDITS)


def _swap(characters: list[str], struck: Numbers, is_letter: NDArray[np.bool_]) -> None:
    """Exchange each struck letter with the next of its word, the last with the one before; a single letter stays.

    From left to right, so that a letter may be carried on; a pair of which both are struck is exchanged once.
    """
    is_letter = np.append(is_letter, False)  # index -1, before the first character
    first = np.where(is_letter[struck + 1], struck, struck - 1)
    for place in np.unique(first[is_letter[first]]):
        characters[place], characters[place + 1] = characters[place + 1], characters[place]
