"""The UT1 archive, read as a stream: nothing is extracted, and what should not be there is refused."""

import gzip
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
LONGEST_NAME = 1 << 16  # bytes
MOST_BYTES = 4 << 30
LARGEST_RATIO = 200  # of expanded to compressed bytes
_ALLOWANCE = 1 << 20  # bytes that a small archive may expand to, whatever the ratio
_BRINGING_NAMES = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
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
        duplicates and anything too large, and for an archive whose content gzip's checksum does not confirm, which is
        known when all of it was read; the message names archive and, where it is one, the member.
        """
        if not self._archive.is_file():
            raise MissingInputError(f"{self._archive}: file not found; run download-blocklist")
        try:
            with (
                gzip.open(self._archive) as content,
                tarfile.open(fileobj=_Capped(content, self._archive), mode="r|", tarinfo=_Header) as stream,
            ):
                for member in _checked(stream, self._archive):
                    yield from self._read(stream, member)
                _read_end(stream)
        except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
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


class _Capped:
    """The expanded bytes of an archive, as many as one of its size may have."""

    def __init__(self, content: gzip.GzipFile, archive: Path) -> None:
        self._content, self._archive = content, archive
        self._allowed = min(MOST_BYTES, LARGEST_RATIO * archive.stat().st_size + _ALLOWANCE)
        self._size = 0

    def read(self, size: int) -> bytes:
        """The next bytes; DataError when they are too many in all."""
        block = self._content.read(size)
        self._size += len(block)
        if self._size > self._allowed:
            raise DataError(
                f"{self._archive}: expands to more than {self._allowed:,} bytes; get the archive from its publisher"
            )
        return block


class _Header(tarfile.TarInfo):
    """A member's header. What only brings a long name is read into memory at once, and therefore has to be short."""

    @classmethod
    def frombuf(cls, buf: bytes, encoding: str, errors: str) -> tarfile.TarInfo:
        header = super().frombuf(buf, encoding, errors)
        if not 0 <= header.size <= (LONGEST_NAME if header.type in _BRINGING_NAMES else MOST_BYTES):
            raise tarfile.ReadError(f"a header that announces {header.size:,} bytes")
        return header


def _read_end(stream: tarfile.TarFile) -> None:
    """Read what follows the last member, so that gzip checks the whole; `tarfile` ends at a header that is damaged."""
    while block := stream.fileobj.read(tarfile.RECORDSIZE):
        if block.strip(b"\0"):
            raise tarfile.ReadError("something follows its last member")


def _checked(stream: tarfile.TarFile, archive: Path) -> Iterator[tarfile.TarInfo]:
    """The members of the stream, each after its name and kind were found harmless."""
    seen: set[str] = set()
    for member in stream:
        fault = _fault(member)
        if member.name in seen:
            fault = "occurs twice"
        if len(seen) == MOST_MEMBERS:
            fault = f"is one of more than {MOST_MEMBERS:,} members"
        if fault:
            raise DataError(f"{archive}: member {member.name!r} {fault}; get the archive from its publisher")
        seen.add(member.name)
        yield member


def _fault(member: tarfile.TarInfo) -> str | None:
    if member.name.startswith("/") or ".." in member.name.split("/"):
        return "has a name that leaves the archive"
    if member.issym() and not re.fullmatch(r"(?!\.\.?$)[\w.-]+", member.linkname.removesuffix("/")):
        return f"is a link to {member.linkname!r}, which is no name in the same folder"
    if not (member.isfile() or member.isdir() or member.issym()) or member.issparse():
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
