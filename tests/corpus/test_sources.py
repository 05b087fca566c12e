import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest
from symbert.corpus.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    HARMFUL_MODEL,
    VOCABULARY,
    download_blocklist,
    download_harmful_model,
    download_part,
    download_vocabulary,
    part_file,
    record_files,
    resolve_corpus,
)

from corpus import sites
from corpus.hub_site import COMMIT, served_hub
from corpus.oscar import record, write_part
from symbert.errors import (
    ConfigError,
    DataError,
    IntegrityError,
    MissingInputError,
    RemoteError,
)
from symbert.files import read_json

PART = "en_meta_part_1"
OSCAR, KENLMS, BERT = (file.repository for file in (CORPUS_CHECKSUMS, HARMFUL_MODEL, VOCABULARY))
BODY = random.Random(1).randbytes(1 << 20)


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def md5_line(body: bytes) -> bytes:
    return f"{hashlib.md5(body).hexdigest()}  blacklists.tar.gz\n".encode()


@pytest.fixture
def published(tmp_path) -> Path:
    """A mirror with one part, a blocklist, a model of harmful text and a vocabulary."""
    root = tmp_path / "published"
    for file in (part_file(PART), BLOCKLIST, HARMFUL_MODEL, VOCABULARY):
        (root / file.location).parent.mkdir(parents=True, exist_ok=True)
    part = write_part(root / part_file(PART).location, [record()])
    digest = sha256(part.read_bytes())
    (root / CORPUS_CHECKSUMS.location).write_text(f"{digest}  {part.name}\n{digest} *en_meta_part_2.jsonl.zst\n\n")
    (root / BLOCKLIST.location).write_bytes(b"archive")
    (root / BLOCKLIST_CHECKSUMS.location).write_bytes(md5_line(b"archive"))
    (root / HARMFUL_MODEL.location).write_text("\\data\\\n")
    (root / VOCABULARY.location).write_text("[PAD]\n")
    return root


@pytest.fixture
def brief(write_section, published):
    """Settings of the mirror source."""
    return write_section("corpus_source", source="mirror", root=str(published))


@pytest.fixture
def blocklist_brief(write_section, published):
    """Settings of the mirror's blocklist."""
    return write_section("blocklist_source", source="mirror", root=str(published))


@pytest.fixture
def hub(monkeypatch):
    """The hub, with a part, the list of parts, two models of harmful text and a vocabulary."""
    with served_hub(monkeypatch) as hub:
        for kind, repository in (("dataset", OSCAR), ("model", KENLMS), ("model", BERT)):
            hub.add_repository(kind, repository)
        hub.add_large("dataset", OSCAR, part_file(PART).path, BODY)
        hub.add("dataset", OSCAR, CORPUS_CHECKSUMS.path, f"{sha256(BODY)}  {PART}.jsonl.zst\n".encode())
        hub.add_large("model", KENLMS, "en.binary", b"model")
        hub.add("model", BERT, "vocab.txt", b"[PAD]\n")
        yield hub


@pytest.fixture
def ut1():
    """UT1's host."""
    with sites.served() as site:
        site.bodies = {"/ut1/blacklists.tar.gz": BODY, "/ut1/MD5SUM.LST": md5_line(BODY)}
        yield site


@pytest.fixture
def hub_brief(write_section, hub):
    """Settings of the hub source."""
    return write_section("corpus_source", source="hub", root=None, revision="main")


@pytest.fixture
def ut1_brief(write_section, ut1):
    """Settings of the blocklist from UT1's host, given with a slash at its end."""
    return write_section("blocklist_source", source="hub", root=None, url=f"{ut1.address}/ut1/")


@pytest.fixture
def resolved(tmp_path):
    """Resolves all repositories, or some, and gives sources.json."""

    def resolve(brief: Path, *repositories: str) -> Path:
        resolve_corpus(brief, list(repositories or (OSCAR, KENLMS, BERT)), tmp_path / "sources.json")
        return tmp_path / "sources.json"

    return resolve


@pytest.fixture
def output(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    yield folder / "file"
    left = {path.name for path in folder.iterdir()}
    assert left <= {"file", "record.json"}, "nothing half-written or temporary stays"


def test_a_mirror_gives_checked_copies(brief, published, resolved, output):
    sources = resolved(brief)
    digest = sha256((published / part_file(PART).location).read_bytes())
    assert read_json(sources) == {
        "source": "mirror",
        "endpoint": None,
        "resolved": None,
        "repositories": {},
        "checksums": {f"{PART}.jsonl.zst": digest, "en_meta_part_2.jsonl.zst": digest},
    }
    download_part(brief, sources, PART, output)
    assert output.read_bytes() == (published / part_file(PART).location).read_bytes()
    download_vocabulary(brief, sources, output)
    assert output.read_text() == "[PAD]\n"
    download_harmful_model(brief, sources, "en.arpa", output)
    assert output.read_text() == "\\data\\\n"


def test_a_missing_mirror_file_is_named(brief, blocklist_brief, published, resolved, output):
    sources = resolved(brief)
    for file in (part_file(PART), VOCABULARY, HARMFUL_MODEL, BLOCKLIST):
        (published / file.location).unlink()
    for name, download in (
        (f"{PART}.jsonl.zst", lambda: download_part(brief, sources, PART, output)),
        ("vocab.txt", lambda: download_vocabulary(brief, sources, output)),
        ("en.arpa", lambda: download_harmful_model(brief, sources, "en.arpa", output)),
        ("blacklists.tar.gz", lambda: download_blocklist(blocklist_brief, output, output.with_name("record.json"))),
    ):
        with pytest.raises(MissingInputError, match=rf"{name}: file not found; put the publisher's file there"):
            download()
    assert not output.exists()


def test_the_list_of_the_corpus_is_read_only_where_the_corpus_is_needed(brief, published, resolved, output):
    (published / CORPUS_CHECKSUMS.location).unlink()
    with pytest.raises(MissingInputError, match=r"checksum\.sha256: file not found"):
        resolved(brief)
    sources = resolved(brief, BERT, KENLMS)
    assert read_json(sources)["checksums"] == {}
    download_vocabulary(brief, sources, output)
    with pytest.raises(MissingInputError, match=r"OSCAR-2301/en_meta/checksum\.sha256, which lists 0 files"):
        download_part(brief, sources, PART, output)


def test_a_wrong_checksum_names_file_expected_and_found(brief, blocklist_brief, published, resolved, output):
    sources = resolved(brief)
    (published / part_file(PART).location).write_bytes(b"other")
    found = sha256(b"other")
    with pytest.raises(IntegrityError, match=rf"{PART}.*expected [0-9a-f]{{64}}, found {found}; get the file again"):
        download_part(brief, sources, PART, output)
    (published / BLOCKLIST.location).write_bytes(b"other")
    with pytest.raises(IntegrityError, match=r"blacklists\.tar\.gz: md5 expected"):
        download_blocklist(blocklist_brief, output, output.with_name("record.json"))
    assert list(output.parent.iterdir()) == []


def test_a_part_that_the_list_does_not_have_is_refused_with_the_lists_size(brief, resolved, output):
    with pytest.raises(MissingInputError, match=r"en_meta_part_3.*lists 2 files; ask for fewer parts"):
        download_part(brief, resolved(brief), "en_meta_part_3", output)


def test_a_part_that_is_not_needed_is_empty_and_not_asked_for(
    hub, hub_brief, resolved, output, tmp_path, write_section
):
    sources, batch, intake = resolved(hub_brief), tmp_path / "batch.json", write_section("intake", max_documents=5)
    batch.write_text('{"documents": 5, "tokens": 50}')
    asked = len(hub.host.asked)
    download_part(hub_brief, sources, PART, output, batch, intake)
    assert output.read_bytes() == b"" and len(hub.host.asked) == asked
    batch.write_text('{"documents": 4, "tokens": 40}')
    download_part(hub_brief, sources, PART, output, batch, intake)
    assert output.read_bytes() == BODY


def test_the_hub_is_resolved_once_and_gives_checked_files_of_that_commit(hub, hub_brief, resolved, output):
    sources = resolved(hub_brief)
    found = read_json(sources)
    date.fromisoformat(found.pop("resolved"))
    assert found == {
        "source": "hub",
        "endpoint": hub.host.address,
        "repositories": {
            OSCAR: {"kind": "dataset", "revision": "main", "commit": COMMIT},
            KENLMS: {"kind": "model", "revision": "main", "commit": COMMIT},
            BERT: {"kind": "model", "revision": "main", "commit": COMMIT},
        },
        "checksums": {f"{PART}.jsonl.zst": sha256(BODY)},
    }
    hub.host.asked.clear()
    download_part(hub_brief, sources, PART, output)
    assert output.read_bytes() == BODY
    download_harmful_model(hub_brief, sources, "en.binary", output)
    assert output.read_bytes() == b"model"
    download_vocabulary(hub_brief, sources, output)
    assert output.read_bytes() == b"[PAD]\n"
    assert all(f"/resolve/{COMMIT}/" in asked.path for asked in hub.host.asked)
    assert [asked.method for asked in hub.host.asked].count("GET") == 3


def test_a_repository_that_is_not_needed_is_not_asked_for(hub, hub_brief, resolved, output):
    sources = resolved(hub_brief, BERT)
    assert [asked.path for asked in hub.host.asked] == [hub.interface("model", BERT)]
    with pytest.raises(DataError, match=r"sources\.json: no commit of oscar-corpus/harmful-kenlms; delete it"):
        download_harmful_model(hub_brief, sources, "en.binary", output)


def test_a_part_that_the_publishers_list_knows_otherwise_is_refused(hub, hub_brief, resolved, output):
    sources = resolved(hub_brief)
    hub.add_large("dataset", OSCAR, part_file(PART).path, b"another part")
    with pytest.raises(IntegrityError, match=f"sha256 expected {sha256(BODY)}, found {sha256(b'another part')}"):
        download_part(hub_brief, sources, PART, output)
    assert not output.exists()


def test_a_killed_command_goes_on_where_it_stopped(hub, hub_brief, resolved, output):
    stored = f"/{sha256(BODY)}"
    hub.store.fail(stored, sites.stall(700_000, 60))
    options = {"settings": hub_brief, "sources": resolved(hub_brief), "part": PART, "output": output}
    command = [sys.executable, "-m", "symbert", "download-part"]
    command += [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    process = subprocess.Popen(command)
    partial, until = output.with_name(f".file.{sha256(BODY)[:12]}.partial"), time.monotonic() + 20
    while not (partial.exists() and partial.stat().st_size > 680_000) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not output.exists()
    subprocess.run(command, check=True)
    assert output.read_bytes() == BODY
    assert hub.store.sent(stored) <= 1.1 * len(BODY)
    assert all("authorization" not in asked.headers for asked in hub.store.asked)


def test_the_gated_corpus_is_not_asked_for_without_a_token(hub, hub_brief, resolved, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    page = f"{hub.host.address}/datasets/{OSCAR}"
    with pytest.raises(RemoteError, match=rf"accept the terms on {page} and set HF_TOKEN \(none is set\)"):
        resolved(hub_brief)
    assert hub.host.asked == []
    assert read_json(resolved(hub_brief, BERT))["repositories"][BERT]["commit"] == COMMIT, "which is open to all"


def test_the_blocklist_is_checked_and_written_down(hub, ut1_brief, ut1, output):
    note = output.with_name("record.json")
    download_blocklist(ut1_brief, output, note)
    assert output.read_bytes() == BODY
    written = read_json(note)
    date.fromisoformat(written.pop("retrieved"))
    assert written == {
        "url": f"{ut1.address}/ut1/blacklists.tar.gz",
        "md5": hashlib.md5(BODY).hexdigest(),
        "sha256": sha256(BODY),
        "bytes": len(BODY),
    }
    assert hub.host.asked == []
    assert all("authorization" not in asked.headers for asked in ut1.asked), "the hub's token is the hub's only"


def test_list_and_archive_of_the_blocklist_are_fetched_together_once_more(ut1_brief, ut1, output):
    note = output.with_name("record.json")
    ut1.fail("/ut1/MD5SUM.LST", sites.page(md5_line(b"yesterday's")))
    download_blocklist(ut1_brief, output, note)
    assert output.read_bytes() == BODY
    assert ut1.count("/ut1/MD5SUM.LST") == ut1.count("/ut1/blacklists.tar.gz") == 2
    output.unlink()
    note.unlink()
    ut1.fail("/ut1/MD5SUM.LST", sites.page(md5_line(b"yesterday's")), always=True)
    with pytest.raises(IntegrityError, match=r"/ut1/blacklists\.tar\.gz: md5 expected [0-9a-f]{32}, found "):
        download_blocklist(ut1_brief, output, note)
    assert ut1.count("/ut1/MD5SUM.LST") == ut1.count("/ut1/blacklists.tar.gz") == 4
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "fault", "kind", "message"),
    [
        (
            "MD5SUM.LST",
            sites.status(403),
            RemoteError,
            r"MD5SUM\.LST: HTTP 403; check corpus\.blocklist_url",
        ),
        ("MD5SUM.LST", sites.page(), DataError, r"ut1/MD5SUM\.LST:1: expected '<md5>  <file>'"),
        ("MD5SUM.LST", sites.page(b"# empty"), MissingInputError, r"blacklists\.tar\.gz: not in .*/ut1/MD5SUM\.LST"),
        ("blacklists.tar.gz", sites.status(404), MissingInputError, r"blacklists\.tar\.gz: HTTP 404; check corpus\."),
    ],
)
def test_a_blocklist_that_cannot_be_had_is_named(ut1_brief, ut1, output, path, fault, kind, message):
    ut1.fail(f"/ut1/{path}", fault)
    with pytest.raises(kind, match=message):
        download_blocklist(ut1_brief, output, output.with_name("record.json"))
    assert list(output.parent.iterdir()) == []


def test_the_blocklist_comes_over_https_only(write_section, output):
    url = "http://dsi.example/blacklists"
    brief = write_section("blocklist_source", source="hub", root=None, url=url)
    with pytest.raises(ConfigError, match=r"corpus\.blocklist_url: 'http://dsi\.example"):
        download_blocklist(brief, output, output.with_name("record.json"))


def test_an_archive_that_somebody_has_may_stand_without_a_list(write_section, published, output, capsys):
    folder = published / BLOCKLIST.repository
    brief = write_section("blocklist_source", source="hub", root=None, url=str(folder))
    note = output.with_name("record.json")
    download_blocklist(brief, output, note)
    assert output.read_bytes() == b"archive"
    assert read_json(note)["path"] == str(folder / "blacklists.tar.gz")
    assert capsys.readouterr().err == ""
    (folder / "MD5SUM.LST").write_bytes(md5_line(b"other"))
    with pytest.raises(IntegrityError, match=r"blacklists\.tar\.gz: md5 expected"):
        download_blocklist(brief, output, note)
    (folder / "MD5SUM.LST").unlink()
    download_blocklist(brief, output, note)
    said = capsys.readouterr().err
    assert said.startswith("warning: ") and "blacklists.tar.gz: taken unchecked, no MD5SUM.LST beside it" in said


def test_the_record_of_sources_knows_the_users_files(tmp_path):
    """Each by the digest that filter-part noted, in the order of the parts; none of a file that it left out."""
    (tmp_path / "repositories.json").write_text(
        json.dumps({"source": "hub", "repositories": {BERT: {"commit": COMMIT}}})
    )
    counts = [tmp_path / "a.counts.json", tmp_path / "b.counts.json"]
    for path, digest in zip(counts, (sha256(b"a"), None), strict=True):
        path.write_text(json.dumps({"file_sha256": digest}))
    files = [Path("own/a.jsonl"), Path("own/b.json.gz")]
    record_files(tmp_path / "repositories.json", counts, files, tmp_path / "sources.json")
    found = read_json(tmp_path / "sources.json")
    assert found["files"] == {"own/a.jsonl": sha256(b"a"), "own/b.json.gz": None}
    assert found["repositories"][BERT]["commit"] == COMMIT


@pytest.mark.parametrize(
    ("noted", "flaw"), [({}, "has no 'blocklist.sha256'"), ({"sha256": 3}, "has the blocklist.sha256 3")]
)
def test_a_record_of_a_blocklist_without_its_digest_is_not_taken_for_one(
    blocklist_brief, published, output, tmp_path, noted, flaw
):
    """An empty record had the archive taken unchecked, one with other keys was a bug."""
    fetched = published / "fetched.json"
    record = {"endpoint": "https://hub.example", "repositories": {}, "blocklist": noted, "files": {}}
    fetched.write_text(json.dumps(record))
    with pytest.raises(DataError) as refused:
        download_blocklist(blocklist_brief, output, tmp_path / "record.json")
    assert str(refused.value) == f"{fetched}: {flaw}; remove it and give the same command again"
    assert not output.exists()
