import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.corpus.digests import Digest, digest_of, listed_digest
from symbert.errors import DataError, IntegrityError, MissingInputError

MD5 = "0123456789abcdef0123456789ABCDEF"
LINES = [
    f"{MD5}  blacklists.tar.gz",
    f"{MD5} *blacklists.tar.gz",
    f"{MD5}\t./some/folder/blacklists.tar.gz\r",
    f"MD5 (blacklists.tar.gz) = {MD5}",
    f"MD5(folder/blacklists.tar.gz)= {MD5}",
]


def test_the_usual_forms_of_a_line_are_read_and_any_other_is_refused_with_its_number(tmp_path):
    path = tmp_path / "list"
    for line in LINES:
        path.write_bytes(f"# made by hand\n\n{line}\n".encode())
        assert listed_digest(path, "md5", "blacklists.tar.gz") == Digest("md5", MD5.lower())
        with pytest.raises(MissingInputError, match="other: not in .*list"):
            listed_digest(path, "md5", "other")
    for line in ("<html>", "no digest", f"{MD5[:-1]}  short", MD5, f"{MD5}{MD5}  of another kind"):
        path.write_text(f"{MD5}  good\n{line}\n")
        with pytest.raises(DataError, match="MD5SUM.LST:2: "):
            listed_digest(path, "md5", "good", "MD5SUM.LST")


@given(names=st.sets(st.from_regex(r"[a-z][a-z0-9_ ()=.]{0,8}[a-z]", fullmatch=True)))
def test_what_a_list_says_is_what_was_written_in_it(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("list") / "list"
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in names}
    path.write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))
    assert {name: listed_digest(path, "sha256", name).value for name in names} == digests


def test_digests_are_those_of_other_implementations(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"hello\n")
    assert digest_of(path, "md5") == "b1946ac92492d2347c6235b4d2611184"
    assert digest_of(path, "git") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert digest_of(path, "sha256") == "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    Digest("md5", "b1946ac92492d2347c6235b4d2611184").check(path, "file")
    with pytest.raises(IntegrityError, match=f"origin: md5 expected {'0' * 32}, found b1946ac9"):
        Digest("md5", "0" * 32).check(path, "origin")
