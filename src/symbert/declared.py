"""One line about a value that is not of its declared type, and the nearest known word."""

import difflib
import re
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

CORRECT = "correct it"
# Keys of before (docs/names.md), and what they are called now.
RENAMED = {"hosts": "architectures", "recipe": "compile", "start": "init_scale", "kind": "problem_type"}


def mistake_in(
    error: msgspec.ValidationError,
    known: Iterable[str] = (),
    remedy: str = CORRECT,
    declared: Any = None,
    value: Any = None,
    section: str = "",
) -> str:
    """What msgspec says of a value of another type, with its key; beside an unknown key the nearest known one.

    `known` are keys, after their sections and dots where they have some. With `declared`, the type declared for the
    whole `value`, a line names items of dictionaries, the keys of the section itself, and the words to choose from. The
    `value` stands below the key `section`.
    """
    fact, _, place = str(error).replace("`", "'").partition(" - at ")
    of_key, _, place = place.strip("'").rpartition("' in '")
    key, types = place.removeprefix("$").removeprefix("."), []
    if declared:
        key, types, value = _declared_at(key, declared, value)
    key = ".".join(filter(None, (section, key)))
    section = f"'{key}'" if key else "the top"
    if unknown := re.search("unknown field '(.*)'", fact):
        own = [name for one in types if _is_struct(one) for name in one.__struct_fields__]
        where = f" in {section}" if key else ""
        remedy = _known_as(unknown[1], own, sorted(known)) if remedy == CORRECT else remedy
        return f"unknown key '{unknown[1]}'{where}; {remedy}"
    if of_key and (odd := [name for name in value or () if not isinstance(name, str)]):
        return f"{section} has the key {odd[0]}, which is no word; quote a name, write decimals with a point"
    if remedy == CORRECT and (word := re.search("[Ii]nvalid enum value '(.*)'", fact)):
        types = _alternatives(get_args(_of_origin(types, dict))[0]) if of_key and types else types
        choices = [choice for one in types if get_origin(one) is Literal for choice in get_args(one)]
        remedy = suggestion(word[1], choices).removeprefix("; ") or remedy
    where = f"a key of {section}: " if of_key else f"{section}: " if key else ""
    return f"{where}{fact[:1].lower()}{fact[1:]}; {remedy}"


def _known_as(unknown: str, own: list[str], known: list[str]) -> str:
    """The remedy for a key that its section lacks: how it is written, whose it is, or the nearest one."""
    section, _, rest = unknown.partition(".")
    if rest and section in own:
        return f"write it as {section}: {{{rest}: VALUE}}"
    if places := [key.rpartition(".")[0] for key in known if key.rpartition(".")[2] == unknown]:
        return f"it is a key of {' or '.join(repr(place) if place else 'the top' for place in places)}, move it there"
    return suggestion(unknown, own or known).removeprefix("; ") or "remove it"


def _declared_at(place: str, declared: Any, value: Any) -> tuple[str, list[Any], Any]:
    """The key of a place, in which msgspec writes [...] for an item of a dictionary; the types declared there, and the
    value."""
    key, types = "", _alternatives(declared)
    for name, item in re.findall(r"(?:^|\.)([\w-]+)|\[(\d+|\.\.\.)\]", place):
        if item == "...":
            declared = get_args(_of_origin(types, dict))[1]
            name = next((name for name, item in value.items() if not _fits(item, declared)), item)
        elif item:
            declared = get_args(_of_origin(types, list))[0]
        else:
            fields = msgspec.structs.fields(next(filter(_is_struct, types)))
            declared = next(field.type for field in fields if field.name == name)
        types, value = _alternatives(declared), value[int(item)] if item.isdigit() else value.get(name)
        key = f"{key}.{name}" if name else f"{key}[{item}]"
    return key.removeprefix("."), types, value


def _alternatives(declared: Any) -> list[Any]:
    """The types of a union, without their limits, and without null."""
    if get_origin(declared) is Annotated:
        return _alternatives(get_args(declared)[0])
    if get_origin(declared) in (Union, UnionType):
        return [one for part in get_args(declared) for one in _alternatives(part)]
    return [] if declared is NoneType else [declared]


def _of_origin(types: list[Any], origin: type) -> Any:
    return next(declared for declared in types if get_origin(declared) is origin)


def _is_struct(declared: Any) -> bool:
    return isinstance(declared, type) and issubclass(declared, msgspec.Struct)


def _fits(value: Any, declared: Any) -> bool:
    try:
        msgspec.convert(value, declared, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def suggestion(word: Any, known: Iterable[Any]) -> str:
    """The remedy for an unknown word: the nearest known word, or all known words."""
    names = list(map(str, known))
    of_lower = {name.lower(): name for name in reversed(names)}
    near = [new for old, new in RENAMED.items() if old == word and new in names]
    near = near or difflib.get_close_matches(str(word).lower(), of_lower, n=1, cutoff=0.5)
    return f"; did you mean '{of_lower[near[0]]}'?" if near else f"; choose from {', '.join(names)}" if names else ""
