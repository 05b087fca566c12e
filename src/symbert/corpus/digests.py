"""Digests by which a file is known, and the lists of them that publishers put beside their files."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from symbert.errors import DataError, IntegrityError, MissingInputError

LENGTHS = {"md5": 32, "sha256": 64}  # hexadecimal digits
_LINE = re.compile(r"(?P<value>[0-9a-fA-F]+)\s+\*?(?P<name>\S.*)")  # of md5sum and sha256sum


@dataclass(frozen=True)
class Digest:
    """The digest that the bytes of a file must have."""

    algorithm: str  # md5 | sha256 | git (SHA-1 of git's header and the content: the id of a blob)
    value: str  # hexadecimal, small letters

    def check(self, path: Path, origin: str, remedy: str = "get the file and the publisher's list again") -> None:
        """IntegrityError names `origin`, both digests and the remedy when `path` gives another."""
        found = digest_of(path, self.algorithm)
        if found != self.value:
            raise IntegrityError(f"{origin}: {self.algorithm} expected {self.value}, found {found}; {remedy}")


def digest_of(path: Path, algorithm: str) -> str:
    """A file's digest, in hexadecimal."""
    if algorithm == "git":
        hasher = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    else:
        hasher = hashlib.new(algorithm, usedforsecurity=False)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hasher).hexdigest()


def listed_digest(listing: Path, algorithm: str, name: str, origin: str | None = None) -> Digest:
    """The digest of a file in a publisher's list that came from `origin`; MissingInputError when it has none.

    Lines are `<digest>  <file>`, files with or without folders. Empty lines and those that begin with # are skipped;
    DataError names the line of any other.
    """
    listed, origin = {}, origin or str(listing)
    for number, line in enumerate(listing.read_text(encoding="utf-8", errors="replace").split("\n"), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or len(match["value"]) != LENGTHS[algorithm]:
            raise DataError(f"{origin}:{number}: expected '<{algorithm}>  <file>'; get the list again")
        listed[Path(match["name"]).name] = match["value"].lower()
    if name not in listed:
        raise MissingInputError(
            f"{name}: not in {origin}, which lists {len(listed)} files; ask for fewer parts or get a list that has it"
        )
    return Digest(algorithm, listed[name])
