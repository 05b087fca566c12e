import hashlib
import json
import logging
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

from corpus import sites
from corpus.hub_site import COMMIT, SIGNATURE, TOKEN, served_hub
from corpus.oscar import plan
from corpus.sites import git_id, hurry
from symbert.cli import main
from symbert.corpus.download import check_environment
from symbert.corpus.hub import endpoint, fetch_from_hub, resolve
from symbert.corpus.published import Repository, Ut1, download
from symbert.errors import ConfigError, DataError, IntegrityError, MissingInputError, RemoteError
from symbert.files import read_json
from workflow.checkout import heed_signals

BODY = random.Random(1).randbytes(1 << 20)
OSCAR, PART = "oscar-corpus/OSCAR-2301", "en_meta/en_meta_part_1.jsonl.zst"
BERT, VOCABULARY = "google-bert/bert-base-uncased", "vocab.txt"
PIECES = b"[PAD]\n[UNK]\n"


@pytest.fixture
def hub(monkeypatch):
    """A hub with a large part of the corpus and a small vocabulary."""
    hurry(monkeypatch, stall=1)
    with served_hub(monkeypatch) as hub:
        hub.add_repository("dataset", OSCAR)
        hub.add_repository("model", BERT)
        yield hub


@pytest.fixture
def part(hub):
    """Path of the part in the store."""
    return hub.add_large("dataset", OSCAR, PART, BODY)


def get_part(output, digest=None):
    fetch_from_hub("dataset", OSCAR, PART, COMMIT, output, digest)


def get_vocabulary(output):
    fetch_from_hub("model", BERT, VOCABULARY, COMMIT, output)


def test_a_revision_is_resolved_to_its_commit_which_is_not_asked_for(hub):
    assert resolve("dataset", OSCAR, "main") == resolve("model", BERT, "main") == COMMIT
    assert [asked.headers["authorization"] for asked in hub.host.asked] == [f"Bearer {TOKEN}"] * 2
    assert resolve("dataset", OSCAR, "a" * 40) == "a" * 40
    assert len(hub.host.asked) == 2
    with pytest.raises(MissingInputError, match=rf"/datasets/{OSCAR} at revision v9: HTTP 404; check the revision"):
        resolve("dataset", OSCAR, "v9")


def test_a_refused_repository_or_file_fails_at_once_and_names_its_page_and_the_token(hub, part, tmp_path):
    for status in (401, 403):
        hub.host.asked.clear()
        refused = rf"HTTP {status}; accept the terms on {hub.host.address}/datasets/{OSCAR} and set HF_TOKEN"
        for path in (hub.interface("dataset", OSCAR), hub.path("dataset", OSCAR, PART)):
            hub.host.fail(path, sites.status(status, X_Error_Code="GatedRepo"), always=True)
        for ask in (lambda: resolve("dataset", OSCAR, "main"), lambda: get_part(tmp_path / "part")):
            with pytest.raises(RemoteError, match=refused):
                ask()
        assert len(hub.host.asked) == 2 and hub.store.asked == []


def test_an_answer_without_a_commit_is_refused(hub):
    for answer in (b"<html>log in</html>", b"{}", b'{"id": "x", "sha": "main"}'):
        hub.host.fail(hub.interface("model", BERT), sites.page(answer))
        with pytest.raises(RemoteError, match=r"bert-base-uncased at revision main: "):
            resolve("model", BERT, "main")


def test_a_large_file_comes_from_the_store_which_is_not_shown_the_token(hub, part, tmp_path):
    hub.store.fail(part, sites.drop(300_000), sites.stall(300_000, 2), sites.status(503))
    get_part(tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == BODY
    assert {asked.headers["authorization"] for asked in hub.host.asked} == {f"Bearer {TOKEN}"}
    assert len(hub.store.asked) == 4 and all("authorization" not in asked.headers for asked in hub.store.asked)
    assert hub.store.asked[-1].headers["range"] == "bytes=600000-", "resumed through the redirection"
    assert hub.store.sent(part) <= 1.1 * len(BODY)


def test_a_large_file_is_checked_against_what_the_hub_announced(hub, part, tmp_path):
    announced = hashlib.sha256(BODY).hexdigest()
    for fault in (sites.flip(77), sites.page()):
        hub.store.fail(part, fault, always=True)
        with pytest.raises(IntegrityError, match=rf"{PART}: sha256 expected {announced}, found [0-9a-f]{{64}}"):
            get_part(tmp_path / "part")
    assert list(tmp_path.iterdir()) == []


def test_a_small_file_is_checked_against_its_id_in_git(hub, tmp_path):
    vocabulary = hub.add("model", BERT, VOCABULARY, PIECES)
    get_vocabulary(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_bytes() == PIECES
    (tmp_path / "vocab.txt").unlink()
    hub.host.fail(vocabulary, sites.flip(3), always=True)
    with pytest.raises(IntegrityError, match=f"git expected {git_id(PIECES)}, found [0-9a-f]{{40}}"):
        get_vocabulary(tmp_path / "vocab.txt")
    hub.host.fail(vocabulary, sites.page(), always=True)
    with pytest.raises(RemoteError, match=r"vocab\.txt: the answer has no digest.*login page"):
        get_vocabulary(tmp_path / "vocab.txt")
    assert list(tmp_path.iterdir()) == []


def test_token_and_signature_are_in_no_message_log_or_file(hub, part, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    messages = []
    faults = [sites.drop(300_000), sites.status(500), sites.status(500), sites.status(500)]
    for path, fault in ((part, faults), (part, [sites.status(403)]), (part, [sites.flip(5), sites.flip(5)])):
        hub.store.fail(path, *fault)
        with pytest.raises((RemoteError, IntegrityError)) as failure:
            get_part(tmp_path / "part")
        messages.append(str(failure.value))
        kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        texts = [*messages, *capfd.readouterr(), *map(repr, kept)]
        assert not any(secret in text for text in texts for secret in (TOKEN, SIGNATURE))
        assert caplog.text and TOKEN not in caplog.text, "not even where the clients say all they can"
    assert "HTTP 500" in messages[0] and "HTTP 403" in messages[1] and "sha256" in messages[2]


def test_a_token_that_fits_in_no_header_is_not_shown(hub, part, tmp_path, monkeypatch):
    for ask in (lambda: get_part(tmp_path / "part"), lambda: resolve("dataset", OSCAR, "main")):
        for token in (f"{TOKEN}…", f"{TOKEN}\x01x"):
            monkeypatch.setenv("HF_TOKEN", token)
            with pytest.raises(RemoteError, match="HF_TOKEN: has characters that no token has") as failure:
                ask()
            assert TOKEN not in str(failure.value)
    assert hub.host.asked == []


LISTED = "checksum.sha256"


@pytest.fixture
def oscar(tmp_path):
    """The folder of OSCAR's published files."""
    return plan(tmp_path / "oscar", Repository(repo_type="dataset", repository=OSCAR, revision="main"))


def test_a_file_is_downloaded_at_the_commit_that_its_folder_keeps_to(hub, part, oscar):
    hub.add("dataset", OSCAR, LISTED, b"list")
    assert main(["download", str(oscar / PART)]) == 0
    assert (oscar / PART).read_bytes() == BODY
    record = read_json(oscar / "commit.json")
    date.fromisoformat(record.pop("resolved"))
    assert record == {"commit": COMMIT, "endpoint": hub.host.address}
    hub.host.bodies[hub.interface("dataset", OSCAR)] = json.dumps({"id": OSCAR, "sha": "2" * 40}).encode()
    download(oscar / LISTED)
    assert (oscar / LISTED).read_bytes() == b"list"
    assert hub.host.count(hub.interface("dataset", OSCAR)) == 1


def test_downloads_at_once_ask_for_the_commit_once(hub, part, oscar):
    names = [f"en_meta/{number}" for number in range(4)]
    for name in names:
        hub.add("dataset", OSCAR, name, name.encode())
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda name: download(oscar / name), names))
    assert [(oscar / name).read_text() for name in names] == names
    assert hub.host.count(hub.interface("dataset", OSCAR)) == 1


def test_a_part_is_checked_against_the_publishers_list(hub, part, oscar, tmp_path):
    listing, words = tmp_path / "list", ["download", str(oscar / PART), "--checksums", str(tmp_path / "list")]
    listing.write_text(f"{hashlib.sha256(BODY).hexdigest()}  another.zst\n")
    with pytest.raises(
        MissingInputError, match=r"en_meta_part_1\.jsonl\.zst: not in .*list, which lists 1 files; lower corpus.parts"
    ):
        download(oscar / PART, listing)
    listing.write_text(f"{'a' * 64}  en_meta_part_1.jsonl.zst\n")
    with pytest.raises(IntegrityError, match=f"sha256 expected {'a' * 64}, found {hashlib.sha256(BODY).hexdigest()}"):
        download(oscar / PART, listing)
    assert not (oscar / PART).exists()
    listing.write_text(f"{hashlib.sha256(BODY).hexdigest()}  en_meta_part_1.jsonl.zst\n")
    assert main(words) == 0
    assert (oscar / PART).read_bytes() == BODY


NO_WAY = {  # variables of the surroundings with which nothing can be reached
    "socks": {"ALL_PROXY": "socks5://user:canary@127.0.0.1:9"},
    "socks that resolves names": {"HTTPS_PROXY": "socks5h://user:canary@127.0.0.1:9"},
    "old socks": {"http_proxy": "socks4://user:canary@127.0.0.1:9"},
    "scheme": {"HTTPS_PROXY": "ftp://user:canary@proxy.example:21"},
    "port": {"HTTPS_PROXY": "http://user:canary@proxy.example:port"},
    "large port": {"HTTP_PROXY": "http://user:canary@proxy.example:99999"},
    "no host": {"all_proxy": "http://"},
    "quoted": {"HTTPS_PROXY": '"http://user:canary@proxy.example:3128"'},
    "two words": {"HTTPS_PROXY": "proxy canary"},
    "bracket": {"HTTPS_PROXY": "http://[::1"},
    "blank": {"HTTPS_PROXY": " http://user:canary@proxy.example:3128"},
    "number": {"HTTPS_PROXY": "http://user:canary@10.0.0.300:3128"},
    "no certificates": {"SSL_CERT_FILE": "/nonexistent/ca.pem"},
    "folder as certificates": {"SSL_CERT_FILE": "/"},
    "text as certificates": {"SSL_CERT_FILE": __file__},
    "no folder of certificates": {"SSL_CERT_DIR": "/nonexistent"},
    "hub without a scheme": {"HF_ENDPOINT": "huggingface.co"},
    "hub of another scheme": {"HF_ENDPOINT": "ftp://127.0.0.1"},
    "hub of another port": {"HF_ENDPOINT": "http://127.0.0.1:port"},
    "hub of a large port": {"HF_ENDPOINT": "http://127.0.0.1:70000"},
    "time of no number": {"HF_HUB_ETAG_TIMEOUT": "ten"},
    "time of no digit": {"HF_HUB_DOWNLOAD_TIMEOUT": ""},
    "hub of no host": {"HF_ENDPOINT": "https:///x"},
}


@pytest.mark.parametrize("case", NO_WAY)
def test_a_variable_with_which_nothing_can_be_reached_is_named_at_once(hub, oscar, monkeypatch, capsys, case):
    """They ended with a traceback and 70, or with the advice to look at the address after six attempts."""
    ((name, value),) = NO_WAY[case].items()
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)  # which goes before SSL_CERT_DIR
    monkeypatch.setenv(name, value)
    assert main(["download", str(oscar / LISTED)]) == 64
    said = capsys.readouterr().err
    assert said.startswith(f"symbert download: {name}: ") and said.count("\n") == 1 and "canary" not in said
    assert hub.host.asked == [] and not (oscar / LISTED).exists()


def test_variables_that_work_are_not_refused(hub, oscar, monkeypatch):
    hub.add("dataset", OSCAR, LISTED, b"list")
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1,::1,[::1],fe11::/16")
    for name, value in (("ALL_PROXY", ""), ("HTTPS_PROXY", "proxy.example:3128"), ("HF_TOKEN", "")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("symbert.corpus.download.find_spec", lambda package: package == "socksio")
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:9")
    check_environment()
    monkeypatch.setenv("ALL_PROXY", "")
    download(oscar / LISTED)
    assert (oscar / LISTED).read_bytes() == b"list"
    monkeypatch.setenv("HF_ENDPOINT", "")
    assert endpoint() == "https://huggingface.co", "as huggingface_hub reads an empty variable"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    for name, value in (("ALL_PROXY", "ftp://a"), ("NO_PROXY", "*"), ("SSL_CERT_DIR", f"/nonexistent:{oscar}")):
        monkeypatch.setenv(name, value)
    check_environment()


def test_an_interrupted_command_resumes(hub, part, oscar):
    hub.store.fail(part, sites.stall(700_000, 60))
    command = [sys.executable, "-m", "symbert", "download", str(oscar / PART)]
    process = subprocess.Popen(command, preexec_fn=heed_signals)
    digest = hashlib.sha256(BODY).hexdigest()
    partial = (oscar / PART).with_name(f".en_meta_part_1.jsonl.zst.{digest[:12]}.partial") / "bytes"
    sites.wait_until_asleep(process.pid, lambda: partial.exists() and partial.stat().st_size > 680_000)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 75 and not (oscar / PART).exists()
    assert main(command[3:]) == 0
    assert (oscar / PART).read_bytes() == BODY
    assert hub.store.sent(part) <= 1.1 * len(BODY)


def md5_line(body: bytes) -> bytes:
    return f"{hashlib.md5(body).hexdigest()}  blacklists.tar.gz\n".encode()


@pytest.fixture
def ut1():
    """UT1's host."""
    with sites.served() as site:
        site.bodies = {"/ut1/blacklists.tar.gz": BODY, "/ut1/MD5SUM.LST": md5_line(BODY)}
        yield site


@pytest.fixture
def archive(tmp_path, ut1):
    """UT1's archive, in a folder whose address ends with a slash."""
    return plan(tmp_path / "ut1", Ut1(url=f"{ut1.address}/ut1/")) / "blacklists.tar.gz"


def test_the_archive_of_the_blocklist_is_checked_against_the_list_beside_it(hub, ut1, archive):
    download(archive)
    assert archive.read_bytes() == BODY and hub.host.asked == []
    assert all("authorization" not in asked.headers for asked in ut1.asked), "the hub's token is the hub's only"
    download(archive.with_name("MD5SUM.LST"))
    assert archive.with_name("MD5SUM.LST").read_bytes() == md5_line(BODY)
    archive.unlink()
    ut1.fail("/ut1/MD5SUM.LST", sites.page(md5_line(b"yesterday's")))
    with pytest.raises(IntegrityError, match=r"/ut1/blacklists\.tar\.gz: md5 expected [0-9a-f]{32}, found "):
        download(archive)
    assert not archive.exists()


UNAVAILABLE = [
    *(("MD5SUM.LST", sites.status(403), RemoteError), ("MD5SUM.LST", sites.page(), DataError)),
    *(
        ("MD5SUM.LST", sites.page(b"# empty"), MissingInputError),
        ("blacklists.tar.gz", sites.status(404), MissingInputError),
    ),
]


def test_a_blocklist_that_cannot_be_had_or_not_over_https_is_named(ut1, archive):
    for path, fault, kind in UNAVAILABLE:
        ut1.fail(f"/ut1/{path}", fault, always=True)
        with pytest.raises(kind, match=path.replace(".", r"\.")):
            download(archive)
        assert [path.name for path in archive.parent.iterdir()] == ["settings.json"]
        del ut1.faults[f"/ut1/{path}"]
    for url in (
        "http://dsi.example/blacklists",
        "https://dsi.example:port/x",
        "https://[::1/x",
        "https:///x",
        "ftp://x",
    ):
        plan(archive.parent, Ut1(url=url))
        with pytest.raises(ConfigError, match=r"corpus\.blocklist_url: "):
            download(archive)
