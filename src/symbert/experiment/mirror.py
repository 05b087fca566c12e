"""A mirror: the publishers' files that an experiment reads, fetched for machines without network."""

import sys
from pathlib import Path
from typing import Any

from symbert.configuration import merge, source_of
from symbert.corpus import published
from symbert.corpus.digests import listed_digest
from symbert.errors import ConfigError, PreemptedError
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_chosen
from symbert.files import copy_file, read_json, sha256_of, single_writer, write_json, write_text
from symbert.provenance import PROJECT
from symbert.sources import CORPUS_CHECKSUMS, SOURCES, SUMS, PublishedFile, sums_of

FETCHED = "fetched.json"
NOTED = {"endpoint": str, "repositories": {str: {"kind": str, "revision": str, "commit": str}}}


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
    OSCAR-2301. The same command resumes an interrupted download, and completes a mirror when the configuration
    wants more. `fetched.json` records the commits, to which the mirror keeps, and SHA256SUMS the digests of all files.
    """
    directory.mkdir(parents=True, exist_ok=True)  # so that the configuration may name it as its mirror already
    chosen = read_chosen(PROJECT, scale, configfile, config)
    # The hub in the place of every other source but the user's own files.
    remote = [stage for stage in ("corpus", "glue") if SOURCES[source_of(chosen, stage)].is_published]
    experiment = Experiment(merge(chosen, {"mirror": None, **{stage: {"source": "hub"} for stage in remote}}))
    with single_writer(directory):
        try:
            Mirror(directory, experiment).complete()
        except KeyboardInterrupt:
            raise PreemptedError(f"{directory}: interrupted; the same command resumes") from None
    print(f"{directory}: complete; use it with --config source=mirror mirror={directory}", file=sys.stderr)


class Mirror:
    """A directory in the publishers' layout, and its record of what was fetched at which commit."""

    def __init__(self, root: Path, experiment: Experiment) -> None:
        self.root = root
        self.record: dict[str, Any] = {"endpoint": published.endpoint(), "repositories": {}}
        if (root / FETCHED).is_file():
            self.record = read_json(root / FETCHED, NOTED, "remove it and give the same command again")
        self.sums = sums_of(root)
        self.origins = {  # as `symbert download` reads them; none of UT1 in a directory of the user's
            file: experiment.settings.get(f"{name.removesuffix('/' + file.path)}/settings.json", {"url": name})
            for name, file in experiment.published.items()
        }
        self.wanted = sorted(self.origins, key=_is_part)  # small files first

    def complete(self) -> None:
        """Fetch what the experiment reads and the mirror lacks; ConfigError when a repository is wanted at another
        revision."""
        for file, origin in self.origins.items():
            if file.kind != "ut1":
                self._fix_commit(**origin)
        write_json(self.root / FETCHED, self.record)
        for number, file in enumerate(self.wanted, start=1):
            if not self._is_noted(file):
                print(f"[{number}/{len(self.wanted)}] {file.location}", file=sys.stderr)
                self._fetch(file)

    def _fix_commit(self, kind: str, repository: str, revision: str) -> None:
        """A branch is asked for its commit once; the mirror then keeps to it."""
        known = self.record["repositories"].get(repository)
        if known is None:
            commit = published.resolve(kind, repository, revision)
            self.record["repositories"][repository] = {"kind": kind, "revision": revision, "commit": commit}
        elif revision not in (known["revision"], known["commit"]):
            raise ConfigError(
                f"{self.root / FETCHED}: {repository} is at revision {known['revision']} ({known['commit']}), "
                f"the configuration asks for {revision}; choose another directory"
            )

    def _is_noted(self, file: PublishedFile) -> bool:
        return file.location in self.sums and (self.root / file.location).is_file()

    def _fetch(self, file: PublishedFile) -> None:
        path, origin, listed = self.root / file.location, self.origins[file], None
        if _is_part(file):
            listed = listed_digest(self.root / CORPUS_CHECKSUMS.location, "sha256", file.name)
        if file.kind != "ut1":
            commit = self.record["repositories"][file.repository]["commit"]
            published.fetch_from_hub(file.kind, file.repository, file.path, commit, path, listed)
        elif "://" in origin["url"]:
            published.fetch_blocklist(origin["url"], path)
        else:
            copy_file(Path(origin["url"]), path)
        self.sums[file.location] = sha256_of(path)
        write_text(self.root / SUMS, "".join(f"{digest}  {name}\n" for name, digest in sorted(self.sums.items())))


def _is_part(file: PublishedFile) -> bool:
    """Whether a file is one that the corpus's list of digests lists."""
    return file.repository == CORPUS_CHECKSUMS.repository and file != CORPUS_CHECKSUMS
