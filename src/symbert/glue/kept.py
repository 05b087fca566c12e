"""What was computed once for a seed, kept in a state folder: JSON with a hash of its content."""

from pathlib import Path
from typing import Any

from symbert.errors import IntegrityError
from symbert.files import read_json, write_json
from symbert.settings import hash_of

Record = dict[str, Any]


def keep(path: Path, content: Record) -> None:
    """Publish what was computed once, with its hash: a flipped bit leaves JSON that can be read, and another score."""
    write_json(path, {**content, "hash": hash_of(content)})


def read_kept(path: Path, shape: Any) -> Record:
    """What `keep` published; IntegrityError when it was damaged since. Older versions kept no hash."""
    content = read_json(path, shape)
    expected = content.pop("hash", None)
    if expected is not None and (computed := hash_of(content)) != expected:
        raise IntegrityError(f"{path}: sha256 expected {expected}…, found {computed}…; delete it and run again")
    return content
