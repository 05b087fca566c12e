"""Published files, by one name wherever they come from: the hub, a mirror directory, or the embedded corpus.

A mirror holds a file at `<repository>/<path>`, as the publishers do; the embedded corpus is written in
that layout. A fetched file is checked against the publisher's list where there is one, and published only then.
"""

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from symbert.corpus.hub import fetch_from_hub, fetch_url
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import publish
from symbert.settings import SourceSettings, read_settings


@dataclass(frozen=True)
class PublishedFile:
    """A file of a publisher: a hub repository `owner/name` and the path in it."""

    kind: str  # dataset | model | ut1
    repository: str
    path: str
    gated: bool = False

    @property
    def location(self) -> str:
        """The path below the root of a mirror."""
        return f"{self.repository}/{self.path}"


BLOCKLIST = PublishedFile("ut1", "ut1", "blacklists.tar.gz")
BLOCKLIST_CHECKSUMS = PublishedFile("ut1", "ut1", "MD5SUM.LST")
HARMFUL_MODEL = PublishedFile("model", "oscar-corpus/harmful-kenlms", "en.arpa")
VOCABULARY = PublishedFile("model", "google-bert/bert-base-uncased", "vocab.txt")


def corpus_file(name: str) -> PublishedFile:
    """A file of OSCAR-2301's English folder: a part or the list of checksums."""
    return PublishedFile("dataset", "oscar-corpus/OSCAR-2301", f"en_meta/{name}", gated=True)


CORPUS_CHECKSUMS = corpus_file("checksum.sha256")


def part_file(part: str) -> PublishedFile:
    """The file of a part: `en_meta_part_1` is `en_meta/en_meta_part_1.jsonl.zst`."""
    return corpus_file(f"{part}.jsonl.zst")


class Source(Protocol):
    """Where published files come from."""

    def fetch(self, file: PublishedFile, destination: Path) -> None:
        """Write a file's bytes to `destination`, a path that `publish` gave."""


@dataclass(frozen=True)
class Directory:
    """A mirror, or the embedded corpus: files at their location below `root`."""

    root: Path

    def fetch(self, file: PublishedFile, destination: Path) -> None:
        """Copy a file; MissingInputError names it."""
        origin = self.root / file.location
        if not origin.is_file():
            raise MissingInputError(
                f"{origin}: file not found; put the publisher's file there or choose another source"
            )
        shutil.copyfile(origin, destination)


@dataclass(frozen=True)
class Hub:
    """The publishers' hosts."""

    revision: str  # of data sets
    blocklist_url: str  # of the UT1 archive's folder

    def fetch(self, file: PublishedFile, destination: Path) -> None:
        """Download a file; RemoteError, PermissionRefusedError and MissingInputError name it and the remedy."""
        if file.kind == "ut1":
            fetch_url(f"{self.blocklist_url.rstrip('/')}/{file.path}", destination)
        else:
            revision = self.revision if file.kind == "dataset" else "main"
            fetch_from_hub(file.kind, file.repository, file.path, revision, file.gated, destination)


def open_source(settings: SourceSettings) -> Source:
    """The source that the settings name."""
    if settings.source == "hub":
        return Hub(settings.revision, settings.blocklist_url)
    return Directory(Path(settings.root))


def download_part(settings: Path, part: str, output: Path) -> None:
    """Fetch a part of the corpus, checked against the publisher's SHA-256 list."""
    _download_checked(settings, part_file(part), CORPUS_CHECKSUMS, "sha256", output)


def download_blocklist(settings: Path, output: Path) -> None:
    """Fetch the UT1 archive, checked against its published MD5 list."""
    _download_checked(settings, BLOCKLIST, BLOCKLIST_CHECKSUMS, "md5", output)


def download_vocabulary(settings: Path, output: Path) -> None:
    """Fetch the WordPiece vocabulary."""
    source = open_source(read_settings(settings, SourceSettings))
    with publish(output) as temporary:
        source.fetch(VOCABULARY, temporary)


def _download_checked(
    settings: Path, file: PublishedFile, checksums: PublishedFile, algorithm: str, output: Path
) -> None:
    """Fetch a file that `checksums` lists; IntegrityError when its digest is another."""
    source = open_source(read_settings(settings, SourceSettings))
    name = Path(file.path).name
    expected = _read_checksums(source, checksums, output.parent)
    if name not in expected:
        raise MissingInputError(
            f"{name}: not in {checksums.location}, which lists {len(expected)} files; "
            "ask for fewer parts or get a list that has it"
        )
    with publish(output) as temporary:
        source.fetch(file, temporary)
        with open(temporary, "rb") as content:
            found = hashlib.file_digest(content, algorithm).hexdigest()
        if found != expected[name]:
            raise IntegrityError(
                f"{file.location}: {algorithm} expected {expected[name]}, found {found}; "
                f"get the file again, and {checksums.location} if the publisher replaced both"
            )


def _read_checksums(source: Source, checksums: PublishedFile, near: Path) -> dict[str, str]:
    """File name to hexadecimal digest, from lines `<digest>  <file>`."""
    near.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=near, prefix=".checksums-") as folder:
        path = Path(folder) / "list"
        source.fetch(checksums, path)
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    expected = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        digest, _, name = line.strip().partition(" ")
        if not name:
            raise DataError(f"{checksums.location}:{number}: expected '<digest>  <file>'; get the list again")
        expected[Path(name.strip().removeprefix("*")).name] = digest.lower()
    return expected
