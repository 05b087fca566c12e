import fcntl
import hashlib
import random
import signal
import subprocess
import sys
import time

import httpx2
import pytest

from corpus import sites
from symbert.corpus.digests import Digest
from symbert.corpus.download import Remote, RetryPolicy, fetch, refuse_downgrade
from symbert.errors import (
    InputOutputError,
    IntegrityError,
    MissingInputError,
    RemoteError,
)

PATH = "/part.zst"
BODY = random.Random(1).randbytes(1 << 20)
SHA256 = Digest("sha256", hashlib.sha256(BODY).hexdigest())
SHORT = RetryPolicy(attempts=3, pause=0.01, longest_pause=0.02, longest_wait=0.5, stall=0.3)
THIRD = len(BODY) // 3
LEFT_IN_MEMORY = 1 << 14  # bytes at most that a killed process had not yet written
WRONG = {"flip": sites.flip(500_000), "cut": sites.cut(1000), "page": sites.page(), "longer": sites.chunked(b"more")}
NO_CONTINUATION = {
    "whole": sites.start_over,
    "206 from 0": sites.honest_from_zero,
    "206 of another length": sites.mislaid,
    "206 of another etag": sites.other_version,
    "416": sites.status(416),
}


@pytest.fixture
def site():
    with sites.served() as site:
        site.bodies[PATH] = BODY
        yield site


@pytest.fixture
def output(tmp_path):
    return tmp_path / "raw" / "part.zst"


def get(site, output, digest=SHA256, policy=SHORT):
    remote = Remote(site.address + PATH, on_refusal="ask for a key", on_absence="look elsewhere")
    fetch(remote, output, lambda: digest, policy)


def names(output):
    return {path.name for path in output.parent.iterdir()}


def assert_published(output, body=BODY):
    assert output.read_bytes() == body
    assert names(output) == {output.name}, "nothing partial stays"


def partial_of(output, digest=SHA256):
    """The file that collects the bytes of a digest."""
    return output.with_name(f".{output.name}.{digest.value[:12]}.partial")


def kept(output):
    """Bytes that wait for the next attempt."""
    assert not output.exists(), "a part of a file is not published"
    assert names(output) == {partial_of(output).name}
    return partial_of(output).stat().st_size


def test_a_file_is_transferred_once(site, output, capsys):
    get(site, output)
    assert_published(output)
    assert (site.count(PATH), site.sent(PATH)) == (1, len(BODY))
    assert capsys.readouterr().err == "", "a small file is not worth a line"


@pytest.mark.parametrize(
    "fault", [sites.drop(THIRD), sites.reset(THIRD), sites.stall(THIRD, 1.0)], ids=["drop", "reset", "stall"]
)
def test_what_arrived_before_a_break_is_not_transferred_again(site, output, fault, capsys):
    site.fail(PATH, fault, fault)
    get(site, output)
    assert_published(output)
    assert site.count(PATH) == 3
    assert site.sent(PATH) <= 1.1 * len(BODY)
    assert site.asked[1].headers["range"].startswith("bytes=")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and all(site.address in line and "; again in 0.0 s" in line for line in said)


def test_attempts_that_bring_something_are_not_counted(site, output):
    site.fail(PATH, *[sites.drop(len(BODY) // 12)] * 11)
    get(site, output)
    assert_published(output)
    assert site.count(PATH) == 12 > SHORT.attempts
    assert site.sent(PATH) <= 1.1 * len(BODY)


def test_attempts_that_bring_nothing_new_are_bounded(site, output):
    site.fail(PATH, sites.drop(THIRD), always=True)
    with pytest.raises(RemoteError, match=r"part\.zst: peer closed .* \(3 attempts in a row\); check the network"):
        get(site, output, digest=None)  # without one nothing can be resumed
    assert not output.exists()
    assert site.count(PATH) == 4, "one that brought something and three"


def test_a_failed_download_goes_on_where_it_stopped(site, output):
    site.fail(PATH, sites.drop(THIRD), *[sites.status(500)] * 3)
    with pytest.raises(RemoteError, match="HTTP 500"):
        get(site, output)
    assert kept(output) == THIRD
    get(site, output)
    assert_published(output)
    assert site.asked[-1].headers["range"] == f"bytes={THIRD}-"
    assert site.sent(PATH) <= 1.1 * len(BODY)


def test_a_killed_download_goes_on_where_it_stopped(site, output):
    site.fail(PATH, sites.stall(2 * THIRD, 60))
    command = (
        "import sys; from pathlib import Path; from symbert.corpus.digests import Digest;"
        "from symbert.corpus.download import Remote, fetch;"
        "fetch(Remote(sys.argv[1], '', ''), Path(sys.argv[2]), lambda: Digest('sha256', sys.argv[3]))"
    )
    process = subprocess.Popen([sys.executable, "-c", command, site.address + PATH, output, SHA256.value])
    partial = partial_of(output)
    sites.wait_until_asleep(
        process.pid, lambda: partial.exists() and partial.stat().st_size > 2 * THIRD - LEFT_IN_MEMORY
    )
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    held = kept(output)
    assert held > 2 * THIRD - LEFT_IN_MEMORY
    get(site, output)
    assert_published(output)
    assert site.asked[-1].headers["range"] == f"bytes={held}-"
    assert site.sent(PATH) <= 1.1 * len(BODY)


def test_a_file_that_was_whole_but_not_yet_published_is_not_transferred_again(site, output):
    output.parent.mkdir()
    partial_of(output).write_bytes(BODY)
    get(site, output)
    assert_published(output)
    assert (site.count(PATH), site.sent(PATH)) == (1, 0)


def test_a_partial_file_of_another_digest_is_not_continued_and_is_removed_at_the_end(site, output):
    output.parent.mkdir()
    partial_of(output, Digest("md5", "a" * 32)).write_bytes(BODY[:THIRD])
    get(site, output)
    assert_published(output)
    assert "range" not in site.asked[-1].headers


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_that_asks_for_patience_gets_it(site, output, code):
    site.fail(PATH, sites.status(code), sites.status(code))
    get(site, output)
    assert_published(output)
    assert site.count(PATH) == 3


@pytest.mark.parametrize(("value", "limit"), [(100, 0.3), (86_400, 0.2)])
def test_the_wait_that_a_server_asks_for_is_kept_up_to_a_limit(site, output, value, limit):
    site.fail(PATH, sites.status(429, Retry_After=value))
    begun = time.monotonic()
    get(site, output, policy=RetryPolicy(attempts=2, pause=0.01, longest_wait=limit, stall=5))
    assert limit <= time.monotonic() - begun < limit + 20
    assert_published(output)


@pytest.mark.parametrize(
    ("code", "kind", "remedy"),
    [
        (401, RemoteError, "ask for a key"),
        (403, RemoteError, "ask for a key"),
        (404, MissingInputError, "look elsewhere"),
        (410, MissingInputError, "look elsewhere"),
        (400, RemoteError, "check the address"),
    ],
)
def test_a_refusal_is_final_and_names_the_remedy(site, output, code, kind, remedy):
    site.fail(PATH, sites.status(code), always=True)
    with pytest.raises(kind, match=rf"part\.zst: HTTP {code}; {remedy}"):
        get(site, output)
    assert site.count(PATH) == 1
    assert names(output) == set()


def test_a_refusal_in_the_middle_keeps_what_has_arrived(site, output):
    site.fail(PATH, sites.drop(THIRD), sites.status(403))
    with pytest.raises(RemoteError):
        get(site, output)
    assert kept(output) == THIRD


def test_nobody_at_the_address_is_said_after_a_few_attempts(output, capsys):
    with sites.closed_port() as address, pytest.raises(RemoteError) as failure:
        fetch(Remote(address, "", ""), output, policy=SHORT)
    assert address in str(failure.value)
    assert "Connection refused (3 attempts in a row); check the network and run again" in str(failure.value)
    assert capsys.readouterr().err.count("Connection refused; again in") == 2
    assert names(output) == set()


@pytest.mark.parametrize("address", ["no-scheme/file", "ftp://127.0.0.1/file"])
def test_an_address_that_is_none_is_said_at_once(output, address):
    with pytest.raises(RemoteError, match="cannot be asked for .*; check the address"):
        fetch(Remote(address, "", ""), output, policy=SHORT)


@pytest.mark.parametrize("answer", NO_CONTINUATION.values(), ids=NO_CONTINUATION)
def test_an_answer_that_does_not_continue_what_has_arrived_leaves_no_wrong_byte(site, output, answer):
    site.fail(PATH, sites.drop(THIRD), answer)
    get(site, output)
    assert_published(output)


def test_an_answer_that_lies_about_where_it_begins_is_found_by_the_digest(site, output):
    site.fail(PATH, sites.drop(THIRD), sites.lying_from_zero)
    get(site, output)
    assert_published(output)
    assert site.sent(PATH) == 2 * len(BODY), "the whole once more, from its beginning"


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(site, output):
    site.fail(PATH, sites.drop(THIRD), *[sites.status(500)] * 3)
    with pytest.raises(RemoteError):
        get(site, output)
    other = random.Random(2).randbytes(1 << 20)
    site.bodies[PATH] = other
    get(site, output, Digest("sha256", hashlib.sha256(other).hexdigest()))
    assert_published(output, other)
    assert "range" not in site.asked[-1].headers


@pytest.mark.parametrize("fault", WRONG.values(), ids=WRONG)
def test_wrong_bytes_are_fetched_again_from_the_beginning(site, output, fault):
    site.fail(PATH, fault)
    get(site, output)
    assert_published(output)
    assert site.count(PATH) == 2 and "range" not in site.asked[1].headers


@pytest.mark.parametrize("fault", WRONG.values(), ids=WRONG)
def test_bytes_that_are_wrong_twice_are_refused_with_both_digests(site, output, fault):
    site.fail(PATH, fault, always=True)
    with pytest.raises(IntegrityError) as failure:
        get(site, output)
    assert f"{PATH}: sha256 expected {SHA256.value}, found " in str(failure.value)
    assert "get the file again" in str(failure.value)
    assert site.count(PATH) == 2
    assert names(output) == set(), "wrong bytes are not kept for the next attempt"


def test_a_digest_that_changes_with_the_file_is_asked_for_anew(site, output):
    digests = iter([Digest("md5", "0" * 32), Digest("md5", hashlib.md5(BODY).hexdigest())])
    fetch(Remote(site.address + PATH, "", ""), output, lambda: next(digests), SHORT)
    assert_published(output)
    assert site.count(PATH) == 2


def test_a_full_disk_is_said_with_what_is_needed(site, output):
    output.parent.mkdir()
    partial_of(output).symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left .*part\.zst"):
        get(site, output)
    assert names(output) == set()
    assert site.count(PATH) == 1, "another attempt would not help"


def test_a_file_that_cannot_fit_is_not_begun(site, output):
    def enormous(answer, path):
        answer.head(200, Content_Length=10**18, ETag='"big"')
        answer.close_connection = True

    site.fail(PATH, enormous)
    with pytest.raises(InputOutputError, match=r"needs 1,000,000,000,000\.0 MB more"):
        get(site, output)
    assert names(output) == set()


def test_two_processes_do_not_write_the_same_file(site, output):
    output.parent.mkdir()
    with open(partial_of(output), "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InputOutputError, match="another process downloads this file; wait for it or stop it"):
            get(site, output)
    assert site.count(PATH) == 0
    get(site, output)
    assert_published(output)


def test_a_redirection_away_from_https_is_refused():
    def hop(url, code, history=()):
        return httpx2.Response(code, request=httpx2.Request("GET", url), history=list(history))

    start = hop("https://a.example/list", 302)
    refuse_downgrade(hop("https://b.example/list", 200, [start]))
    refuse_downgrade(hop("http://localhost/list", 200, [hop("http://localhost/old", 302)]))
    with pytest.raises(RemoteError, match=r"https://a\.example/list: redirects from https to http;"):
        refuse_downgrade(hop("http://b.example/list", 200, [start]))
    with pytest.raises(RemoteError, match="redirects from https"):
        refuse_downgrade(hop("https://c.example/list", 200, [start, hop("http://b.example/list", 302)]))


def test_redirections_without_end_are_refused(site, output):
    site.redirects[PATH] = (PATH, {})
    with pytest.raises(RemoteError, match=r"cannot be asked for \(TooManyRedirects\)"):
        get(site, output)


def test_a_disk_that_fails_under_a_download_is_told_with_the_file(site, output, monkeypatch):
    def failing(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", failing)
    with pytest.raises(OSError, match=r"Input/output error.*part\.zst.*\.partial"):
        get(site, output)
