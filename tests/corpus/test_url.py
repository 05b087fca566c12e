import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symbert.corpus.url import Address, address_of

hosts = st.text("abC-_.0", min_size=1, max_size=8)
segments = st.sampled_from(["", ".", "..", "%2e", "%2E", ".%2E", "%2e.", "%2e%2E", "...", "%2ea", "%2", "a"])
paths = st.one_of(
    st.text("/.aZ%2e~:@!$&'()*+,;=|[]^-_é\\ ", max_size=12).map(lambda text: "/" + text),
    st.lists(segments, max_size=6).map(lambda segments: "/" + "/".join(segments)),
)


@given(st.sampled_from(["http", "https"]), hosts, paths, st.sampled_from(["", "?q=/../x", "#a?b"]))
@example("https", "a.b", "/x/../y/.", "")
@example("https", "a.b", "/x/%2e%2E/y", "")
def test_a_plain_address_is_what_the_same_address_with_a_user_name_is(scheme, host, path, rest):
    """A user name takes the long way, through the parser of the standard library."""
    assert address_of(f"{scheme}://{host}{path}{rest}") == address_of(f"{scheme}://user@{host}{path}{rest}")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://A.example", Address("a.example", "a.example/", True)),
        ("http://a.example/X?y#z", Address("a.example", "a.example/X", False)),
        ("https://a.example:443/x", Address("a.example", "a.example/x", True)),
        ("https://a.example:8443/x/../y", Address("a.example", "a.example:8443/y", True)),
        ("HTTPS://a.example./é", Address("a.example", "a.example/%C3%A9", True)),
        ("https://a.example:port/", Address("a.example", None, True)),
        ("ftp://a.example/", None),
        ("https://a.example/a//b/./c", Address("a.example", "a.example/a//b/c", True)),
        ("https://a.example\n/x", Address("a.example", "a.example/x", True)),
    ],
)
def test_an_address_has_one_canonical_form(url, address):
    assert address_of(url) == address


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("/././foo", "/foo"),
        ("/./.foo", "/.foo"),
        ("/foo/.", "/foo/"),
        ("/foo/./", "/foo/"),
        ("/foo/bar/..", "/foo/"),
        ("/foo/bar/../", "/foo/"),
        ("/foo/bar/..bar", "/foo/bar/..bar"),
        ("/foo/bar/../ton/../../a", "/a"),
        ("/foo/../../..", "/"),
        ("/foo/../../../ton", "/ton"),
        ("/foo/%2e", "/foo/"),
        ("/foo/%2e%2", "/foo/%2e%2"),
        ("/foo/%2e./%2e%2e/.%2e/%2e.bar", "/%2e.bar"),
        ("////../..", "//"),
        ("/foo/bar//../..", "/foo/"),
        ("/foo/bar//..", "/foo/bar/"),
        ("/%2E%2e/%2e%2E/a%2e", "/a%2e"),
        ("/foo\\bar\\..\\x", "/foo/x"),
        ("//a/./b//", "//a/b//"),
    ],
)
def test_dot_segments_are_resolved_as_in_browsers(path, resolved):
    """All but the last three are in the web platform tests: url/resources/urltestdata.json."""
    for url in (f"https://a.example{path}", f"https://a.example{path}?q#f", f"https://user@a.example{path}"):
        assert address_of(url).location == f"a.example{resolved}"


@given(hosts, paths)
@example("..", "/")  # a host of dots alone is none
def test_the_canonical_form_of_an_address_is_its_own(host, path):
    address = address_of(f"https://{host}{path}")
    assert address is None or address_of(f"https://{address.location}") == address
