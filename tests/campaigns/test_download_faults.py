"""Downloads from a hub that misbehaves.

A download of a file of random size meets a fault of one kind at a random place, a random number of times in a row;
after every other fault the server is busy for longer than a download waits. The download ends with the right bytes, or
with one line that names the file. A refused one is tried again when the hub is healthy.
"""

import hashlib
import io
import random
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path

import pytest

from corpus import sites
from corpus.hub_site import COMMIT, SIGNATURE, TOKEN, HubSite, served_hub
from corpus.sites import Site, hurry, served
from symbert.corpus.hub import fetch_from_hub
from symbert.digests import Digest
from symbert.errors import explain

LARGEST = 1 << 18  # bytes of a file
MOST = 4  # times in a row that a fault strikes
REPOSITORY = {"dataset": "oscar-corpus/OSCAR-2301", "model": "google-bert/bert-base-uncased"}
LIES = [sites.lying_from_zero, sites.honest_from_zero, sites.mislaid]
RETRY_AFTER = [1, 3600, "Fri, 31 Dec 2100 23:59:59 GMT"]
FINAL = {"login page", "redirect to another host", "lying 206", "changed etag", "short", "long", "flipped"}
FAULTS = {  # of a draw, the file, and a place in it
    "drop": lambda draw, body, at: sites.drop(at),
    "reset": lambda draw, body, at: sites.reset(at),
    "stall": lambda draw, body, at: sites.stall(at, 1.0),
    "429 with Retry-After": lambda draw, body, at: sites.status(429, Retry_After=draw.choice(RETRY_AFTER)),
    "5xx": lambda draw, body, at: sites.status(draw.choice([500, 502, 503, 504])),
    "lying 206": lambda draw, body, at: sites.continued(at, draw.choice(LIES)),
    "changed etag": lambda draw, body, at: sites.continued(at, sites.other_version),
    "short": lambda draw, body, at: sites.cut(len(body) - at),
    "long": lambda draw, body, at: sites.chunked(draw.randbytes(at)),
    "flipped": lambda draw, body, at: sites.flip(at),
    "login page": lambda draw, body, at: sites.page(),
    "redirect to another host": None,
}
WITHOUT_CONTENT = ("429 with Retry-After", "5xx", "login page", "redirect to another host")  # may replace a redirection
KEEPING = ("drop", "reset", "stall", "429 with Retry-After", "5xx")  # what has arrived is right, and comes once

pytestmark = pytest.mark.campaign


@dataclass(frozen=True)
class Trial:
    """What a download became."""

    kind: str
    is_bearable: bool  # the fault was to strike once, and the server not to be busy
    error: str  # its class; empty when it was done
    flaws: list[str]  # what must never be


def redirection(draw: random.Random, body: bytes, at: int, elsewhere: Site):
    """To a host that has under the same name the file, a damaged one, a shorter one, or a page."""
    damaged = bytes([*body[:at], body[at] ^ 1, *body[at + 1 :]])
    elsewhere.bodies["/file"] = draw.choice([body, damaged, body[:at], b"<html>log in</html>"])
    return sites.redirect(f"{elsewhere.address}/file", draw.choice([301, 302, 303, 307, 308]))


def try_download(hub: HubSite, elsewhere: Site, kind: str, seed: int, folder: Path) -> Trial:
    """One download from a hub with a fault and, where it is refused, another one from the healthy hub."""
    for site in (hub.host, hub.store, elsewhere):
        for content in (site.bodies, site.etags, site.redirects, site.faults, site.asked):
            content.clear()
    draw, name, destination = random.Random(f"{kind} {seed}"), f"file-{seed}", folder / kind / str(seed) / "file"
    destination.parent.mkdir(parents=True)
    body = draw.randbytes(round(2 ** draw.uniform(1, LARGEST.bit_length() - 1)))
    digest = draw.choice([None, Digest("sha256", hashlib.sha256(body).hexdigest())])  # else the hub is asked for it
    repository = draw.choice(["dataset", "model"])
    home, address = hub.host, (repository, REPOSITORY[repository], name)
    at, path = draw.randrange(1, len(body)), hub.path(*address)
    if draw.random() < 0.5:
        hub.add(*address, body)
    else:
        stored = hub.add_large(*address, body)
        if kind not in WITHOUT_CONTENT or draw.random() < 0.5:
            home, path = hub.store, stored
    fault = FAULTS[kind](draw, body, at) if FAULTS[kind] else redirection(draw, body, at, elsewhere)
    repeats, busy = draw.randint(1, MOST), [sites.status(503)] * (draw.randrange(2) * 3)
    home.fail(path, *[fault] * repeats, *busy)
    flaws: list[str] = []

    def attempt(stall: float) -> str:
        error, line = "", ""
        with redirect_stderr(io.StringIO()) as said, pytest.MonkeyPatch.context() as patch:
            hurry(patch, stall, pause=0.001)
            try:
                fetch_from_hub(*address[:3], COMMIT, destination, digest)
            except Exception as failure:
                error, line = type(failure).__name__, explain(failure)[1]
        asked = [text for request in hub.store.asked + elsewhere.asked for text in request.headers.values()]
        wrong = {
            "wrong bytes": destination.exists() and destination.read_bytes() != body,
            f"refused with {error}, and published": error and destination.exists(),
            "done, and not alone in its folder": not error and list(destination.parent.iterdir()) != [destination],
            f"not one line that names the file: {line!r}": error and (name not in line or "\n" in line),
            "a secret is shown": any(secret in said.getvalue() + line for secret in (TOKEN, SIGNATURE)),
            "the token went to another host": any(TOKEN in text for text in asked),
            f"refused with {error}": error not in ("", "RemoteError", "IntegrityError"),
            f"refused with {error}, though no byte was wrong": error == "IntegrityError" and kind in KEEPING,
        }
        flaws.extend(flaw for flaw, holds in wrong.items() if holds)
        return error

    error = attempt(0.1 if kind == "stall" else 10)
    if error:
        home.fail(path)  # no more
        kept = sum(partial.stat().st_size for partial in destination.parent.rglob("bytes"))
        if second := attempt(10):
            flaws.append(f"the healthy hub is refused with {second}")
        elif kind in KEEPING:
            server = hub.store if hub.store.bodies else hub.host
            if server.asked[-1].headers.get("range") != (f"bytes={kept}-" if kept else None):
                flaws.append(f"{kept} bytes were kept, and not those after them were asked for")
    return Trial(kind, repeats == 1 and not busy, error, flaws)


def run_campaign(seeds: int, kinds: tuple[str, ...] = tuple(FAULTS)) -> Iterator[Trial]:
    """Every kind with every seed."""
    with (
        pytest.MonkeyPatch.context() as patch,
        served_hub(patch) as hub,
        served() as elsewhere,
        tempfile.TemporaryDirectory() as folder,
    ):
        for kind in kinds:
            for seed in range(seeds):
                yield try_download(hub, elsewhere, kind, seed, Path(folder))


def test_faults_of_downloads_lose_nothing():
    trials = list(run_campaign(100))
    assert [flaw for trial in trials for flaw in trial.flaws] == []
    assert len(trials) == 100 * len(FAULTS)
    given_up = {trial.kind for trial in trials if trial.is_bearable and trial.error}
    assert given_up <= FINAL, "what happens once does not end a download"


@pytest.mark.parametrize("kind", ["flipped", "lying 206"])
def test_the_campaign_sees_wrong_bytes_when_digests_are_not_checked(monkeypatch, kind):
    monkeypatch.setattr(Digest, "check", lambda *_: None)
    assert "wrong bytes" in {flaw for trial in run_campaign(8, (kind,)) for flaw in trial.flaws}
