"""What files of an experiment say, where they can be read."""

from pathlib import Path
from typing import Any

from symbert.errors import SymbertError
from symbert.files import read_json

Values = dict[str, Any]


def records(path: Path) -> list[Values]:
    """The records in a file of scores; none where there is no such file."""
    found = read(path)
    return [record for record in found if isinstance(record, dict)] if isinstance(found, list) else []


def record_of(path: Path) -> Values | None:
    """The record of a fine-tuning that the state folder has."""
    record = facts(path).get("record")
    return record if isinstance(record, dict) else None


def facts(path: Path) -> Values:
    """What a JSON file says by key; nothing where it cannot be read, or says something else."""
    found = read(path)
    return found if isinstance(found, dict) else {}


def read(path: Path) -> Any:
    """The content of a JSON file; None where there is none, or none that can be read."""
    try:
        return read_json(path) if path.is_file() else None
    except (SymbertError, OSError):
        return None
