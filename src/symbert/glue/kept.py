"""Records of scores, kept for a seed in a state folder or published for all: JSON with a hash of its content.

A flipped bit may leave JSON that can be read, and another score.
"""

from pathlib import Path
from typing import Any

from symbert.errors import IntegrityError
from symbert.files import read_json, write_json
from symbert.settings import hash_of

Record = dict[str, Any]


def hashed(content: Record) -> Record:
    """The content with its hash."""
    return {**content, "hash": hash_of(content)}


def checked(content: Record, place: str, remedy: str) -> Record:
    """The content without its hash; IntegrityError when it was damaged since. Imported scores have no hash."""
    expected = content.get("hash")
    content = {key: value for key, value in content.items() if key != "hash"}
    if expected is not None and (computed := hash_of(content)) != expected:
        raise IntegrityError(f"{place}: sha256 expected {expected}…, found {computed}…; {remedy}")
    return content


def keep(path: Path, content: Record) -> None:
    """Publish what was computed once."""
    write_json(path, hashed(content))


def read_kept(path: Path, shape: Any) -> Record:
    """What `keep` published."""
    return checked(read_json(path, shape), str(path), "delete it and run again")
