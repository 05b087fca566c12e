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
    """It is ignored wherever the address is matched."""
    assert address_of(f"{scheme}://{host}{path}{rest}") == address_of(f"{scheme}://user@{host}{path}{rest}")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://A.example", Address("a.example", "a.example/", True)),
        ("http://a.example/X?y#z", Address("a.example", "a.example/X", False)),
        ("https://a.example:443/x", Address("a.example", "a.example/x", True)),
        ("https://a.example:8443/x/../y", Address("a.example", "a.example:8443/y", True)),
        ("HTTPS://a.example./é", Address("a.example", "a.example/%C3%A9", True)),
        ("https://a.example:port/", None),
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


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("0x7f.1", "127.0.0.1"),
        ("0300.0250.1", "192.168.0.1"),  # octal; the last number fills what is left
        ("3232235777", "192.168.1.1"),  # 192 · 2²⁴ + 168 · 2¹⁶ + 1 · 2⁸ + 1
        ("0xC0A80101", "192.168.1.1"),
        ("0x7f.1..", "127.0.0.1"),
        ("1.2.3.4.", "1.2.3.4"),
        ("４.４.４.４", "4.4.4.4"),
        ("4294967296", None),
        ("1.2.3.08", None),
        ("256.1.1.1", None),
        ("a.0", None),
        ("[2001:0DB8:0:0:0:0:0:1]", "[2001:db8::1]"),
        ("[1:0:0:2:0:0:0:3]", "[1:0:0:2::3]"),
        ("[::ffff:192.168.1.1]", "[::ffff:c0a8:101]"),
        ("[::1%25eth0]", None),
        ("faß.example", "xn--fa-hia.example"),
        ("☃.example", "xn--n3h.example"),
        ("ＢＡＤ。example", "bad.example"),
        ("b\u00adad.example", "bad.example"),
        ("b%61d.example", "bad.example"),
        ("a_b.example", "a_b.example"),
        ("xn--a.example", None),
    ],
)
def test_a_host_is_not_only_its_letters_in_lower_case(host, canonical):
    """By hand from url.spec.whatwg.org, sections 3.3 (IDNA) and 3.5 (host parsing), but for the final dot."""
    expected = canonical and Address(canonical, f"{canonical}/x", False)
    assert address_of(f"http://{host}/x") == expected
    assert address_of(f"http://user:pw@{host}:80/x?q") == expected


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("a.example", "a.example/"),
        ("www.A.example/X?y", "www.a.example/X"),
        ("//a.example/x", "a.example/x"),
        (" a.example/x\n", "a.example/x"),
        ("a.example:8080/x", "a.example:8080/x"),
        ("0x7f.1/x", "127.0.0.1/x"),
        ("[2001:DB8::1]/x", "[2001:db8::1]/x"),
    ],
)
def test_an_address_may_lack_its_scheme(url, location):
    """It is read as https, as ut1-rs does."""
    address = address_of(url)
    assert (address.location, address.secure) == (location, True)
    assert address == address_of(f"https://{address.location}")


@pytest.mark.parametrize(
    "url",
    [
        "page",
        "an unknown place",
        "/a.example/x",
        "mailto:a@a.example",
        "mailto:1@a.example",
        "ftp://a.example/",
        "data:text/plain,a.example",
        "urn:isbn:123",
        "https://[::1",
        "https://xn--a.example:8/",
        "\ud800.example",
        "",
    ],
)
def test_what_is_no_web_address_is_not_made_one_by_a_scheme(url):
    assert address_of(url) is None
