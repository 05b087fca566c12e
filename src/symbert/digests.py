"""Digests by which a file is known, and the lists of them that lie beside files."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from symbert.errors import DataError, IntegrityError, MissingInputError

LENGTHS = {"md5": 32, "sha256": 64}  # hexadecimal digits
TAGS = {"md5": "md5", "sha256": "sha256", "sha2-256": "sha256"}  # words of lines, and the algorithm
FEWER_PARTS = "lower corpus.parts, or get a list that has it"  # the remedy of a part that its publisher's list lacks
_LINES = (
    re.compile(r"\\?(?P<value>[0-9a-f]+)(?: [ *]|[ \t]+)(?P<name>[^\0\r]+)", re.I),  # md5sum, sha256sum; tab, one blank
    re.compile(r"\\?(?P<tag>[\w-]+) ?\((?P<name>[^\0\r]+)\) ?= ?(?P<value>[0-9a-f]+)", re.I),  # --tag, BSD; openssl
)
_ESCAPES = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}  # in names of lines that begin with a backslash


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


def read_digests(listing: Path, algorithm: str, origin: str | None = None) -> dict[str, str]:
    """The digests in a list that came from `origin`, by file: the path from the folder of the list.

    Lines have the forms of GNU coreutils (text, binary, --tag, escaped names), BSD and openssl; a tab or one blank may
    follow the digest. Empty lines and those that begin with # are skipped. DataError names the line of any other,
    and of a second digest of a file.
    """
    listed: dict[str, str] = {}
    content = os.fsdecode(listing.read_bytes()).removeprefix("\ufeff")
    for number, line in enumerate(content.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip() or line.startswith("#"):
            continue
        place = f"{origin or listing}:{number}"
        entry = _entry(line, algorithm)
        if entry is None:
            raise DataError(
                f"{place}: expected '<{algorithm}>  <file>', as {algorithm}sum writes it; get the list again, or "
                "correct the line"
            )
        name, value = _from_folder(entry[0], listing.parent), entry[1]
        if listed.setdefault(name, value) != value:
            raise DataError(f"{place}: another digest of {name} than in a line before; get the list again")
    return listed


def _entry(line: str, algorithm: str) -> tuple[str, str] | None:
    """File and digest in a line; None where it has no digest of this algorithm."""
    match = next(filter(None, (form.fullmatch(line) for form in _LINES)), None)
    if match is None or len(match["value"]) != LENGTHS[algorithm]:
        return None
    if TAGS.get(match.groupdict().get("tag", algorithm).lower()) != algorithm:
        return None
    name = match["name"]
    if line.startswith("\\"):
        name = re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], "\0"), name)
    return None if "\0" in name or not name.strip() else (name, match["value"].lower())


def _from_folder(name: str, folder: Path) -> str:
    if Path(name).is_absolute():
        name = os.path.relpath(os.path.realpath(name), os.path.realpath(folder))
    return os.path.normpath(name)


def listed_digest(
    listing: Path, algorithm: str, name: str, origin: str | None = None, remedy: str = "get the list again"
) -> Digest:
    """The digest of a file, whatever its folder, in a publisher's list; MissingInputError with the remedy without it.

    DataError as of `read_digests`, and where files of this name in several folders have several digests.
    """
    listed = read_digests(listing, algorithm, origin)
    found = {digest for file, digest in listed.items() if Path(file).name == name}
    if not found:
        raise MissingInputError(f"{name}: not in {origin or listing}, which lists {len(listed)} files; {remedy}")
    if len(found) > 1:
        raise DataError(f"{origin or listing}: {len(found)} digests of files named {name}; get the list again")
    return Digest(algorithm, found.pop())
