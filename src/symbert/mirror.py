"""A mirror: the publishers' files that an experiment reads, fetched for machines without network."""

import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbert.blimp import PARADIGMS, published_pairs
from symbert.commit import PROJECT
from symbert.config import Config, merge, parts_of, repositories_of, sections, source_of
from symbert.corpus import hub
from symbert.corpus.digests import Digest, read_digests
from symbert.corpus.sources import (
    FETCHED,
    Hub,
    download_blocklist,
    listed_digest,
    read_fetched,
)
from symbert.errors import ConfigError, InputOutputError, PreemptedError, SymbertError
from symbert.files import free_space, read_json, sha256_of, single_writer, write_json, write_text
from symbert.glue.sources import published_split
from symbert.progress import data_size
from symbert.project import read_chosen
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
from symbert.suites import SUITES
from symbert.tasks import PUBLISHED


def fetch_mirror(
    directory: Path,
    /,
    scale: str | None = None,
    configfile: list[Path] | None = None,
    config: list[str] | None = None,
) -> None:
    """Download all that an experiment would read from the hub into a directory in the publishers' layout.

    Afterwards `--config source=mirror mirror=DIRECTORY` gives the same results on a machine without network. The
    options are Snakemake's; `scale` stands for scale=…. HF_TOKEN in the environment lets you read the gated
    OSCAR-2301. The same command goes on with an interrupted download, and completes a mirror when the configuration
    wants more. `fetched.json` records the commits, to which the mirror keeps, and what was checked.
    """
    directory.mkdir(parents=True, exist_ok=True)  # so that the configuration may name it as its mirror already
    chosen = read_chosen(PROJECT, scale, configfile, config)
    # The hub in the place of every other source but the user's own files.
    published = [stage for stage in ("corpus", "glue") if SOURCES[source_of(chosen, stage)].is_published]
    chosen = merge(chosen, {"mirror": None, **{stage: {"source": "hub"} for stage in published}})
    with single_writer(directory):
        try:
            empty = {"endpoint": hub.endpoint(), "repositories": {}, "blocklist": None, "files": {}}
            Mirror(directory, read_fetched(directory) or empty).complete(chosen)
        except KeyboardInterrupt:
            raise PreemptedError(f"{directory}: interrupted; the same command goes on") from None
    print(f"{directory}: complete; use it with --config source=mirror mirror={directory}", file=sys.stderr)


def wanted_files(config: Config) -> list[PublishedFile]:
    """What the experiment reads from the hub's repositories: small files first, the parts of the corpus last."""
    repositories = repositories_of(config)
    names = config["sweep"]["tasks"] if SOURCES[source_of(config, "glue")].is_published else []
    tasks = [PUBLISHED[name] for name in names if name in PUBLISHED]  # the user's own are here
    files = [VOCABULARY, *(published_split(task, split) for task in tasks for split in task.splits)]
    if "blimp" in config["sweep"]["suites"] and SOURCES[source_of(config, "glue")].is_published:
        files += map(published_pairs, PARADIGMS)
    if HARMFUL_MODEL.repository in repositories:
        files.append(harmful_model_file(config["corpus"]["harmful_model"]))
    if CORPUS_CHECKSUMS.repository in repositories:
        files += [CORPUS_CHECKSUMS, *map(part_file, parts_of(config))]
    return files


def _revision_of(config: Config, repository: str) -> str:
    """The revision of a data set: that of a suite, or of OSCAR."""
    suites = {suite.repository: suite.revision or config["glue"]["revision"] for suite in SUITES.values()}
    return suites.get(repository, config["corpus"]["revision"])


@dataclass(frozen=True)
class Mirror:
    """A directory in the publishers' layout, and its record of what was fetched at which commit and checked."""

    root: Path
    record: dict[str, Any]  # as `read_fetched` describes it

    def complete(self, config: Config) -> None:
        """Fetch what the experiment reads and the mirror lacks, after saying how much that is.

        InputOutputError when it does not fit; ConfigError when a repository is wanted at another revision.
        """
        files = wanted_files(config)
        if CORPUS_CHECKSUMS in files:
            hub.require_token(CORPUS_CHECKSUMS.kind, CORPUS_CHECKSUMS.repository)
        for name, kind in {file.repository: file.kind for file in files}.items():
            self._fix_commit(name, kind, _revision_of(config, name) if kind == "dataset" else "main")
        self._save()
        self._announce(files)
        self._fetch_blocklist(sections(config)["blocklist_source"])
        self._fetch_all(files)

    def _fix_commit(self, name: str, kind: str, revision: str) -> None:
        """A branch is asked for its commit once; the mirror then keeps to it."""
        known = self.record["repositories"].get(name)
        if known is None:
            commit = hub.resolve(kind, name, revision)
            self.record["repositories"][name] = {"kind": kind, "revision": revision, "commit": commit}
        elif revision not in (known["revision"], known["commit"]):
            raise ConfigError(
                f"{self.root / FETCHED}: {name} is at revision {known['revision']} ({known['commit']}), "
                f"the configuration asks for {revision}; choose another directory"
            )

    def _announce(self, files: list[PublishedFile]) -> None:
        sizes = {
            f"{name}/{path}": size
            for name, repository in self.record["repositories"].items()
            for path, size in hub.sizes(repository["kind"], name, repository["commit"]).items()
        }
        known = {file: sizes[file.location] for file in files if file.location in sizes}
        needed = sum(size for file, size in known.items() if self._size(file) != size)
        untold = f" and {len(files) - len(known)} of untold size" if len(known) < len(files) else ""
        free, mount = free_space(self.root)
        print(
            f"{self.root}: {len(known)} files of {data_size(sum(known.values()))}{untold}, and UT1's archive; "
            f"{data_size(needed)} to download, {data_size(free)} free on {mount}",
            file=sys.stderr,
        )
        if needed > free:
            raise InputOutputError(
                f"{self.root}: needs {data_size(needed)}, {data_size(free)} free on {mount}; "
                "free space there, choose another directory, or ask for fewer parts (corpus.parts)"
            )

    def _fetch_blocklist(self, settings: Config) -> None:
        """UT1's archive as it is today, unless the mirror has one that agrees with the list beside it."""
        archive, listing = (self.root / file.location for file in (BLOCKLIST, BLOCKLIST_CHECKSUMS))
        if archive.is_file() and listing.is_file():
            with suppress(SymbertError):
                listed_digest(read_digests(listing, "md5", str(listing)), BLOCKLIST, str(listing)).check(archive, "")
                return
        with tempfile.TemporaryDirectory(prefix="symbert-") as folder:
            brief, note = Path(folder, "settings.json"), Path(folder, "note.json")
            write_json(brief, settings)
            download_blocklist(brief, archive, note)
            self.record["blocklist"] = read_json(note, {"md5": str})
        write_text(listing, f"{self.record['blocklist']['md5']}  {archive.name}\n")
        self._save()

    def _fetch_all(self, files: list[PublishedFile]) -> None:
        """The publisher's list of parts comes before the parts, and has all that are wanted."""
        source = Hub({name: repository["commit"] for name, repository in self.record["repositories"].items()})
        listing, digests = CORPUS_CHECKSUMS.location, dict[PublishedFile, Digest]()
        for number, file in enumerate(files, start=1):
            if not self._holds(file, digests.get(file)):
                print(f"[{number}/{len(files)}] {file.location}", file=sys.stderr)
                source.fetch(file, self.root / file.location, digests.get(file))
                self._note(file, digests.get(file))
            if file == CORPUS_CHECKSUMS:
                listed = read_digests(self.root / listing, "sha256", listing)
                digests = {part: listed_digest(listed, part, listing) for part in files[number:]}

    def _holds(self, file: PublishedFile, digest: Digest | None) -> bool:
        """Whether the mirror has a file that was right when it came, or is right by the publisher's list."""
        path, noted = self.root / file.location, self.record["files"].get(file.location)
        if noted is not None and noted["bytes"] == self._size(file):
            return True
        if digest is None or not path.is_file():
            return False
        with suppress(SymbertError):
            digest.check(path, str(path))
            self._note(file, digest)
            return True
        return False

    def _note(self, file: PublishedFile, digest: Digest | None) -> None:
        sha256 = digest.value if digest else sha256_of(self.root / file.location)
        self.record["files"][file.location] = {"bytes": self._size(file), "sha256": sha256}
        self._save()

    def _size(self, file: PublishedFile) -> int | None:
        """Bytes of a file; None where the mirror lacks it."""
        path = self.root / file.location
        return path.stat().st_size if path.is_file() else None

    def _save(self) -> None:
        write_json(self.root / FETCHED, self.record)
