"""Declared types: which values they allow, and a line that names the key and the remedy of a wrong value."""

import difflib
import re
import types
import typing
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

UNIONS = (types.UnionType, typing.Union)


def mistake_in(value: Any, kind: Any, strict: bool, key: str = "") -> str:
    """A line about the innermost value that is not of its declared type, with the remedy."""
    inner, where = types_within(value, kind), f" in '{key}'" if key else ""
    for name, item in items_in(value) if inner else []:
        if name not in inner:
            return f"unknown key '{name}'{where}{suggestion(name, inner)}"
        if _fact_about(item, inner[name], strict):
            return mistake_in(item, inner[name], strict, f"{key}.{name}" if key else str(name))
    fact = _fact_about(value, kind, strict)
    if missing := re.search("missing required field `(.*)`", fact):
        return f"missing key '{missing[1]}'{where}; add it"
    is_now = f"'{key}' is {'null' if value is None else repr(value)}"
    if words := words_of(kind):
        return is_now + suggestion(value, words + ["null"] * (types.NoneType in options_of(kind)))
    return f"{is_now}, {fact[:1].lower()}{fact[1:].partition(', got')[0]}; correct it"


def _fact_about(value: Any, kind: Any, strict: bool) -> str:
    """The words of msgspec about a value of another type; none about a valid value."""
    try:
        msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        return str(error).partition(" - at `")[0]
    return ""


def options_of(kind: Any) -> list[Any]:
    """The members of a union without their limits, or the declared type alone."""
    if typing.get_origin(kind) is Annotated:
        return options_of(typing.get_args(kind)[0])
    if typing.get_origin(kind) in UNIONS:
        return [option for member in typing.get_args(kind) for option in options_of(member)]
    return [kind]


def words_of(kind: Any) -> list[str]:
    """The words that a declared type allows."""
    literals = [option for option in options_of(kind) if typing.get_origin(option) is Literal]
    return [word for option in literals for word in typing.get_args(option)]


def types_within(value: Any, kind: Any) -> dict[Any, Any]:
    """The declared types of the items of a map or list, by key or position; none of another value."""
    for option in options_of(kind):
        origin, arguments = typing.get_origin(option), typing.get_args(option)
        if isinstance(value, list) and origin is list:
            return dict.fromkeys(range(len(value)), arguments[0])
        if isinstance(value, dict) and origin is dict:
            return dict.fromkeys(words_of(arguments[0]) or value, arguments[1])
        if isinstance(value, dict) and _is_struct(option):
            return {field.name: field.type for field in msgspec.structs.fields(option)}
    return {}


def items_in(value: Any) -> Iterable[tuple[Any, Any]]:
    """The items of a map or list, by key or position."""
    return value.items() if isinstance(value, dict) else enumerate(value)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def suggestion(word: Any, known: Iterable[Any]) -> str:
    """The remedy for an unknown word: the nearest known word, or all known words."""
    names = list(map(str, known))
    near = difflib.get_close_matches(str(word), names, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else f"; choose from {', '.join(names)}"
