"""The UT1 archive, read as a stream: nothing is extracted, and what should not be there is refused."""

import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from symbert.errors import DataError, MissingInputError

Listing = Literal["domains", "urls"]

MOST_MEMBERS = 10_000
MOST_BYTES = 4 << 30
LARGEST_RATIO = 200  # of expanded to compressed bytes
_ALLOWANCE = 1 << 20  # bytes that a small archive may expand to, whatever the ratio
_LISTING = re.compile(r"blacklists/([\w.-]+)/(domains|urls)")
_ALIAS = re.compile(r"blacklists/([\w.-]+)")


class Listings:
    """The listings `blacklists/<directory>/{domains,urls}` of an archive; `entries` is to be read once, to its end."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._links: dict[str, str] = {}
        self.directories: dict[str, None] = {}  # in the archive's order

    def entries(self) -> Iterator[tuple[str, Listing, str]]:
        """Directory, kind and text of every line.

        Raises DataError for device files, hard links, absolute names, `..`, links that leave the folder,
        duplicates and anything too large; the message names archive and member.
        """
        if not self._archive.is_file():
            raise MissingInputError(f"{self._archive}: file not found; run download-blocklist")
        try:
            with tarfile.open(self._archive, "r|gz") as stream:
                for member in _checked(stream, self._archive):
                    yield from self._read(stream, member)
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise DataError(f"{self._archive}: damaged archive ({error}); download it again") from None

    def _read(self, stream: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[tuple[str, Listing, str]]:
        if member.issym() and (alias := _ALIAS.fullmatch(member.name)):
            self._links[alias[1]] = member.linkname.removesuffix("/")
        elif member.isfile() and (listing := _LISTING.fullmatch(member.name)):
            self.directories[listing[1]] = None
            for line in _lines(stream.extractfile(member)):
                yield listing[1], listing[2], line

    def aliases(self) -> dict[str, str]:
        """Symlinked name → directory, through links to links; those that lead nowhere are left out."""
        found = {name: _resolve(name, self._links) for name in self._links}
        return {name: directory for name, directory in found.items() if directory in self.directories}


def _checked(stream: tarfile.TarFile, archive: Path) -> Iterator[tarfile.TarInfo]:
    """The members of the stream, each after its name, kind and size were found harmless."""
    seen: set[str] = set()
    size = 0
    allowed = min(MOST_BYTES, LARGEST_RATIO * archive.stat().st_size + _ALLOWANCE)
    for member in stream:
        size += member.size
        fault = _fault(member)
        if member.name in seen:
            fault = "occurs twice"
        if len(seen) == MOST_MEMBERS:
            fault = f"is one of more than {MOST_MEMBERS:,} members"
        if size > allowed:
            fault = f"brings the archive to more than {allowed:,} bytes"
        if fault:
            raise DataError(f"{archive}: member {member.name!r} {fault}; get the archive from its publisher")
        seen.add(member.name)
        yield member


def _fault(member: tarfile.TarInfo) -> str | None:
    if member.name.startswith("/") or ".." in member.name.split("/"):
        return "has a name that leaves the archive"
    if member.issym() and not re.fullmatch(r"(?!\.\.?$)[\w.-]+", member.linkname.removesuffix("/")):
        return f"is a link to {member.linkname!r}, which is no name in the same folder"
    if not (member.isfile() or member.isdir() or member.issym()):
        return "is neither file, directory nor link"
    return None


def _resolve(name: str, links: dict[str, str]) -> str:
    """The directory behind a link, through links to links; a circle ends where it began."""
    for _ in links:
        name = links.get(name, name)
    return name


def _lines(file: io.BufferedReader) -> Iterator[str]:
    """The lines that are UTF-8, without surrounding blanks; empty ones are left out."""
    for line in file:
        try:
            text = line.decode().strip()
        except UnicodeDecodeError:
            continue
        if text:
            yield text
