"""Published files, by one name wherever they come from: the hub, or a mirror directory such as the demo's.

A mirror holds a file at `<repository>/<path>`, as the publishers do. First `sources.json` is written: the commit of
each repository and the publisher's digests of the corpus. Every later download takes exactly that commit, and is
published only when its digest is right.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from symbert.corpus.counts import is_full
from symbert.corpus.digests import Digest, digest_of, read_digests
from symbert.errors import ConfigError, DataError, MissingInputError, UsageError
from symbert.files import publish, read_json, reading, write_json, write_text
from symbert.settings import BlocklistSettings, SourceSettings, read_settings
from symbert.shapes import flaws
from symbert.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    HARMFUL_MODEL,
    SOURCES,
    VOCABULARY,
    PublishedFile,
    harmful_model_file,
    part_file,
)

LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
CHECK_URL = "check corpus.blocklist_url"
RESOLVED = {"repositories": {str: {"commit": str}}, "checksums": {str: str}}  # what is read of sources.json
FETCHED = "fetched.json"  # what fetch-mirror notes of a mirror
NOTED = {  # commits, and the digest of each file when it came, by location
    "endpoint": str,
    "repositories": {str: {"kind": str, "revision": str, "commit": str}},
    "blocklist": (dict, type(None)),  # as download-blocklist records it
    "files": {str: {"bytes": int, "sha256": str}},
}
REPOSITORIES = {file.repository: file.kind for file in (CORPUS_CHECKSUMS, HARMFUL_MODEL, VOCABULARY)}


def read_fetched(root: Path) -> dict[str, Any] | None:
    """What fetch-mirror noted of a mirror; None where it noted nothing, DataError when that is no such record."""
    path, remedy = root / FETCHED, "remove it and give the same command again"
    if not path.is_file():
        return None
    record = read_json(path, NOTED, remedy)
    if record["blocklist"] is not None:
        for flaw in flaws(record["blocklist"], {"sha256": str}, "blocklist"):
            raise DataError(f"{path}: {flaw}; {remedy}")
    return record


@dataclass(frozen=True)
class Directory:
    """A mirror: files at their location below `root`."""

    root: Path

    def fetch(self, file: PublishedFile, destination: Path, digest: Digest | None = None) -> None:
        """Copy a file that also has the digest that fetch-mirror noted; MissingInputError names it."""
        _copy(self.root / file.location, destination, self.noted(file), digest)

    def noted(self, file: PublishedFile) -> Digest | None:
        """The digest of a file when fetch-mirror got it; None where it did not."""
        record = read_fetched(self.root) or {"blocklist": None, "files": {}}
        noted = record["blocklist"] if file == BLOCKLIST else record["files"].get(file.location)
        return noted and Digest("sha256", noted["sha256"])


@dataclass(frozen=True)
class Hub:
    """The hub, at fixed commits."""

    commits: dict[str, str]  # of repositories

    def fetch(self, file: PublishedFile, destination: Path, digest: Digest | None = None) -> None:
        """Download a file; RemoteError and MissingInputError name it and the remedy."""
        from symbert.corpus.hub import fetch_from_hub

        if file.repository not in self.commits:
            raise DataError(f"sources.json: no commit of {file.repository}; delete it and run again")
        fetch_from_hub(file.kind, file.repository, file.path, self.commits[file.repository], destination, digest)


def open_source(settings: SourceSettings, sources: dict[str, Any]) -> Directory | Hub:
    """The source that the settings name, at the commits in `sources` (the content of sources.json)."""
    if SOURCES[settings.source].is_remote:
        return Hub({name: repository["commit"] for name, repository in sources["repositories"].items()})
    return Directory(directory_of(settings))


def directory_of(settings: SourceSettings | BlocklistSettings) -> Path:
    """Where the files of a source that is not remote lie."""
    return SOURCES[settings.source].folder or Path(settings.root)


def resolve_corpus(settings: Path, repositories: list[str], output: Path) -> None:
    """Write sources.json: the commit of each of `repositories` and the publisher's digests of the corpus, if it is one.

    `repositories` are those that the experiment needs, so that none is asked for terms that it does not need.
    """
    for name in repositories:
        if name not in REPOSITORIES:
            raise UsageError(f"--repositories: {name!r} is none of {', '.join(REPOSITORIES)}")
    read = read_settings(settings, SourceSettings)
    revisions = {name: read.revision if REPOSITORIES[name] == "dataset" else "main" for name in repositories}
    with_corpus = CORPUS_CHECKSUMS.repository in repositories
    if with_corpus and SOURCES[read.source].is_remote:
        from symbert.corpus.hub import require_token

        require_token(CORPUS_CHECKSUMS.kind, CORPUS_CHECKSUMS.repository)
    sources = resolve(read, {name: (REPOSITORIES[name], revisions[name]) for name in repositories})
    if with_corpus:
        source = open_source(read, sources)
        listed = _read_list(lambda path: source.fetch(CORPUS_CHECKSUMS, path), "sha256", CORPUS_CHECKSUMS.location)
        sources["checksums"] = {name: digest.value for name, digest in listed.items()}
    write_json(output, sources)


def record_files(repositories: Path, counts: list[Path], files: list[Path], output: Path) -> None:
    """Write sources.json of a user's own files: what resolve-corpus wrote as `repositories`, and the SHA-256 of each
    file when it was filtered, from its `counts`; null for a file that was not read."""
    digests = [read_json(path, {"file_sha256": (str, type(None))})["file_sha256"] for path in counts]
    write_json(output, {**read_json(repositories, {}), "files": dict(zip(map(str, files), digests, strict=True))})


def resolve(settings: SourceSettings, revisions: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """The content of sources.json, without checksums, for repositories given with their kind and revision."""
    if not SOURCES[settings.source].is_remote:
        return {"source": settings.source, "endpoint": None, "resolved": None, "repositories": {}, "checksums": {}}
    from symbert.corpus import hub

    repositories = {
        name: {"kind": kind, "revision": revision, "commit": hub.resolve(kind, name, revision)}
        for name, (kind, revision) in revisions.items()
    }
    return {
        "source": settings.source,
        "endpoint": hub.endpoint(),
        "resolved": _today(),
        "repositories": repositories,
        "checksums": {},
    }


def download_part(
    settings: Path, sources: Path, part: str, output: Path, batch: Path | None = None, intake: Path | None = None
) -> None:
    """Fetch a part of the corpus, checked against the publisher's list.

    When the earlier parts up to `batch` fill the `intake`, an empty file is written instead.
    """
    if is_full(batch, intake):
        write_text(output, "")
        return
    file, resolved = part_file(part), read_json(sources, RESOLVED)
    listed = {name: Digest("sha256", value) for name, value in resolved["checksums"].items()}
    source = open_source(read_settings(settings, SourceSettings), resolved)
    source.fetch(file, output, listed_digest(listed, file, CORPUS_CHECKSUMS.location))


def download_vocabulary(settings: Path, sources: Path, output: Path) -> None:
    """Fetch the WordPiece vocabulary."""
    open_source(read_settings(settings, SourceSettings), read_json(sources, RESOLVED)).fetch(VOCABULARY, output)


def download_harmful_model(settings: Path, sources: Path, file: str, output: Path) -> None:
    """Fetch the language model of harmful text called `file` (`corpus.harmful_model`)."""
    open_source(read_settings(settings, SourceSettings), read_json(sources, RESOLVED)).fetch(
        harmful_model_file(file), output
    )


def download_blocklist(settings: Path, output: Path, record: Path) -> None:
    """Fetch the UT1 archive and write what came from where and when; it is checked against the MD5 list beside it.

    `corpus.blocklist_url` may be a directory. Only a directory may lack the list; that is said on stderr.
    """
    read = read_settings(settings, BlocklistSettings)
    if read.url and "://" in read.url:
        url = read.url.rstrip("/")
        origin = {"url": f"{url}/{BLOCKLIST.name}"}
        _download_blocklist(url, output)
    else:
        folder = Path(read.url or directory_of(read) / BLOCKLIST.repository)
        origin = {"path": str(folder / BLOCKLIST.name)} if read.url or read.root else {"source": read.source}
        listing, listed = folder / BLOCKLIST_CHECKSUMS.name, None
        noted = None if read.url else Directory(folder.parent).noted(BLOCKLIST)
        if listing.is_file():
            listed = listed_digest(read_digests(listing, "md5", str(listing)), BLOCKLIST, str(listing))
        elif noted is None:
            print(f"warning: {folder / BLOCKLIST.name}: taken unchecked, no {listing.name} beside it", file=sys.stderr)
        _copy(folder / BLOCKLIST.name, output, noted, listed)
    digests = {algorithm: digest_of(output, algorithm) for algorithm in ("md5", "sha256")}
    write_json(record, {**origin, **digests, "bytes": output.stat().st_size, "retrieved": _today()})


def _download_blocklist(url: str, output: Path) -> None:
    """The publisher replaces archive and list in place, so a wrong digest has both fetched once more."""
    from symbert.corpus.download import Remote, download

    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS):
        raise ConfigError(f"corpus.blocklist_url: {url!r} is not https; the list decides what is trained on")
    archive, listing = (
        Remote(f"{url}/{file.name}", on_refusal=CHECK_URL, on_absence=CHECK_URL)
        for file in (BLOCKLIST, BLOCKLIST_CHECKSUMS)
    )

    def find_digest() -> Digest:
        listed = _read_list(lambda path: download(listing, path), "md5", listing.url)
        return listed_digest(listed, BLOCKLIST, listing.url)

    download(archive, output, find_digest)


def _copy(origin: Path, destination: Path, noted: Digest | None, listed: Digest | None) -> None:
    """Publish a copy that has the digest that fetch-mirror noted and the one that the publisher lists, where known."""
    absent = "put the publisher's file there or choose another source"
    with publish(destination) as temporary, reading(origin, absent):
        shutil.copyfile(origin, temporary)
        if noted is not None:
            noted.check(temporary, str(origin), f"remove {origin} and run fetch-mirror again")
        if listed not in (None, noted):
            listed.check(temporary, str(origin))


def _read_list(fetch: Callable[[Path], None], algorithm: str, origin: str) -> dict[str, Digest]:
    with tempfile.TemporaryDirectory(prefix="symbert-") as folder:
        path = Path(folder, "list")
        fetch(path)
        return read_digests(path, algorithm, origin)


def listed_digest(listed: dict[str, Digest], file: PublishedFile, origin: str) -> Digest:
    """The digest of a file in a publisher's list that came from `origin`; MissingInputError when it has none."""
    if file.name not in listed:
        raise MissingInputError(
            f"{file.name}: not in {origin}, which lists {len(listed)} files; "
            "ask for fewer parts or get a list that has it"
        )
    return listed[file.name]


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
