"""A mirror filled from a hub on this machine: it gives what the hub gives, and nothing comes twice."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from symbert.corpus.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    HARMFUL_MODEL,
    VOCABULARY,
    download_blocklist,
    download_part,
    download_vocabulary,
    part_file,
    resolve_corpus,
)

from corpus import sites
from corpus.hub_site import COMMIT, TOKEN, served_hub
from symbert.cli import main
from symbert.files import read_json
from symbert.glue.sources import download_task, published_schema, published_split, resolve_glue
from symbert.suites import SUITES
from symbert.tasks import GLUE

OSCAR, KENLMS, BERT = (file.repository for file in (CORPUS_CHECKSUMS, HARMFUL_MODEL, VOCABULARY))
REPOSITORY = SUITES["glue"].repository
RTE = GLUE["rte"]
SPLITS = [published_split(RTE, split) for split in RTE.splits]
PARTS = {f"en_meta_part_{number}": random.Random(number).randbytes(1 << 20) for number in (1, 2)}
PART = "en_meta_part_1"
ARCHIVE = b"archive"


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def flipped(body: bytes) -> bytes:
    """With another last bit."""
    return body[:-1] + bytes([body[-1] ^ 1])


def stored(part: str) -> str:
    """The path of a part on the host of large files."""
    return f"/{sha256(PARTS[part])}"


def rte_rows() -> bytes:
    """Two rows in the hub's form."""
    columns = [["a b", "c d"], ["e", "f"], [0, 1], [0, 1]]
    schema = published_schema(RTE)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, schema=schema), sink)
    return sink.getvalue().to_pybytes()


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
            hub.add("dataset", REPOSITORY, file.path, rte_rows())
        sizes = {part_file(part).path: len(body) for part, body in PARTS.items()}
        for kind, name, known in (("dataset", OSCAR, sizes), ("model", BERT, {}), ("model", KENLMS, {})):
            hub.add_repository(kind, name)
            tell_sizes(hub, kind, name, known)
        tell_sizes(hub, "dataset", REPOSITORY, {})
        yield hub


def tell_sizes(hub, kind: str, repository: str, sizes: dict[str, int]) -> None:
    files = [{"rfilename": name, "size": size} for name, size in sizes.items()]
    body = json.dumps({"id": repository, "sha": COMMIT, "siblings": files}).encode()
    hub.host.bodies[hub.interface(kind, repository, COMMIT)] = body


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
def command(root, hub, ut1, directory, monkeypatch, tmp_path):
    """The words of the command for two parts and RTE, in the project's folder; more settings may be given."""
    monkeypatch.chdir(root)
    base = tmp_path / "base.yaml"
    corpus = f"corpus: {{parts: 2, blocklist_url: '{ut1.address}'}}"
    base.write_text(f"{corpus}\nsweep: {{tasks: [rte]}}\nglue: {{revision: '{COMMIT}'}}\n")
    words = ["fetch-mirror", str(directory), "--scale", "demo", "--configfile", str(base)]
    return lambda *settings: [*words, *(["--config", *settings] if settings else [])]


def files_of(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


WANTED = {
    *(file.location for file in (VOCABULARY, CORPUS_CHECKSUMS, *map(part_file, PARTS), *SPLITS)),
    *(BLOCKLIST.location, BLOCKLIST_CHECKSUMS.location),
}
OWN = {"fetched.json", "lock"}


def test_a_filled_mirror_gives_what_the_hub_gives(command, directory, ut1, write_section, tmp_path):
    assert main(command()) == 0
    assert files_of(directory) == WANTED | OWN
    places = {"hub": {"root": None}, "mirror": {"root": str(directory)}}
    given = {}
    for source, place in places.items():
        folder = tmp_path / f"from-{source}"
        corpus = write_section("corpus_source", source=source, revision="main", **place)
        resolve_corpus(corpus, [OSCAR, BERT], folder / "sources.json")
        for part in PARTS:
            download_part(corpus, folder / "sources.json", part, folder / part)
        download_vocabulary(corpus, folder / "sources.json", folder / "vocab.txt")
        url = ut1.address if source == "hub" else None
        blocklist = write_section("blocklist_source", source=source, url=url, **place)
        download_blocklist(blocklist, folder / "ut1", folder / "ut1.json")
        glue = write_section("glue_source", source=source, revision=COMMIT, **place)
        resolve_glue(glue, folder / "glue.json")
        download_task(glue, folder / "glue.json", "rte", folder / "rte")
        checksums = read_json(folder / "sources.json")["checksums"]
        given[source] = [checksums, *((folder / name).read_bytes() for name in (*PARTS, "vocab.txt", "ut1", "rte"))]
    assert given["hub"] == given["mirror"]
    assert given["hub"][1:3] == list(PARTS.values())


def test_commits_and_checksums_are_written_down(command, directory, hub, ut1, capfd):
    assert main(command()) == 0
    record = read_json(directory / "fetched.json")
    assert record["endpoint"] == hub.host.address
    assert record["repositories"] == {
        BERT: {"kind": "model", "revision": "main", "commit": COMMIT},
        REPOSITORY: {"kind": "dataset", "revision": COMMIT, "commit": COMMIT},
        OSCAR: {"kind": "dataset", "revision": "main", "commit": COMMIT},
    }
    date.fromisoformat(record["blocklist"]["retrieved"])
    assert record["blocklist"]["url"] == f"{ut1.address}/blacklists.tar.gz"
    assert record["blocklist"]["sha256"] == sha256(ARCHIVE)
    part = part_file("en_meta_part_2").location
    assert record["files"][part] == {"bytes": 1 << 20, "sha256": sha256(PARTS["en_meta_part_2"])}
    assert record["files"].keys() == WANTED - {BLOCKLIST.location, BLOCKLIST_CHECKSUMS.location}
    said = capfd.readouterr().err
    assert said.startswith(
        f"{directory}: 2 files of 2.1 MB and 4 of untold size, and UT1's archive; 2.1 MB to download, "
    )
    assert f"[6/6] {part}\n" in said and said.endswith(f"--config source=mirror mirror={directory}\n")
    assert TOKEN not in said + (directory / "fetched.json").read_text()


def test_what_is_there_is_not_downloaded_again_and_what_is_gone_is(command, directory, hub, ut1, capfd):
    assert main(command()) == 0
    (directory / part_file("en_meta_part_1").location).unlink()
    for site in (hub.host, hub.store, ut1):
        site.asked.clear()
    capfd.readouterr()
    assert main(command()) == 0
    assert [asked.path for asked in hub.store.asked] == [stored("en_meta_part_1")] and ut1.asked == []
    assert "UT1's archive; 1.05 MB to download, " in capfd.readouterr().err
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
    capfd.readouterr()
    assert main(command("corpus={revision: v2}")) == 64
    said = capfd.readouterr().err
    assert (
        f"fetched.json: {OSCAR} is at revision main ({COMMIT}), the configuration asks for v2; choose another" in said
    )
    assert main(command(f"corpus={{revision: {COMMIT}}}")) == 0, "the same by its name"


@pytest.mark.parametrize("file", [VOCABULARY, HARMFUL_MODEL, part_file(PART), BLOCKLIST, SPLITS[0]])
def test_what_was_damaged_after_it_came_is_refused_and_the_remedy_helps(
    command, directory, write_section, tmp_path, capfd, file
):
    """It was believed that a mirror keeps what was checked when it was fetched; nobody looked again."""
    assert main(command("corpus={annotations: computed}")) == 0
    path = directory / file.location
    path.write_bytes(flipped(path.read_bytes()))
    (directory / BLOCKLIST_CHECKSUMS.location).unlink()  # fetched.json alone has to tell
    corpus = write_section("corpus_source", source="mirror", revision="main", root=str(directory))
    blocklist = write_section("blocklist_source", source="mirror", url=None, root=str(directory))
    glue = write_section("glue_source", source="mirror", root=str(directory))
    sources, output = tmp_path / "sources.json", tmp_path / "output"
    assert main(["resolve-corpus", f"--settings={corpus}", "--repositories", BERT, f"--output={sources}"]) == 0
    listed = read_json(sources)
    listed["checksums"] = {f"{PART}.jsonl.zst": sha256(flipped(PARTS[PART]))}
    sources.write_text(json.dumps(listed))
    taking = {
        VOCABULARY: ["download-vocabulary", f"--settings={corpus}", f"--sources={sources}"],
        HARMFUL_MODEL: ["download-harmful-model", f"--settings={corpus}", f"--sources={sources}", "--file=en.arpa"],
        part_file(PART): ["download-part", f"--settings={corpus}", f"--sources={sources}", f"--part={PART}"],
        BLOCKLIST: ["download-blocklist", f"--settings={blocklist}", f"--record={tmp_path}/record.json"],
        SPLITS[0]: ["download-task", f"--settings={glue}", f"--sources={sources}", "--task=rte"],
    }
    capfd.readouterr()
    assert main([*taking[file], f"--output={output}"]) == 65
    said = capfd.readouterr().err
    assert f"{path}: sha256 expected " in said and f"; remove {path} and run fetch-mirror again\n" in said
    assert not output.exists()
    path.unlink()
    assert main(command("corpus={annotations: computed}")) == 0
    if file == part_file(PART):
        listed["checksums"] = {f"{PART}.jsonl.zst": sha256(PARTS[PART])}
        sources.write_text(json.dumps(listed))
    assert main([*taking[file], f"--output={output}"]) == 0


@pytest.mark.parametrize("damaged", ["[]", '{"files": {}}', '{"files": {}, "mine": 1, "a": 2, "b": 3, "c": 4}'])
def test_a_record_that_is_none_is_named_with_the_remedy(command, directory, capfd, damaged):
    """It was a bug of the program, to the one who read its message."""
    assert main(command()) == 0
    (directory / "fetched.json").write_text(damaged)
    assert main(command()) == 65
    said = capfd.readouterr().err.splitlines()[-1]
    assert "fetched.json: " in said and said.endswith("; remove it and give the same command again")
    (directory / "fetched.json").unlink()
    assert main(command()) == 0


@pytest.mark.parametrize(("by", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 75)])
def test_an_interrupted_download_goes_on_where_it_stopped(command, directory, hub, root, by, code):
    first, second = PARTS
    hub.store.fail(stored(second), sites.stall(700_000, 60))
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    process = subprocess.Popen([sys.executable, "-m", "symbert", *command()], env=environment)
    partial = (directory / part_file(second).location).with_name(
        f".{second}.jsonl.zst.{sha256(PARTS[second])[:12]}.partial"
    )
    until = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size > 680_000) and time.monotonic() < until:
        time.sleep(0.01)
    while process.poll() is None:  # on a busy machine an interrupt can be lost; a user repeats it
        process.send_signal(by)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
    assert process.returncode == code
    assert part_file(second).location not in files_of(directory)
    assert main(command()) == 0
    assert files_of(directory) == WANTED | OWN
    assert (directory / part_file(second).location).read_bytes() == PARTS[second]
    assert hub.store.count(stored(first)) == 1 and hub.store.sent(stored(second)) <= 1.1 * (1 << 20)


def test_a_refusal_names_page_and_remedy_and_loses_nothing(command, directory, hub, capfd):
    hub.host.fail(hub.path("dataset", OSCAR, CORPUS_CHECKSUMS.path), sites.status(403))
    assert main(command()) == 65
    said = capfd.readouterr().err
    page = f"{hub.host.address}/datasets/{OSCAR}"
    assert f"HTTP 403; accept the terms on {page} and set HF_TOKEN (the one that is set was not accepted)" in said
    assert TOKEN not in said
    assert main(command()) == 0
    assert hub.host.count(hub.path("model", BERT, VOCABULARY.path)) == 1


def test_without_a_token_nothing_is_asked_for(command, directory, hub, ut1, capfd, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    assert main(command()) == 65
    assert "is gated; accept the terms on " in capfd.readouterr().err
    assert hub.host.asked == ut1.asked == [] and files_of(directory) == {"lock"}


def test_what_cannot_fit_is_not_begun(command, directory, hub, ut1, capfd):
    tell_sizes(hub, "dataset", OSCAR, {part_file(part).path: 10**18 for part in PARTS})
    assert main(command()) == 65
    said = capfd.readouterr().err
    assert "needs 2,000,000 TB, " in said and "ask for fewer parts (corpus.parts)" in said
    assert files_of(directory) == OWN and hub.store.asked == ut1.asked == []


def test_a_blocklist_that_agrees_with_its_list_stays_and_another_is_replaced(command, directory, ut1):
    archive, listing = (directory / file.location for file in (BLOCKLIST, BLOCKLIST_CHECKSUMS))
    assert main(command()) == 0
    publish(ut1, b"tomorrow's")
    assert main(command()) == 0 and archive.read_bytes() == ARCHIVE
    listing.write_text("nothing\n")
    assert main(command()) == 0 and archive.read_bytes() == b"tomorrow's"


def test_for_ones_own_text_and_tasks_nothing_gated_is_asked_for(command, directory, hub, tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    (tmp_path / "mine.jsonl").write_text("{}\n")
    own = f"corpus={{source: files, files: {tmp_path}/*.jsonl, annotations: published}}"
    assert main(command(own, f"glue={{source: files, files: {tmp_path}}}")) == 0
    assert files_of(directory) == OWN | {f.location for f in (VOCABULARY, BLOCKLIST, BLOCKLIST_CHECKSUMS)}
    assert all(OSCAR not in asked.path and REPOSITORY not in asked.path for asked in hub.host.asked)
