"""JSON values: their shapes, what a file must have and lacks, and the hashes that identify them."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

Shape = Any  # of a JSON value: see `flaws`

KINDS = {dict: "an object", list: "a list", str: "a text", int: "a number"}  # of JSON values
SHOWN = 60  # characters of a value that is of another kind


def flaws(value: Any, shape: Shape, name: str = "") -> Iterator[str]:
    """What a JSON value lacks and which of its parts are of another kind: "has no 'step'", "has the step '1800'".

    A shape is a type, or several in a tuple; {"step": shape} stands for an object with at least this key, {str: shape}
    for one with any keys, [shape] for a list, None for anything.
    """
    kinds = (type(shape),) if isinstance(shape, dict | list) else shape if isinstance(shape, tuple) else (shape,)
    if shape is not None and type(value) not in kinds:
        found = repr(value) if len(repr(value)) <= SHOWN else f"{repr(value)[:SHOWN]}…"
        yield f"has the {name} {found}" if name else f"is {found}, expected {KINDS[kinds[0]]}"
    elif isinstance(shape, list):
        for number, item in enumerate(value):
            yield from flaws(item, shape[0], f"{name}[{number}]")
    elif isinstance(shape, dict):
        inner = f"{name}." if name else ""
        for key, expected in shape.items():
            if key is str:
                for other, item in value.items():
                    yield from flaws(item, expected, inner + other)
            elif key not in value:
                yield f"has no '{inner}{key}'"
            else:
                yield from flaws(value[key], expected, inner + key)


def hash_of(*values: Any) -> str:
    """16 hexadecimal digits that identify JSON values, whatever the key order."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
