"""A campaign of downloads from a hub that misbehaves: `make download-faults`.

A download of a file of random size meets a fault of one kind at a random place, a random number of times in a row;
after every other fault the server is busy for longer than a download waits. The download ends with the right bytes, or
with one line and an exit code. A refused one is tried again when the hub is healthy.
"""

import argparse
import hashlib
import io
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path

import pytest

from corpus import sites
from corpus.hub_site import COMMIT, SIGNATURE, TOKEN, HubSite, served_hub
from corpus.sites import Site, served
from symbert.corpus.digests import Digest
from symbert.corpus.download import RetryPolicy
from symbert.corpus.published import fetch_from_hub
from symbert.errors import explain

LARGEST = 1 << 18  # bytes of a file
MOST = 4  # times in a row that a fault strikes
SILENCE = 1.0  # seconds, longer than a stall that is waited for
POLICY = RetryPolicy(attempts=3, pause=0.001, longest_pause=0.002, longest_wait=0.01, stall=10)
IMPATIENT = RetryPolicy(attempts=3, pause=0.001, longest_pause=0.002, longest_wait=0.01, stall=0.1)
REPOSITORY = {"dataset": "oscar-corpus/OSCAR-2301", "model": "google-bert/bert-base-uncased"}


@dataclass(frozen=True)
class Place:
    """Where a fault strikes: a file of `body` bytes, the byte `at` (never the first), and a third host."""

    draw: random.Random
    body: bytes
    at: int
    elsewhere: Site

    def other_body(self) -> bytes:
        """What another host may have under the same name: the file, a damaged one, a shorter one, a page."""
        damaged = bytearray(self.body)
        damaged[self.at] ^= 1
        return self.draw.choice([self.body, bytes(damaged), self.body[: self.at], b"<html>log in</html>"])


@dataclass(frozen=True)
class Kind:
    """A kind of fault."""

    name: str
    fault: Callable[[Place], Callable]
    of_content: bool = True  # else the answer needs no file, and may come in place of a redirection
    keeps: bool = False  # what has arrived is right, and is not transferred again
    kinds: tuple[str, ...] = ("RemoteError",)  # of refused downloads


def _redirection(place: Place) -> Callable:
    place.elsewhere.bodies["/file"] = place.other_body()
    return sites.redirect(f"{place.elsewhere.address}/file", place.draw.choice([301, 302, 303, 307, 308]))


WRONG = ("IntegrityError",)
EITHER = (*WRONG, "RemoteError")
LIES = [sites.lying_from_zero, sites.honest_from_zero, sites.mislaid]
KINDS = (
    Kind("drop", lambda place: sites.drop(place.at), keeps=True),
    Kind("reset", lambda place: sites.reset(place.at), keeps=True),
    Kind("stall", lambda place: sites.stall(place.at, SILENCE), keeps=True),
    Kind(
        "429 with Retry-After",
        lambda place: sites.status(429, Retry_After=place.draw.choice([1, 3600, "Fri, 31 Dec 2100 23:59:59 GMT"])),
        of_content=False,
        keeps=True,
    ),
    Kind("5xx", lambda place: sites.status(place.draw.choice([500, 502, 503, 504])), of_content=False, keeps=True),
    Kind("lying 206", lambda place: sites.continued(place.at, place.draw.choice(LIES)), kinds=EITHER),
    Kind("changed etag", lambda place: sites.continued(place.at, sites.other_version), kinds=EITHER),
    Kind("short", lambda place: sites.cut(len(place.body) - place.at), kinds=WRONG),
    Kind("long", lambda place: sites.chunked(place.draw.randbytes(place.at)), kinds=EITHER),
    Kind("flipped", lambda place: sites.flip(place.at), kinds=WRONG),
    Kind("login page", lambda place: sites.page(), of_content=False, kinds=EITHER),
    Kind("redirect to another host", _redirection, of_content=False, kinds=EITHER),
)


@dataclass(frozen=True)
class Trial:
    """What a download became."""

    kind: str
    is_bearable: bool  # the fault was to strike once, and the server not to be busy
    error: str  # its class; empty when it was done
    flaws: tuple[str, ...] = ()  # what must never be


@dataclass(frozen=True)
class Hosts:
    """The hub, the host of its large files, and one that is neither."""

    hub: HubSite
    elsewhere: Site

    def given_away(self) -> bool:
        """Whether a host other than the hub was told the token."""
        asked = (*self.hub.store.asked, *self.elsewhere.asked)
        return any(TOKEN in text for request in asked for text in (request.path, *request.headers.values()))

    def forget(self) -> None:
        """Begin a new trial."""
        for site in (self.hub.host, self.hub.store, self.elsewhere):
            for content in (site.bodies, site.etags, site.redirects, site.faults, site.asked):
                content.clear()


@contextmanager
def served_hosts() -> Iterator[Hosts]:
    """The hosts, while they are served."""
    with pytest.MonkeyPatch.context() as patch, served_hub(patch) as hub, served() as elsewhere:
        yield Hosts(hub, elsewhere)


@dataclass(frozen=True)
class Download:
    """A file of the hub, and where it shall be."""

    hosts: Hosts
    repository_kind: str
    name: str
    body: bytes
    digest: Digest | None  # else the hub is asked for it
    destination: Path  # in a folder of its own

    def attempt(self, policy: RetryPolicy) -> tuple[str, list[str]]:
        """The class of the error, empty for none, and what must never be."""
        repository = REPOSITORY[self.repository_kind]
        kind, line = "", ""
        with redirect_stderr(io.StringIO()) as said:
            try:
                fetch_from_hub(
                    self.repository_kind, repository, self.name, COMMIT, self.destination, self.digest, policy
                )
            except Exception as error:
                kind, line = type(error).__name__, explain(error)[1]
        return kind, list(self._flaws(kind, line, said.getvalue()))

    def _flaws(self, kind: str, line: str, said: str) -> Iterator[str]:
        if self.destination.exists() and self.destination.read_bytes() != self.body:
            yield "wrong bytes"
        if kind and self.destination.exists():
            yield f"refused with {kind}, and published"
        if not kind and list(self.destination.parent.iterdir()) != [self.destination]:
            yield "done, and not alone in its folder"
        if kind and (self.name not in line or "\n" in line):
            yield f"not one line that names the file: {line!r}"
        if any(secret in text for secret in (TOKEN, SIGNATURE) for text in (said, line)):
            yield "a secret is shown"
        if self.hosts.given_away():
            yield "the token went to another host"

    def kept(self) -> int:
        """Bytes that wait for the next attempt."""
        return sum(partial.stat().st_size for partial in self.destination.parent.iterdir())


def try_download(hosts: Hosts, kind: Kind, seed: int, folder: Path) -> Trial:
    """One download from a hub with a fault and, where it is refused, another one from the healthy hub."""
    hosts.forget()
    hub, draw = hosts.hub, random.Random(f"{kind.name} {seed}")
    body = draw.randbytes(round(2 ** draw.uniform(1, LARGEST.bit_length() - 1)))
    digest = draw.choice([None, Digest("sha256", hashlib.sha256(body).hexdigest())])
    repository_kind = draw.choice(["dataset", "model"])
    download = Download(hosts, repository_kind, f"file-{seed}", body, digest, folder / kind.name / str(seed) / "file")
    download.destination.parent.mkdir(parents=True)

    repository = REPOSITORY[repository_kind]
    site, path = hub.host, hub.path(repository_kind, repository, download.name)
    home = draw.choice([hub.host, hub.store])
    if home is hub.host:
        hub.add(repository_kind, repository, download.name, body)
    else:
        stored = hub.add_large(repository_kind, repository, download.name, body)
        if kind.of_content or draw.random() < 0.5:
            site, path = home, stored

    fault = kind.fault(Place(draw, body, draw.randrange(1, len(body)), hosts.elsewhere))
    repeats, busy = draw.randint(1, MOST), [sites.status(503)] * (draw.randrange(2) * POLICY.attempts)
    site.fail(path, *[fault] * repeats, *busy)
    error, flaws = download.attempt(IMPATIENT if kind.name == "stall" else POLICY)
    if error:
        if error not in (*kind.kinds, "RemoteError"):
            flaws.append(error)
        site.fail(path)  # no more
        kept = download.kept()
        second, more = download.attempt(POLICY)
        flaws += more
        if second:
            flaws.append(f"the healthy hub is refused with {second}")
        elif kind.keeps and home.asked[-1].headers.get("range") != (f"bytes={kept}-" if kept else None):
            flaws.append(f"{kept} bytes were kept, and not those after them were asked for")
    return Trial(kind.name, repeats == 1 and not busy, error, tuple(flaws))


def run_campaign(seeds: int, kinds: tuple[Kind, ...] = KINDS) -> Iterator[Trial]:
    """Every kind with every seed."""
    with served_hosts() as hosts, tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            for seed in range(seeds):
                yield try_download(hosts, kind, seed, Path(folder))


def page_of(trials: list[Trial], seeds: int) -> str:
    """The table of a campaign."""
    lines = [
        "# Faults of downloads",
        "",
        f"Seeds 0 to {seeds - 1} of each kind, {len(trials):,} downloads: `make download-faults`.",
        "",
        "| fault | downloads | right at once | refused, right when run again | errors | lost |",
        "|---|---:|---:|---:|---|---:|",
    ]
    for kind in KINDS:
        own = [trial for trial in trials if trial.kind == kind.name]
        refused = Counter(trial.error for trial in own if trial.error and not trial.flaws)
        errors = ", ".join(f"{name}: {count}" for name, count in sorted(refused.items()))
        right = sum(not trial.error and not trial.flaws for trial in own)
        lost = sum(bool(trial.flaws) for trial in own)
        lines.append(f"| {kind.name} | {len(own)} | {right} | {refused.total()} | {errors or '–'} | {lost} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run the campaign and write its table; ends with 1 when a download was lost."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="downloads of each kind")
    parser.add_argument("--output", type=Path, default=Path("results/download-faults.md"))
    options = parser.parse_args()
    trials = list(run_campaign(options.seeds))
    page = page_of(trials, options.seeds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page, encoding="utf-8")
    print(page)
    flaws = [f"{trial.kind}: {flaw}" for trial in trials for flaw in trial.flaws]
    sys.exit("\n".join(flaws) or None)


if __name__ == "__main__":
    main()
