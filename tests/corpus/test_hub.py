import hashlib
import logging
import random

import pytest
from symbert.corpus.hub import fetch_from_hub, resolve

from corpus import sites
from corpus.hub_site import COMMIT, SIGNATURE, TOKEN, served_hub
from corpus.sites import git_id
from symbert.corpus.digests import Digest
from symbert.corpus.download import RetryPolicy
from symbert.errors import IntegrityError, MissingInputError, RemoteError

BODY = random.Random(1).randbytes(1 << 20)
OSCAR, PART = "oscar-corpus/OSCAR-2301", "en_meta/en_meta_part_1.jsonl.zst"
BERT, VOCABULARY = "google-bert/bert-base-uncased", "vocab.txt"
PIECES = b"[PAD]\n[UNK]\n"
SHORT = RetryPolicy(attempts=3, pause=0.01, longest_pause=0.02, longest_wait=0.5, stall=1)


@pytest.fixture
def hub(monkeypatch):
    """A hub with a large part of the corpus and a small vocabulary."""
    with served_hub(monkeypatch) as hub:
        hub.add_repository("dataset", OSCAR)
        hub.add_repository("model", BERT)
        yield hub


@pytest.fixture
def part(hub):
    """Path of the part in the store."""
    return hub.add_large("dataset", OSCAR, PART, BODY)


@pytest.fixture
def vocabulary(hub):
    """Path of the vocabulary on the hub's host."""
    return hub.add("model", BERT, VOCABULARY, PIECES)


def get_part(output, digest=None):
    fetch_from_hub("dataset", OSCAR, PART, COMMIT, output, digest, SHORT)


def get_vocabulary(output):
    fetch_from_hub("model", BERT, VOCABULARY, COMMIT, output, policy=SHORT)


def test_a_branch_is_resolved_to_its_commit(hub):
    assert resolve("dataset", OSCAR, "main", SHORT) == COMMIT
    assert resolve("model", BERT, "main", SHORT) == COMMIT
    assert [asked.headers["authorization"] for asked in hub.host.asked] == [f"Bearer {TOKEN}"] * 2


def test_a_commit_is_taken_as_it_is_without_asking(hub):
    assert resolve("dataset", OSCAR, "a" * 40, SHORT) == "a" * 40
    assert hub.host.asked == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_repository_names_its_page_and_the_token(hub, status):
    hub.host.fail(hub.interface("dataset", OSCAR), sites.status(status, X_Error_Code="GatedRepo"), always=True)
    with pytest.raises(RemoteError) as refusal:
        resolve("dataset", OSCAR, "main", SHORT)
    assert f"HTTP {status}; accept the terms on {hub.host.address}/datasets/{OSCAR} and set HF_TOKEN" in str(
        refusal.value
    )
    assert len(hub.host.asked) == 1


def test_a_revision_that_does_not_exist_is_named(hub):
    with pytest.raises(MissingInputError, match=rf"/datasets/{OSCAR} at revision v9: HTTP 404; check the revision"):
        resolve("dataset", OSCAR, "v9", SHORT)


@pytest.mark.parametrize("answer", [b"<html>log in</html>", b"{}", b'{"id": "x", "sha": "main"}'])
def test_an_answer_without_a_commit_is_refused(hub, answer):
    hub.host.fail(hub.interface("model", BERT), sites.page(answer))
    with pytest.raises(RemoteError, match=r"bert-base-uncased at revision main: the answer names no commit"):
        resolve("model", BERT, "main", SHORT)


def test_a_hub_that_is_gone_is_named(monkeypatch, tmp_path):
    with sites.closed_port() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        for ask in (lambda: resolve("model", BERT, "main", SHORT), lambda: get_vocabulary(tmp_path / "vocab.txt")):
            with pytest.raises(RemoteError, match=rf"{address}.*Connection refused.*check the network and run again"):
                ask()


def test_a_large_file_comes_from_the_store_which_is_not_shown_the_token(hub, part, tmp_path):
    get_part(tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == BODY
    assert [asked.headers["authorization"] for asked in hub.host.asked] == [f"Bearer {TOKEN}"] * 2
    assert len(hub.store.asked) == 1 and "authorization" not in hub.store.asked[0].headers


def test_a_large_file_is_resumed_through_the_redirection(hub, part, tmp_path):
    hub.store.fail(part, sites.drop(300_000), sites.stall(300_000, 2), sites.status(503))
    get_part(tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == BODY
    assert hub.store.asked[-1].headers["range"] == "bytes=600000-"
    assert hub.store.sent(part) <= 1.1 * len(BODY)


def test_a_large_file_is_checked_against_what_the_hub_announced(hub, part, tmp_path):
    hub.store.fail(part, sites.flip(77), always=True)
    announced = hashlib.sha256(BODY).hexdigest()
    with pytest.raises(IntegrityError, match=rf"{PART}: sha256 expected {announced}, found [0-9a-f]{{64}}"):
        get_part(tmp_path / "part")
    assert list(tmp_path.iterdir()) == []


def test_the_publishers_list_is_believed_more_than_the_hub(hub, part, tmp_path):
    with pytest.raises(IntegrityError, match=f"sha256 expected {'a' * 64}, found {hashlib.sha256(BODY).hexdigest()}"):
        get_part(tmp_path / "part", Digest("sha256", "a" * 64))
    assert list(tmp_path.iterdir()) == []


def test_a_small_file_is_checked_against_its_id_in_git(hub, vocabulary, tmp_path):
    get_vocabulary(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_bytes() == PIECES
    (tmp_path / "vocab.txt").unlink()
    hub.host.fail(vocabulary, sites.flip(3), always=True)
    with pytest.raises(IntegrityError, match=f"git expected {git_id(PIECES)}, found [0-9a-f]{{40}}"):
        get_vocabulary(tmp_path / "vocab.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_login_page_is_not_taken_for_a_file(hub, part, vocabulary, tmp_path):
    hub.host.fail(vocabulary, sites.page(), always=True)
    with pytest.raises(RemoteError, match=r"vocab\.txt: the answer has no digest .* login page"):
        get_vocabulary(tmp_path / "vocab.txt")
    hub.store.fail(part, sites.page(), always=True)
    with pytest.raises(IntegrityError, match=r"sha256 expected [0-9a-f]{64}, found [0-9a-f]{64}; get the file again"):
        get_part(tmp_path / "part")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_file_fails_at_once_with_the_page(hub, part, tmp_path, status):
    hub.host.fail(hub.path("dataset", OSCAR, PART), sites.status(status), always=True)
    with pytest.raises(RemoteError) as refusal:
        get_part(tmp_path / "part")
    assert f"HTTP {status}; accept the terms on {hub.host.address}/datasets/{OSCAR} and set HF_TOKEN" in str(
        refusal.value
    )
    assert len(hub.host.asked) == 1 and hub.store.asked == []


def test_a_file_that_the_hub_does_not_have_is_named(hub, tmp_path):
    with pytest.raises(MissingInputError, match=rf"/{BERT}/resolve/{COMMIT}/vocab\.txt: HTTP 404; see http.*/{BERT} "):
        get_vocabulary(tmp_path / "vocab.txt")


def test_token_and_signature_are_in_no_message_log_or_file(hub, part, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    messages = []
    faults = [sites.drop(300_000), sites.status(500), sites.status(500), sites.status(500)]
    for path, fault in ((part, faults), (part, [sites.status(403)]), (part, [sites.flip(5), sites.flip(5)])):
        hub.store.fail(path, *fault)
        with pytest.raises((RemoteError, IntegrityError)) as failure:
            get_part(tmp_path / "part")
        messages.append(str(failure.value))
        kept = [path.read_bytes() for path in tmp_path.iterdir()]
        texts = [*messages, *capfd.readouterr(), *map(repr, kept)]
        assert not any(secret in text for text in texts for secret in (TOKEN, SIGNATURE))
        assert caplog.text and TOKEN not in caplog.text, "not even where the clients say all they can"
    assert "HTTP 500" in messages[0] and "HTTP 403" in messages[1] and "sha256" in messages[2]


@pytest.mark.parametrize("token", [f"{TOKEN}…", f"{TOKEN}\x01x"])
def test_a_token_that_fits_in_no_header_is_not_shown(hub, part, tmp_path, monkeypatch, token):
    monkeypatch.setenv("HF_TOKEN", token)
    for ask in (lambda: get_part(tmp_path / "part"), lambda: resolve("dataset", OSCAR, "main", SHORT)):
        with pytest.raises(RemoteError, match="HF_TOKEN: has characters that no token has") as failure:
            ask()
        assert TOKEN not in str(failure.value)
    assert hub.host.asked == []
