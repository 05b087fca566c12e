"""Records of scores, and what a fine-tuning keeps beside them: JSON with a hash of its content.

A flipped bit may leave JSON that can be read, and another score.
"""

from pathlib import Path
from typing import Any

from symbert.errors import IntegrityError
from symbert.files import hash_of, read_json

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


def read_kept(path: Path, shape: Any) -> Record:
    """The content of a file with a hash; IntegrityError when it was damaged."""
    return checked(read_json(path, shape), str(path), "delete it and run again")
