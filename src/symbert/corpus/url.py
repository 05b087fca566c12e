"""The parts of a web address that blocklists speak of, in one canonical form; None for what is no web address.

The form is that of the URL Standard (url.spec.whatwg.org), which `can_ada` computes as browsers do.
"""

import re
from typing import NamedTuple

import can_ada

# What does not begin with a scheme: `bad.example:8080/x` begins with a host and its port.
_WITHOUT_SCHEME = re.compile(r"(?![a-z][a-z\d+.-]*:(?!\d+(?:[/\\?#]|\Z)))(?://)?[^/\\?#]", re.IGNORECASE)


class Address(NamedTuple):
    """What a web address is matched by."""

    host: str  # lower case, international names in their ASCII form, without port, user and final dot
    location: str  # host and path, a port only if it is not the scheme's own
    secure: bool  # https


def address_of(url: str) -> Address | None:
    """The address in a URL, without user, query and fragment; `bad.example/x`, without a scheme, is read as https."""
    parsed = _parsed(url)
    if parsed is None or parsed.protocol not in ("https:", "http:"):
        parsed = _parsed_as_https(url.strip())
        if parsed is None:
            return None
    written = host = parsed.hostname
    if host.endswith("."):
        bare = _parsed("https://" + host.rstrip("."))  # of which the rest may be a number, hence another address
        if bare is None:
            return None
        host = bare.hostname
    return Address(host, host + parsed.host[len(written) :] + parsed.pathname, parsed.protocol == "https:")


def _parsed_as_https(url: str) -> can_ada.URL | None:
    """A URL that lacks its scheme; a word without a dot is none."""
    parsed = _parsed("https://" + url) if _WITHOUT_SCHEME.match(url) else None
    return parsed if parsed and re.search(r"[.:]", parsed.hostname) else None


def _parsed(url: str) -> can_ada.URL | None:
    try:
        return can_ada.parse(url)
    except (ValueError, TypeError):  # TypeError: half of a surrogate pair
        return None
