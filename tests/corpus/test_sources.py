import hashlib
import http.server
import json
import threading
from pathlib import Path

import pytest

from corpus.oscar import record, write_part
from symbert.corpus.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    VOCABULARY,
    download_blocklist,
    download_part,
    download_vocabulary,
    part_file,
)
from symbert.errors import (
    ConfigError,
    DataError,
    IntegrityError,
    MissingInputError,
    PermissionRefusedError,
    RemoteError,
)

PART = "en_meta_part_1"
TOKEN = "hf_canary"


@pytest.fixture
def published(tmp_path) -> Path:
    """A mirror with one part, a blocklist and a vocabulary."""
    root = tmp_path / "published"
    for file in (part_file(PART), BLOCKLIST, VOCABULARY):
        (root / file.location).parent.mkdir(parents=True, exist_ok=True)
    part = write_part(root / part_file(PART).location, [record()])
    digest = hashlib.sha256(part.read_bytes()).hexdigest()
    (root / CORPUS_CHECKSUMS.location).write_text(f"{digest}  {part.name}\n{digest} *en_meta_part_2.jsonl.zst\n\n")
    (root / BLOCKLIST.location).write_bytes(b"archive")
    digest = hashlib.md5(b"archive").hexdigest()
    (root / BLOCKLIST_CHECKSUMS.location).write_text(f"{digest}  blacklists.tar.gz\n")
    (root / VOCABULARY.location).write_text("[PAD]\n")
    return root


@pytest.fixture
def brief(write_section, published):
    """Settings of the mirror source."""
    return write_section("corpus_source", source="mirror", root=str(published))


@pytest.fixture
def output(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    yield folder / "file"
    left = {path.name for path in folder.iterdir()}
    assert left <= {"file"}, "nothing half-written or temporary stays"


def test_a_mirror_gives_checked_copies(brief, published, output):
    download_part(brief, PART, output)
    assert output.read_bytes() == (published / part_file(PART).location).read_bytes()
    download_blocklist(brief, output)
    assert output.read_bytes() == b"archive"
    download_vocabulary(brief, output)
    assert output.read_text() == "[PAD]\n"


def test_a_missing_mirror_file_is_named(brief, published, output):
    for file in (part_file(PART), VOCABULARY, BLOCKLIST):
        (published / file.location).unlink()
    for download in (lambda: download_part(brief, PART, output), lambda: download_vocabulary(brief, output)):
        with pytest.raises(MissingInputError, match=r"(part_1\.jsonl\.zst|vocab\.txt): file not found"):
            download()
    (published / CORPUS_CHECKSUMS.location).unlink()
    with pytest.raises(MissingInputError, match=r"checksum\.sha256: file not found"):
        download_part(brief, PART, output)
    assert not output.exists()


def test_a_wrong_checksum_names_file_expected_and_found(brief, published, output):
    (published / part_file(PART).location).write_bytes(b"other")
    found = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(IntegrityError, match=rf"{PART}.*expected [0-9a-f]{{64}}, found {found}; get the file again"):
        download_part(brief, PART, output)
    (published / BLOCKLIST.location).write_bytes(b"other")
    with pytest.raises(IntegrityError, match=r"blacklists\.tar\.gz: md5 expected"):
        download_blocklist(brief, output)
    assert not output.exists()


def test_a_part_that_the_list_does_not_have_is_refused_with_the_lists_size(brief, output):
    with pytest.raises(MissingInputError, match=r"en_meta_part_3.*lists 2 files; ask for fewer parts"):
        download_part(brief, "en_meta_part_3", output)


def test_a_list_that_is_none_is_refused_with_the_line(brief, published, output):
    (published / CORPUS_CHECKSUMS.location).write_text("<html>\n")
    with pytest.raises(DataError, match=r"checksum\.sha256:1: expected"):
        download_part(brief, PART, output)


class Publisher(http.server.BaseHTTPRequestHandler):
    """Answers as the hub does, from a mirror directory; `refuse` is a status that replaces every answer."""

    root: Path
    refuse: int | None
    requests: list[tuple[str, str | None]]

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body: bool) -> None:
        self.requests.append((self.path, self.headers["Authorization"]))
        path = self.path.removeprefix("/datasets").replace("/resolve/main/", "/")
        file = self.root / path.lstrip("/")
        status = self.refuse or (200 if file.is_file() else 404)
        body = file.read_bytes() if status == 200 else b"no"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        if status == 404:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture
def publisher(published, monkeypatch, tmp_path):
    """A server that stands for the hub and UT1's host; the token is in the environment."""
    handler = type("Handler", (Publisher,), {"root": published, "refuse": None, "requests": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    handler.address = f"http://127.0.0.1:{server.server_port}"
    handler.stop = lambda: (server.shutdown(), server.server_close())
    monkeypatch.setenv("HF_ENDPOINT", handler.address)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield handler
    handler.stop()


@pytest.fixture
def hub(write_section, publisher):
    """Settings of the hub source."""
    url = f"{publisher.address}/ut1"
    return write_section("corpus_source", source="hub", root=None, revision="main", blocklist_url=url)


def test_the_hub_gives_checked_files_and_gets_the_token(hub, publisher, published, output):
    download_part(hub, PART, output)
    assert output.read_bytes() == (published / part_file(PART).location).read_bytes()
    assert {token for path, token in publisher.requests if "/resolve/" in path} == {f"Bearer {TOKEN}"}
    download_vocabulary(hub, output)
    assert output.read_text() == "[PAD]\n"
    publisher.requests.clear()
    download_blocklist(hub, output)
    assert output.read_bytes() == b"archive"
    assert {token for _, token in publisher.requests} == {None}, "the hub's token is not shown to other hosts"


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_names_the_page_and_the_token_but_not_its_value(hub, publisher, output, status):
    publisher.refuse = status
    with pytest.raises(PermissionRefusedError, match=r"datasets/oscar-corpus/OSCAR-2301 .*HF_TOKEN") as failure:
        download_part(hub, PART, output)
    assert str(status) in str(failure.value)
    assert TOKEN not in str(failure.value)
    with pytest.raises(PermissionRefusedError, match=rf"MD5SUM\.LST: HTTP {status}"):
        download_blocklist(hub, output)
    assert not output.exists()


def test_the_gated_corpus_is_not_asked_for_without_a_token(hub, publisher, output, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    with pytest.raises(PermissionRefusedError, match="accept the terms on that page and set HF_TOKEN"):
        download_part(hub, PART, output)
    assert publisher.requests == []
    download_vocabulary(hub, output)
    assert output.exists(), "the vocabulary is open to all"


def test_wrong_bytes_from_the_hub_are_not_published(hub, published, output):
    (published / part_file(PART).location).write_bytes(b"login page")
    with pytest.raises(IntegrityError, match="sha256 expected"):
        download_part(hub, PART, output)
    assert not output.exists()


def test_a_file_that_the_hub_does_not_have_is_named(hub, published, output):
    (published / VOCABULARY.location).unlink()
    with pytest.raises(MissingInputError, match=r"bert-base-uncased: no vocab\.txt at revision main"):
        download_vocabulary(hub, output)
    (published / BLOCKLIST.location).unlink()
    with pytest.raises(MissingInputError, match=r"blacklists\.tar\.gz: HTTP 404; check corpus\.blocklist_url"):
        download_blocklist(hub, output)


def test_a_host_that_is_gone_is_named(hub, publisher, output, monkeypatch):
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    publisher.stop()
    for download in (lambda: download_part(hub, PART, output), lambda: download_blocklist(hub, output)):
        with pytest.raises(RemoteError, match=r"127\.0\.0\.1.*check the network and run again"):
            download()


def test_the_blocklist_comes_over_https_only(write_section, output):
    url = "http://dsi.example/blacklists"
    brief = write_section("corpus_source", source="hub", root=None, blocklist_url=url)
    with pytest.raises(ConfigError, match=r"corpus\.blocklist_url: 'http://dsi\.example"):
        download_blocklist(brief, output)


def test_the_command_leaves_with_the_documented_exit_code_and_one_line(brief, published, output, capsys):
    from symbert.cli import main

    (published / VOCABULARY.location).unlink()
    assert main(["download-vocabulary", "--settings", str(brief), "--output", str(output)]) == 66
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert json.loads(brief.read_text())["root"] in message
