"""A mirror filled from a hub on this machine: it gives what the hub gives, and nothing comes twice."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corpus import sites
from corpus.hub_site import COMMIT, TOKEN, served_hub
from symbert.cli import main
from symbert.corpus.published import download
from symbert.errors import IntegrityError
from symbert.files import read_json, write_json
from symbert.glue.tasks import GLUE, SUITES, published_split
from symbert.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    HARMFUL_MODEL,
    VOCABULARY,
    part_file,
    sums_of,
    verified,
)

OSCAR, KENLMS, BERT = (file.repository for file in (CORPUS_CHECKSUMS, HARMFUL_MODEL, VOCABULARY))
REPOSITORY = SUITES["glue"].repository
RTE = GLUE["rte"]
SPLITS = [published_split(RTE, split) for split in RTE.splits]
PARTS = {f"en_meta_part_{number}": random.Random(number).randbytes(1 << 20) for number in (1, 2)}
ARCHIVE = b"archive"


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def stored(part: str) -> str:
    """The path of a part on the host of large files."""
    return f"/{sha256(PARTS[part])}"


@pytest.fixture
def hub(monkeypatch):
    """The hub with two parts, their list, a vocabulary, a model of harmful text and RTE."""
    with served_hub(monkeypatch) as hub:
        for part, body in PARTS.items():
            hub.add_large("dataset", OSCAR, part_file(part).path, body)
        listed = "".join(f"{sha256(body)}  {part}.jsonl.zst\n" for part, body in PARTS.items())
        hub.add("dataset", OSCAR, CORPUS_CHECKSUMS.path, listed.encode())
        hub.add("model", BERT, VOCABULARY.path, b"[PAD]\n")
        hub.add_large("model", KENLMS, "en.arpa", b"model")
        for file in SPLITS:
            hub.add("dataset", REPOSITORY, file.path, file.path.encode())
        for kind, name in (("dataset", OSCAR), ("model", BERT), ("model", KENLMS)):
            hub.add_repository(kind, name)
        yield hub


@pytest.fixture
def ut1():
    """UT1's host."""
    with sites.served() as site:
        publish(site, ARCHIVE)
        yield site


def publish(ut1: sites.Site, archive: bytes) -> None:
    ut1.bodies["/blacklists.tar.gz"] = archive
    ut1.bodies["/MD5SUM.LST"] = f"{hashlib.md5(archive).hexdigest()}  blacklists.tar.gz\n".encode()


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "mirror"


@pytest.fixture
def command(hub, ut1, directory, folder, tmp_path):
    """The words of the command for two parts and RTE; more settings may be given."""
    base = tmp_path / "base.yaml"
    corpus = f"corpus: {{parts: 2, blocklist_url: '{ut1.address}'}}"
    base.write_text(f"{corpus}\nsweep: {{suites: [glue], tasks: [rte]}}\nglue: {{revision: '{COMMIT}'}}\n")
    words = ["fetch-mirror", str(directory), "--scale", "demo", "--configfile", str(base)]
    return lambda *settings: [*words, *(["--config", *settings] if settings else [])]


def files_of(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


WANTED = {
    *(file.location for file in (VOCABULARY, CORPUS_CHECKSUMS, *map(part_file, PARTS), *SPLITS)),
    *(BLOCKLIST.location, BLOCKLIST_CHECKSUMS.location),
}
OWN = {"fetched.json", "SHA256SUMS", "lock"}


def test_a_filled_mirror_gives_what_the_hub_gives(command, directory, ut1, tmp_path):
    assert main(command()) == 0
    assert files_of(directory) == WANTED | OWN
    for file in (*map(part_file, PARTS), CORPUS_CHECKSUMS, VOCABULARY, *SPLITS, BLOCKLIST, BLOCKLIST_CHECKSUMS):
        folder = tmp_path / "published" / file.repository
        origin = {"kind": file.kind, "repository": file.repository, "revision": COMMIT}
        write_json(folder / "settings.json", {"url": ut1.address} if file.kind == "ut1" else origin)
        download(folder / file.path)
        assert (folder / file.path).read_bytes() == (directory / file.location).read_bytes()


def test_commits_and_digests_are_written_down(command, directory, hub, capfd):
    assert main(command()) == 0
    assert read_json(directory / "fetched.json") == {
        "endpoint": hub.host.address,
        "repositories": {
            OSCAR: {"kind": "dataset", "revision": "main", "commit": COMMIT},
            BERT: {"kind": "model", "revision": "main", "commit": COMMIT},
            REPOSITORY: {"kind": "dataset", "revision": COMMIT, "commit": COMMIT},
        },
    }
    listed = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=directory, capture_output=True)
    assert listed.returncode == 0 and sums_of(directory).keys() == WANTED
    said = capfd.readouterr().err
    assert said.endswith(f"--config source=mirror mirror={directory}\n")
    assert TOKEN not in said + (directory / "fetched.json").read_text()


def test_what_is_there_is_not_downloaded_again_and_what_is_gone_is(command, directory, hub, ut1, capfd):
    assert main(command()) == 0
    (directory / part_file("en_meta_part_1").location).unlink()
    for site in (hub.host, hub.store, ut1):
        site.asked.clear()
    capfd.readouterr()
    assert main(command()) == 0
    assert [asked.path for asked in hub.store.asked] == [stored("en_meta_part_1")] and ut1.asked == []
    assert files_of(directory) == WANTED | OWN


def test_more_is_added_at_the_commit_of_the_first_time(command, directory, hub):
    assert main(command("corpus={parts: 1}")) == 0
    hub.host.bodies[hub.interface("dataset", OSCAR)] = json.dumps({"id": OSCAR, "sha": "2" * 40}).encode()
    assert main(command()) == 0
    assert part_file("en_meta_part_2").location in files_of(directory)
    assert read_json(directory / "fetched.json")["repositories"][OSCAR]["commit"] == COMMIT
    assert all("2" * 40 not in asked.path for asked in hub.host.asked)


def test_a_mirror_of_one_revision_does_not_become_that_of_another(command, directory, capfd):
    assert main(command()) == 0
    assert main(command("corpus={revision: v2}")) == 64
    assert f"fetched.json: {OSCAR} is at revision main ({COMMIT})" in capfd.readouterr().err
    assert main(command(f"corpus={{revision: {COMMIT}}}")) == 0, "the same by its name"


def test_what_was_damaged_after_it_came_is_refused_and_the_remedy_helps(command, directory):
    assert main(command()) == 0
    for file in (VOCABULARY, part_file("en_meta_part_1"), BLOCKLIST, SPLITS[0]):
        path = directory / file.location
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(IntegrityError, match=f"{path}: sha256 expected .*; delete it and run fetch-mirror again"):
            verified(str(path))
        path.unlink()
        assert main(command()) == 0
        assert verified(str(path)).read_bytes() == whole


def test_a_record_that_is_none_is_named_with_the_remedy(command, directory, capfd):
    """It was a bug of the program, to the one who read its message."""
    assert main(command()) == 0
    for damaged in ("[]", '{"files": {}}', '{"endpoint": "", "repositories": {"a": 1}}'):
        (directory / "fetched.json").write_text(damaged)
        assert main(command()) == 65
        said = capfd.readouterr().err.splitlines()[-1]
        assert "fetched.json: " in said and said.endswith("; remove it and give the same command again")
    (directory / "fetched.json").unlink()
    assert main(command()) == 0


@pytest.mark.campaign
@pytest.mark.parametrize(("by", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 75)])
def test_an_interrupted_download_goes_on_where_it_stopped(command, directory, hub, root, by, code):
    first, second = PARTS
    hub.store.fail(stored(second), sites.stall(700_000, 60))
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    process = subprocess.Popen([sys.executable, "-m", "symbert", *command()], env=environment)
    whole = directory / part_file(second).location
    partial = whole.with_name(f".{second}.jsonl.zst.{sha256(PARTS[second])[:12]}.partial")
    sites.wait_until_asleep(process.pid, lambda: partial.exists() and partial.stat().st_size > 680_000)
    process.send_signal(by)
    assert process.wait(30) == code and not whole.exists()
    assert main(command()) == 0
    assert files_of(directory) == WANTED | OWN and whole.read_bytes() == PARTS[second]
    assert hub.store.count(stored(first)) == 1 and hub.store.sent(stored(second)) <= 1.1 * (1 << 20)


def test_a_refusal_names_page_and_remedy_and_loses_nothing(command, directory, hub, ut1, capfd, monkeypatch, tmp_path):
    page = f"{hub.host.address}/datasets/{OSCAR}"
    with monkeypatch.context() as patch:
        patch.delenv("HF_TOKEN")
        patch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
        assert main(command()) == 65
    assert f"is gated; accept the terms on {page}" in capfd.readouterr().err
    assert hub.host.asked == ut1.asked == [] and files_of(directory) == {"lock"}
    hub.host.fail(hub.path("dataset", OSCAR, CORPUS_CHECKSUMS.path), sites.status(403))
    assert main(command()) == 65
    said = capfd.readouterr().err
    assert f"HTTP 403; accept the terms on {page} and set HF_TOKEN" in said and TOKEN not in said
    assert main(command()) == 0
    assert hub.host.count(hub.path("model", BERT, VOCABULARY.path)) == 1


def test_a_blocklist_that_agrees_with_its_list_stays_and_another_is_replaced(command, directory, ut1):
    archive, listing = (directory / file.location for file in (BLOCKLIST, BLOCKLIST_CHECKSUMS))
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"mine")
    assert main(command()) == 0 and archive.read_bytes() == ARCHIVE
    publish(ut1, b"tomorrow's")
    assert main(command()) == 0 and archive.read_bytes() == ARCHIVE
    archive.unlink()
    listing.unlink()
    assert main(command()) == 0 and archive.read_bytes() == b"tomorrow's"


def test_for_ones_own_text_and_tasks_nothing_gated_is_asked_for(command, directory, hub, tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    (tmp_path / "mine.jsonl").write_text("{}\n")
    own = f"corpus={{source: files, files: {tmp_path}/*.jsonl, annotations: published}}"
    assert main(command(own, f"glue={{source: files, files: {tmp_path}}}")) == 0
    assert files_of(directory) == OWN | {f.location for f in (VOCABULARY, BLOCKLIST, BLOCKLIST_CHECKSUMS)}
    assert all(OSCAR not in asked.path and REPOSITORY not in asked.path for asked in hub.host.asked)
