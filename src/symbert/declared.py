"""One line about a value that is not of its declared type, and the nearest known word."""

import difflib
import re
from collections.abc import Iterable
from typing import Any

import msgspec


def mistake_in(error: msgspec.ValidationError, known: Iterable[str] = (), remedy: str = "correct it") -> str:
    """What msgspec says of a value of another type, with its key; beside an unknown key the nearest of `known`."""
    fact, _, place = str(error).replace("`", "'").partition(" - at ")
    key = place.replace("$.", "").strip("'")
    if unknown := re.search("unknown field '(.*)'", fact):
        near = difflib.get_close_matches(unknown[1], sorted(known), n=1, cutoff=0.5)
        where, remedy = f" in '{key}'" if key else "", f"did you mean '{near[0]}'?" if near else "remove it"
        if unknown[1] in near:
            remedy = "it is a key of another section, move it there"
        return f"unknown key '{unknown[1]}'{where}; {remedy}"
    return (f"'{key}': " if key else "") + f"{fact[:1].lower()}{fact[1:]}; {remedy}"


def suggestion(word: Any, known: Iterable[Any]) -> str:
    """The remedy for an unknown word: the nearest known word, or all known words."""
    names = list(map(str, known))
    near = difflib.get_close_matches(str(word), names, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else f"; choose from {', '.join(names)}" if names else ""
