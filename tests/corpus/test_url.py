import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symbert.corpus.url import Address, address_of

hosts = st.text("abC-_.0", min_size=1, max_size=8)
paths = st.text("/.aZ%2~:@!$&'()*+,;=|[]^-_é\\ ", max_size=12).map(lambda text: "/" + text)


@given(st.sampled_from(["http", "https"]), hosts, paths, st.sampled_from(["", "?q=/../x", "#a?b"]))
@example("https", "a.b", "/x/../y/.", "")
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
        ("https://a.example\n/x", Address("a.example", "a.example/x", True)),
    ],
)
def test_an_address_has_one_canonical_form(url, address):
    assert address_of(url) == address
