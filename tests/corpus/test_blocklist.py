import hashlib
import os
import random
import re
import tarfile
import tracemalloc
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus.oscar import link, mirrored_documents, plan, write_archive
from symbert.corpus.blocklist import (
    Address,
    Blocklist,
    BuildBlocklist,
    address_of,
    build_blocklist,
    entry_of,
    write_blocklist,
)
from symbert.corpus.filters import check_categories
from symbert.errors import DataError, IntegrityError
from symbert.files import read_json
from symbert.sources import BLOCKLIST
from symbert.steps import File


def pairs(table: str) -> list[tuple[str, str]]:
    """Cases of two words each."""
    words = table.split()
    return list(zip(words[::2], words[1::2], strict=True))


# Octal numbers, of which the last fills what is left; 3232235777 is 192 · 2²⁴ + 168 · 2¹⁶ + 1 · 2⁸ + 1.
HOSTS = pairs("""
    0x7f.1 127.0.0.1        0300.0250.1 192.168.0.1     3232235777 192.168.1.1      0xC0A80101 192.168.1.1
    0x7f.1.. 127.0.0.1      1.2.3.4. 1.2.3.4            ４.４.４.４ 4.4.4.4         4294967296 none
    1.2.3.08 none           256.1.1.1 none              a.0 none                    a_b.example a_b.example
    [1:0:0:2:0:0:0:3] [1:0:0:2::3]      [::ffff:192.168.1.1] [::ffff:c0a8:101]      [::1%25eth0] none
    faß.example xn--fa-hia.example      ☃.example xn--n3h.example                   xn--a.example none
    ＢＡＤ。example bad.example         b\u00adad.example bad.example               b%61d.example bad.example
    [2001:0DB8:0:0:0:0:0:1] [2001:db8::1]
""")


def test_a_host_is_not_only_its_letters_in_lower_case():
    """By hand from url.spec.whatwg.org, sections 3.3 (IDNA) and 3.5 (host parsing), but for the final dot."""
    for host, canonical in HOSTS:
        expected = None if canonical == "none" else Address(canonical, f"{canonical}/x", False)
        assert address_of(f"http://{host}/x") == address_of(f"http://user:pw@{host}:80/x?q") == expected, host


ADDRESSES = {  # an address without a scheme is read as https, as ut1-rs does
    "https://A.example": Address("a.example", "a.example/", True),
    "http://a.example/X?y#z": Address("a.example", "a.example/X", False),
    "https://a.example:443/x": Address("a.example", "a.example/x", True),
    "https://a.example:8443/x/../y": Address("a.example", "a.example:8443/y", True),
    "HTTPS://a.example./é": Address("a.example", "a.example/%C3%A9", True),
    "https://a.example\n/x": Address("a.example", "a.example/x", True),
    "www.A.example/X?y": Address("www.a.example", "www.a.example/X", True),
    "//a.example/x": Address("a.example", "a.example/x", True),
    " a.example:8080/x\n": Address("a.example", "a.example:8080/x", True),
    "[2001:DB8::1]/x": Address("[2001:db8::1]", "[2001:db8::1]/x", True),
}
NONE = ["page", "an unknown place", "/a.example/x", "mailto:a@a.example", "mailto:1@a.example", "ftp://a.example/"]
NONE += ["data:text/plain,a.example", "urn:isbn:123", "https://[::1", "https://a.example:port/", "\ud800.example", ""]


def test_an_address_has_one_canonical_form_and_no_other_text_is_made_one_by_a_scheme():
    assert {url: address_of(url) for url in ADDRESSES} == ADDRESSES
    assert [url for url in NONE if address_of(url)] == []


LISTED = {
    "adult": (
        ["bad.example", "deep.worse.example", "münchen.example", "10.0.0.1"],
        ["shared.example/a", "shared.example"],
    ),
    "malware": (["bad.example", "sub.good.example"], ["shared.example/a?x=1", "Shared.example/Mixed", "tld/x"]),
    "press": (["example"], ["shared.example/dir/", "shared.example:8080/a"]),
}


@pytest.fixture(scope="module")
def blocklist(make_blocklist):
    return make_blocklist(LISTED)


def naive(url: str, match: str) -> set[str]:
    """The rule in words, for URLs whose host and path are already in canonical form."""
    parts = urlsplit(url)
    found = set()
    for name, (domains, urls) in LISTED.items():
        for domain in domains:
            parent = match == "suffix" and "." in domain and parts.hostname.endswith("." + domain)
            if parts.hostname == domain or parent:
                found.add(name)
        for entry in urls:
            listed = urlsplit("https://" + entry)
            same = (parts.hostname, parts.port, parts.path or "/") == (listed.hostname, listed.port, listed.path or "/")
            if same and parts.scheme == "https":
                found.add(name)
    return found


labels = st.sampled_from(["bad", "xbad", "worse", "deep", "good", "sub", "shared", "a"])
listed_hosts = st.lists(labels, max_size=3).map(lambda names: ".".join([*names, "example"]))
listed_paths = st.sampled_from(["", "/", "/a", "/A", "/a/", "/dir/", "/dir", "/Mixed", "/x"])
ports = st.sampled_from(["", ":8080"])
queries = st.sampled_from(["", "?x=1", "?", "#top", "?y#z"])
urls = st.builds("{}://{}{}{}{}".format, st.sampled_from(["http", "https"]), listed_hosts, ports, listed_paths, queries)


@settings(max_examples=500)
@given(urls, st.sampled_from(["exact", "suffix"]))
@example("https://shared.example:8080/a", "exact")
@example("https://deep.bad.example/", "suffix")
def test_categories_equal_those_of_a_naive_matcher(blocklist, url, match):
    assert (blocklist.look_up(url, match) or set()) == naive(url, match)


@given(st.text(), st.sampled_from(["", "https://", "http://[", "https://a@"]))
def test_any_text_at_all_is_matched_without_an_exception(blocklist, text, start):
    blocklist.look_up(start + text, "suffix")


def test_symlinked_directories_count_under_each_name(tmp_path):
    members = {"blacklists/violence": link("blacklists/violence", "aggressive")}
    members["blacklists/aggressive"] = link("blacklists/aggressive", "agressif")
    members["blacklists/agressif/domains"] = "bad.example\nworse.example\n\n \n"
    members["blacklists/agressif/urls"] = "a.example/x\n"
    members["blacklists/lost"] = link("blacklists/lost", "nowhere")
    members["blacklists/agressif/usage"] = "black\n"
    archive = write_archive(tmp_path / "ut1.tar.gz", members)
    write_blocklist(archive, tmp_path / "trie", tmp_path / "summary.json")
    found = Blocklist(tmp_path / "trie").look_up("https://bad.example")
    assert found == {"agressif", "aggressive", "violence"}
    counts = read_json(tmp_path / "summary.json")["categories"]
    assert counts == {name: {"domains": 2, "urls": 1} for name in sorted(found)}


def counted(tmp_path, members: dict) -> dict:
    """The counts of a blocklist of these members."""
    write_blocklist(write_archive(tmp_path / "ut1.tar.gz", members), tmp_path / "trie", tmp_path / "summary.json")
    return read_json(tmp_path / "summary.json")["categories"]


@pytest.mark.parametrize("top", ["blacklists/", "./blacklists/", "ut1-blacklists-master/blacklists/", "", "./", "a//"])
def test_an_archive_that_was_packed_again_with_another_top_folder_is_no_empty_one(tmp_path, top):
    members = {f"{top}adult/domains": "bad.example\n", f"{top}adult/urls": "a.example/x\n", f"{top}README": "words\n"}
    members[f"{top}porn"] = link(f"{top}porn", "adult")
    assert counted(tmp_path, members) == {name: {"domains": 1, "urls": 1} for name in ("adult", "porn")}
    found = Blocklist(tmp_path / "trie").look_up
    assert found("https://bad.example/") == found("https://a.example/x") == {"adult", "porn"}


LINES = {  # of lists of others, and what they name
    **dict.fromkeys(
        ["0.0.0.0 bad.example", "127.0.0.1\tbad.example", "::1   bad.example", "0 bad.example"], "bad.example"
    ),
    **dict.fromkeys(["*.bad.example", ".bad.example", "bad.example  # why", "0.0.0.0 bad.example #x"], "bad.example"),
    **dict.fromkeys(["http://bad.example/", "HTTPS://bad.example", "bad.example"], "bad.example"),
    **{"0.0.0.0": "0.0.0.0", "10.0.0.1": "10.0.0.1", "[2001:DB8::1]": "[2001:db8::1]", "a_b.example": "a_b.example"},
    **dict.fromkeys(["||bad.example^", "address=/bad.example/0.0.0.0", "bad.example,adult", "bad example"], None),
    **dict.fromkeys(['local-zone: "bad.example" redirect', "0.0.0.0 bad.example worse.example", "b\0a\0d"], None),
}


def test_the_lines_of_a_hosts_file_are_hosts_and_no_other_line_becomes_a_host_that_nobody_has():
    """`127.0.0.1<tab>bad.example` was the host 127.0.0.1bad.example, and http://bad.example/ the host `http`."""
    found = {line: entry_of(line) for line in LINES}
    assert {line: address and address.host for line, address in found.items()} == LINES
    assert entry_of("a.example/some page # x").location == "a.example/some%20page"
    assert entry_of("https://a.example/x").location == "a.example/x"


UNKNOWN = ["||a.example^\nb.example\n||c.example^\n", "a.example\rb.example\r", "a\0.\0e\0", "a.example,adult\n"]


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_list_of_which_most_lines_are_not_understood_is_no_list_without_entries(tmp_path, text):
    members = {"blacklists/good/domains": "good.example\n", "blacklists/adult/domains": text}
    with pytest.raises(DataError, match=r"ut1\.tar\.gz: \d of \d lines of 'adult/domains' are no address, as "):
        counted(tmp_path, members)
    assert os.listdir(tmp_path) == ["ut1.tar.gz"]


def test_a_few_lines_that_are_no_address_are_counted_and_comments_are_not(tmp_path, capsys):
    text = "# of 2026\nbad.example\nworse.example\nno host\n\n"
    assert counted(tmp_path, {"blacklists/adult/domains": text})["adult"]["domains"] == 2
    assert "ut1.tar.gz: 1 of 3 lines of 'adult/domains' are no address, as 'no host'" in capsys.readouterr().err


@pytest.mark.parametrize("members", [{}, {"adult.txt": "bad.example"}, {"blacklists/adult/domains": "# none\n"}])
def test_an_archive_without_an_address_is_refused(tmp_path, members):
    with pytest.raises(DataError, match=r"ut1\.tar\.gz: has no address in a file CATEGORY/domains or CATEGORY/urls"):
        counted(tmp_path, members)
    assert os.listdir(tmp_path) == ["ut1.tar.gz"]


def test_a_list_under_another_name_is_said_and_a_category_in_two_folders_is_refused(tmp_path, capsys):
    unread = ["b/adult/domains.2", "b/adult/domains.gz", "b/adult/Domains", "domains", "b/adult/urls_old"]
    members = {"b/adult words/urls": "a.example/x", **dict.fromkeys(unread, "bad.example"), "b/adult/usage": "x"}
    assert counted(tmp_path, members | {"b/adult/domains.9309": ""}) == {"adult words": {"domains": 0, "urls": 1}}
    said = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[2].split(" is not read")[0] for line in said] == list(map(repr, unread))
    assert all(line.startswith("warning: ") for line in said)
    with pytest.raises(DataError, match="'other/adult words/urls' is of a category that another folder has"):
        counted(tmp_path, members | {"other/adult words/urls": "a.example/y"})


def test_a_category_without_entries_is_known_as_such(make_blocklist, capsys):
    blocklist = make_blocklist({"adult": (["bad.example"], []), "press": ([], []), "sect": (["# none"], [])})
    assert (blocklist.names, blocklist.without_entries) == ({"adult", "press", "sect"}, {"press", "sect"})
    check_categories(["adult", "press"], blocklist.names, blocklist.without_entries)
    said = capsys.readouterr().err
    assert said.startswith("warning: blocked_categories: 'press' has no entries") and said.count("\n") == 1


def with_long_header(kind: str, length: int) -> tarfile.TarInfo:
    """A member with a long name, the link to one, or a comment of that length."""
    long = "long/" * (length // 5)
    member = link(f"blacklists/{length}", long if kind == "target" else "target")
    if kind == "name":
        member = tarfile.TarInfo(f"{long}domains")
    elif kind == "comment":
        member.pax_headers = {"comment": long}
    return member


HEADERS = [("name", tarfile.GNU_FORMAT), ("target", tarfile.GNU_FORMAT)]
HEADERS += [("name", tarfile.PAX_FORMAT), ("comment", tarfile.PAX_FORMAT)]


@pytest.mark.parametrize(("kind", "form"), HEADERS)
def test_the_memory_for_a_name_is_bounded(tmp_path, kind, form):
    """A name of gigabytes, which compresses to little, was read whole before the archive was refused."""
    archive = tmp_path / "ut1.tar.gz"
    with tarfile.open(archive, "w:gz", format=form) as packed:
        packed.addfile(tarfile.TarInfo("blacklists/README"))
        packed.addfile(with_long_header(kind, 8_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"ut1\.tar\.gz: has a header of more than 65,536 bytes"):
            write_blocklist(archive, tmp_path / "trie", tmp_path / "summary.json")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_the_memory_for_many_headers_is_bounded(tmp_path):
    archive = tmp_path / "ut1.tar.gz"
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT, compresslevel=1) as packed:
        for number in range(60):
            member = tarfile.TarInfo(f"blacklists/{number}/usage")
            member.pax_headers = {"comment": f"{random.Random(number).randbytes(300).hex() * 80}"}
            packed.addfile(member)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="has no address"):
            write_blocklist(archive, tmp_path / "trie", tmp_path / "summary.json")
        assert tracemalloc.get_traced_memory()[1] < 1_500_000, "of 2.9 MB"
    finally:
        tracemalloc.stop()


def test_names_and_lines_that_no_list_has_are_refused(tmp_path):
    for members, reason in (
        ({f"{'a/' * 3000}domains": "x"}, "has a name of 6,007 characters"),
        ({"blacklists/a/domains": "a" * 70_000}, "'blacklists/a/domains' has a line of more than 65,536 bytes"),
    ):
        with pytest.raises(DataError, match=reason) as refusal:
            counted(tmp_path, members)
        assert len(str(refusal.value)) < 400


DANGEROUS = {
    "/blacklists/a/domains": "x",
    "blacklists/../../a": "x",
    "blacklists/a": link("blacklists/a", "../../etc"),
    "blacklists/b": link("blacklists/b", "/etc"),
    "blacklists/c": link("blacklists/c", ".."),
    "blacklists/a/domains": link("blacklists/a/domains", "blacklists/b/domains", b"1"),
    "blacklists/d/domains": link("blacklists/d/domains", "", b"3"),  # a device
}


def test_dangerous_members_are_refused_by_name_as_is_what_expands_too_far_or_occurs_twice(tmp_path):
    for name, member in DANGEROUS.items():
        archive = write_archive(tmp_path / "ut1.tar.gz", {"blacklists/ok/domains": "bad.example", name: member})
        with pytest.raises(DataError, match=re.escape(repr(name))):
            write_blocklist(archive, tmp_path / "trie", tmp_path / "summary.json")
        assert sorted(os.listdir(tmp_path)) == ["ut1.tar.gz"], "nothing half-written"
    twice = link("blacklists/a", "b")
    for members, reason in (
        ({"blacklists/a/domains": "0" * 5_000_000}, "to more than"),
        ({"first": twice, "second": twice}, "occurs twice"),
    ):
        write_archive(tmp_path / "ut1.tar.gz", members)
        with pytest.raises(DataError, match=reason):
            write_blocklist(tmp_path / "ut1.tar.gz", tmp_path / "trie", tmp_path / "summary.json")


def built(archive, folder) -> bytes:
    write_blocklist(archive, folder / "trie", folder / "summary.json")
    return (folder / "trie").read_bytes()


def test_no_flipped_bit_of_an_archive_gives_another_blocklist_and_no_cut_one_any(tmp_path):
    """`tarfile` does not heed gzip's checksum: 292 of 300 flips gave a blocklist."""
    whole, damaged = tmp_path / "ut1.tar.gz", tmp_path / "damaged.tar.gz"
    members = {
        f"blacklists/{name}/domains": "\n".join(f"{number * 7919 % 1009}.{name}.example" for number in range(200))
        for name in ("adult", "malware", "press")
    }
    content, expected = write_archive(whole, members).read_bytes(), built(whole, tmp_path)
    harmless = 0
    for place in random.Random(7).sample(range(8 * len(content)), 100):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        damaged.write_bytes(flipped)
        try:
            assert built(damaged, tmp_path) == expected, f"bit {place} gives another blocklist"
            harmless += 1
        except DataError as error:
            assert str(error).startswith(f"{damaged}: damaged archive (")
    assert harmless < 10, "only gzip's header, which says nothing of the content"
    for size in [*range(0, len(content), len(content) // 9), *range(len(content) - 9, len(content))]:
        damaged.write_bytes(content[:size])
        with pytest.raises(DataError, match=r"damaged\.tar\.gz"):
            built(damaged, tmp_path)


def test_the_archive_is_that_of_its_publishers_list(tmp_path):
    archive, listing = tmp_path / "blacklists.tar.gz", tmp_path / "MD5SUM.LST"
    write_archive(archive, {"blacklists/a/domains": "bad.example"})
    listing.write_text(f"{hashlib.md5(archive.read_bytes()).hexdigest()}  blacklists.tar.gz\n")
    plan(tmp_path / "ut1", BuildBlocklist(archive=File(str(archive)), checksums=File(str(listing))))
    build_blocklist(tmp_path / "ut1/blocklist.marisa")
    assert read_json(tmp_path / "ut1/blocklist.json")["categories"] == {"a": {"domains": 1, "urls": 0}}
    assert Blocklist(tmp_path / "ut1/blocklist.marisa").look_up("https://bad.example/") == {"a"}
    write_archive(archive, {"blacklists/a/domains": "other.example"})
    with pytest.raises(IntegrityError, match=r"blacklists\.tar\.gz: md5 expected \w{32}, found \w{32}; delete .* run"):
        build_blocklist(tmp_path / "ut1/blocklist.marisa")


def test_categories_equal_those_that_the_mirror_was_annotated_with(mirror, tmp_path):
    write_blocklist(mirror / BLOCKLIST.location, tmp_path / "trie", tmp_path / "summary.json")
    blocklist = Blocklist(tmp_path / "trie")
    annotated = [document for document in mirrored_documents(mirror) if document.metadata.categories]
    assert len(annotated) > 500
    for document in mirrored_documents(mirror):  # of these 1,500 none lacks its categories, as a few others do
        assert (blocklist.look_up(document.url, "suffix") or set()) == set(document.metadata.categories or ())
    summary = read_json(tmp_path / "summary.json")["categories"]
    assert summary["porn"] == summary["adult"]
    assert summary["adult"]["domains"] > 41_000
