import hashlib
import os
import random
import re
import shutil
import subprocess
from unittest import mock

import httpx2
import pytest

from corpus import sites
from corpus.sites import hurry
from symbert.corpus.download import Remote, fetch, refuse_downgrade, retry
from symbert.digests import Digest, digest_of, listed_digest, read_digests
from symbert.errors import DataError, InputOutputError, IntegrityError, MissingInputError, RemoteError
from symbert.files import single_writer

PATH = "/part.zst"
BODY = random.Random(1).randbytes(1 << 20)
SHA256 = Digest("sha256", hashlib.sha256(BODY).hexdigest())
THIRD = len(BODY) // 3
WRONG = [sites.flip(500_000), sites.cut(1000), sites.page(), sites.chunked(b"more")]
# Answers to a request for the rest: the whole, from 0; from elsewhere, of another version, refused, lying.
REST = [sites.start_over, sites.honest_from_zero]
LIES = [sites.mislaid, sites.other_version, sites.status(416), sites.lying_from_zero]


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    hurry(monkeypatch, stall=0.3)


@pytest.fixture
def site():
    with sites.served() as site:
        site.bodies[PATH] = BODY
        yield site


@pytest.fixture
def output(tmp_path):
    return tmp_path / "raw" / "part.zst"


def get(site, output, digest=SHA256):
    fetch(Remote(site.address + PATH, on_refusal="ask for a key", on_absence="look elsewhere"), output, digest)


def names(output):
    return {path.name for path in output.parent.iterdir()}


def assert_published(output, body=BODY):
    assert output.read_bytes() == body
    assert names(output) == {output.name}, "nothing partial stays"


def partial_of(output, digest=SHA256):
    """The file that collects the bytes of a digest; its folder is made."""
    folder = output.with_name(f".{output.name}.{digest.value[:12]}.partial")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "bytes"


@pytest.mark.parametrize("fault", [sites.drop(THIRD), sites.reset(THIRD), sites.stall(THIRD, 1.0)])
def test_what_arrived_before_a_break_is_not_transferred_again(site, output, fault, capsys):
    site.fail(PATH, fault, fault)
    get(site, output)
    assert_published(output)
    assert site.count(PATH) == 3 and site.sent(PATH) <= 1.1 * len(BODY)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and all(site.address in line for line in said)


def test_attempts_that_bring_something_are_not_counted(site, output):
    site.fail(PATH, *[sites.drop(len(BODY) // 12)] * 11)
    get(site, output)
    assert_published(output)
    assert site.count(PATH) == 12
    assert site.sent(PATH) <= 1.1 * len(BODY)


def test_attempts_that_bring_nothing_new_are_bounded(site, output):
    site.fail(PATH, sites.drop(THIRD), always=True)
    with pytest.raises(RemoteError, match=r"part\.zst: "):
        get(site, output, digest=None)  # without one nothing can be resumed
    assert not output.exists() and site.count(PATH) == 4, "one that brought something and three"


@pytest.mark.parametrize("faults", [[sites.status(500)] * 3, [sites.status(403)]])
def test_a_failed_download_goes_on_where_it_stopped(site, output, faults):
    site.fail(PATH, sites.drop(THIRD), *faults)
    with pytest.raises(RemoteError, match="HTTP"):
        get(site, output)
    assert names(output) == {partial_of(output).parent.name} and partial_of(output).stat().st_size == THIRD
    get(site, output)
    assert_published(output)
    assert site.asked[-1].headers["range"] == f"bytes={THIRD}-"
    assert site.sent(PATH) <= 1.1 * len(BODY)


def test_a_partial_file_is_continued_if_it_is_of_the_digest_and_removed_at_the_end_if_not(site, output):
    partial_of(output).write_bytes(BODY)
    get(site, output)
    assert_published(output)
    assert (site.count(PATH), site.sent(PATH)) == (1, 0)
    partial_of(output, Digest("md5", "a" * 32)).write_bytes(BODY[:THIRD])
    get(site, output)
    assert_published(output)
    assert "range" not in site.asked[-1].headers


def test_a_refusal_is_final_and_names_the_remedy(site, output):
    key, elsewhere = (RemoteError, "ask for a key"), (MissingInputError, "look elsewhere")
    remedies = {401: key, 403: key, 404: elsewhere, 410: elsewhere, 400: (RemoteError, "check the address")}
    for code, (kind, remedy) in remedies.items():
        site.asked.clear()
        site.fail(PATH, sites.status(code), always=True)
        with pytest.raises(kind, match=rf"part\.zst: HTTP {code}; {remedy}"):
            get(site, output)
        assert site.count(PATH) == 1 and names(output) == set()


def test_an_address_at_which_nobody_answers_or_that_is_none_is_said(site, output, capsys):
    with sites.closed_port() as address, pytest.raises(RemoteError, match=rf"{address}.* \(3 attempts in a row\)"):
        fetch(Remote(address, "", ""), output)
    site.redirects[PATH] = (PATH, {})
    with pytest.raises(RemoteError, match=rf"{PATH}: \w+ \(3 attempts in a row\); check address, network$"):
        fetch(Remote(site.address + PATH, "", ""), output)
    capsys.readouterr()
    for address in ("no-scheme/file", "ftp://127.0.0.1/file", "http://[::1/file", "http://127.0.0.1:port/file"):
        with pytest.raises(RemoteError, match=rf"^{re.escape(address)}: \w+; check the address"):
            fetch(Remote(address, "", ""), output)
    assert names(output) == set() and not capsys.readouterr().err, "time does not mend an address"


def test_a_proxy_that_does_not_answer_and_certificates_of_a_network_are_named(site, output, monkeypatch, capsys):
    with sites.closed_port() as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("http_proxy", address.replace("//", "//user:canary@"))
        patch.setenv("NO_PROXY", "example.org")
        with pytest.raises(RemoteError, match=r"check address, network, http_proxy$") as failure:
            get(site, output)
    assert "canary" not in str(failure.value) + capsys.readouterr().err
    refusal = httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]\nself-signed certificate in certificate chain")
    with pytest.raises(RemoteError, match=r"FAILED\] self-signed .*; name .* in SSL_CERT_FILE"):
        retry(mock.Mock(side_effect=refusal), Remote("https://a.example", "", ""))
    assert not capsys.readouterr().err, "time does not mend it"


@pytest.mark.parametrize("answer", REST)
def test_an_answer_that_does_not_continue_what_has_arrived_leaves_no_wrong_byte(site, output, answer):
    site.fail(PATH, sites.drop(THIRD), answer)
    get(site, output)
    assert_published(output)


@pytest.mark.parametrize("faults", [[fault] for fault in WRONG] + [[sites.drop(THIRD), lie] for lie in LIES])
def test_wrong_bytes_are_refused_and_the_same_command_begins_again(site, output, faults):
    site.fail(PATH, *faults)
    with pytest.raises(IntegrityError, match=rf"{PATH}: sha256 expected {SHA256.value}, found \w{{64}}; get the file"):
        get(site, output)
    assert names(output) == set(), "wrong bytes are not kept for the next attempt"
    get(site, output)
    assert_published(output)
    assert "range" not in site.asked[-1].headers


def test_a_full_disk_is_said_with_the_file(site, output):
    partial_of(output).symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left .*part\.zst"):
        get(site, output)
    assert names(output) == set()
    assert site.count(PATH) == 1, "another attempt would not help"


def test_two_processes_do_not_write_the_same_file(site, output):
    with (
        single_writer(partial_of(output).parent),
        pytest.raises(InputOutputError, match=r"part\.zst\.\w+\.partial: in use by process"),
    ):
        get(site, output)
    assert site.count(PATH) == 0
    get(site, output)
    assert_published(output)


def test_a_redirection_away_from_https_is_refused():
    def hop(url, code, history=()):
        return httpx2.Response(code, request=httpx2.Request("GET", url), history=list(history))

    start, insecure = hop("https://a.example/list", 302), hop("http://b.example/list", 302)
    refuse_downgrade(hop("https://b.example/list", 200, [start]))
    refuse_downgrade(hop("http://localhost/list", 200, [hop("http://localhost/old", 302)]))
    for last in (hop("http://b.example/list", 200, [start]), hop("https://c.example/list", 200, [start, insecure])):
        with pytest.raises(RemoteError, match=r"https://a\.example/list: redirects from https to "):
            refuse_downgrade(last)


MD5 = "0123456789abcdef0123456789ABCDEF"
FORMS = [
    f"{MD5}  blacklists.tar.gz",
    f"{MD5} *blacklists.tar.gz",
    f"{MD5} blacklists.tar.gz",
    f"{MD5}\tblacklists.tar.gz",
    f"{MD5}\t./some/folder/blacklists.tar.gz\r",
    f"{MD5}  /some/folder/blacklists.tar.gz",
    f"MD5 (blacklists.tar.gz) = {MD5}",
    f"MD5(blacklists.tar.gz)= {MD5}",
    f"\ufeff{MD5}  blacklists.tar.gz",
]
SHA = "ab" * 32
STRANGE = [
    *("<html>", "no digest", f"{MD5[:-1]}  short", MD5, f"{MD5}  ", f"{MD5}{MD5}  of another kind", f"{MD5}-name"),
    *(f"SHA1 (file) = {MD5}", f"SHA256 (file) = {SHA}", f"MD5 (file) = {SHA}", f"{MD5}  one\0{MD5}  two"),
    *(rf"\{MD5}  another\escape", f"good: {MD5}", f"{MD5}  good" + f"\n{'0' * 32}  ./good", "SIZE (good) = 17"),
]


@pytest.mark.parametrize("line", FORMS)
def test_a_digest_is_read_in_every_usual_form(tmp_path, line):
    path = tmp_path / "list"
    path.write_bytes(f"{line}\n# made by hand\n\n".encode())
    assert listed_digest(path, "md5", "blacklists.tar.gz") == Digest("md5", MD5.lower())
    with pytest.raises(MissingInputError, match="other: not in .*list"):
        listed_digest(path, "md5", "other")


@pytest.mark.parametrize("line", STRANGE)
def test_a_list_with_a_line_that_is_not_understood_is_an_error(tmp_path, line):
    path = tmp_path / "list"
    path.write_text(f"{MD5}  good\n{line}\n{MD5}  more\n", newline="")
    with pytest.raises(DataError, match=r"MD5SUM\.LST:[23]: "):
        listed_digest(path, "md5", "good", "MD5SUM.LST")


def test_files_of_one_name_in_two_folders_are_not_confused(tmp_path):
    """The last line of the name won."""
    (tmp_path / "list").write_text(f"{MD5}  a/part\n{'0' * 32}  b/part\n{MD5}  a/whole\n{MD5}  b/whole\n")
    assert listed_digest(tmp_path / "list", "md5", "whole").value == MD5.lower()
    with pytest.raises(DataError, match="2 digests of files named part"):
        listed_digest(tmp_path / "list", "md5", "part")


WRITERS = {  # commands that write lists, and what they print with a name of odd characters
    "sha256sum": ["sha256sum"],
    "binary": ["sha256sum", "--binary"],
    "tag": ["sha256sum", "--tag"],
    "openssl": ["openssl", "dgst", "-sha256"],
    "coreutils": ["openssl", "dgst", "-sha256", "-r"],
}
ODD = ["plain", "two  blanks", " first", "star*", "(a) = b", "back\\slash", os.fsdecode(b"caf\xe9"), "ä"]
ESCAPED = ["new\nline", "return\r", "\\n"]  # which openssl writes as they are


@pytest.mark.parametrize("writer", WRITERS)
def test_a_list_is_read_as_the_commands_write_it(tmp_path, monkeypatch, writer):
    monkeypatch.chdir(tmp_path)
    names = ODD if "openssl" in WRITERS[writer] else ODD + ESCAPED
    for name in names:
        (tmp_path / name).write_text(name, errors="surrogateescape")
    if not shutil.which(WRITERS[writer][0]):
        pytest.skip("is not installed")
    written = subprocess.run([*WRITERS[writer], *names], capture_output=True, check=True).stdout
    (tmp_path / "list").write_bytes(written)
    expected = {name: hashlib.sha256(os.fsencode(name)).hexdigest() for name in names}
    assert read_digests(tmp_path / "list", "sha256") == expected


def test_digests_are_those_of_other_implementations(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"hello\n")
    assert digest_of(path, "md5") == "b1946ac92492d2347c6235b4d2611184"
    assert digest_of(path, "git") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert digest_of(path, "sha256") == "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    Digest("md5", "b1946ac92492d2347c6235b4d2611184").check(path, "file")
    with pytest.raises(IntegrityError, match=f"origin: md5 expected {'0' * 32}, found b1946ac9"):
        Digest("md5", "0" * 32).check(path, "origin")
