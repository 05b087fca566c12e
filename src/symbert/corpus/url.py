"""The parts of a web address that blocklists speak of, in one canonical form; None for what is no web address."""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_HOST = re.compile(r"[^\s/\\?#@:<>^|%\x00-\x20\x7f]+")
_PATH_CHARACTERS = "/%:@!$&'()*+,;=~|[]^\\"  # what browsers leave as it is in a path
# Addresses that are in canonical form but for the case of the host: nearly all of them.
_PLAIN = re.compile(
    r"http(s?)://([\w-]+(?:\.[\w-]+)*)((?:/(?!\.|%2[eE])[\w.~%:@!$&'()*+,;=|\[\]^-]*)*)(?:[?#]|\Z)", re.ASCII
)
_DOTS = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)


class Address(NamedTuple):
    """What a web address is matched by."""

    host: str  # lower case, international names in their ASCII form, without port, user and final dot
    location: str | None  # host and path, a port only if it is not https's own; None when the port is none
    secure: bool  # https


def address_of(url: str) -> Address | None:
    """The address in a URL, without user, query and fragment."""
    if plain := _PLAIN.match(url):
        secure, host, path = plain.groups()
        host = host.lower()
        return Address(host, host + (path or "/"), bool(secure))
    parts = _split(url)
    host = _host(parts) if parts else None
    return Address(host, _location(host, parts), parts.scheme == "https") if host else None


def _split(url: str) -> SplitResult | None:
    if not _SCHEME.match(url):
        return None
    try:
        return urlsplit(url)
    except ValueError:  # unbalanced brackets and the like
        return None


def _host(parts: SplitResult) -> str | None:
    if parts.netloc.rpartition("@")[2].startswith("["):
        return f"[{parts.hostname}]" if parts.hostname else None
    host = unquote(parts.hostname or "").rstrip(".")
    if not host.isascii():
        host = _ascii(host)
    return host.lower() if _HOST.fullmatch(host) else None


def _ascii(host: str) -> str:
    """IDNA 2008 with browsers' mapping of case and width; empty when a label cannot be written so."""
    import idna

    try:
        labels = idna.uts46_remap(host, std3_rules=False).split(".")
        return ".".join(label if label.isascii() else idna.alabel(label).decode() for label in labels)
    except UnicodeError:
        return ""


def _location(host: str, parts: SplitResult) -> str | None:
    try:
        port = parts.port
    except ValueError:
        return None
    return host + (f":{port}" if port not in (None, 443) else "") + _path(parts.path)


def _path(path: str) -> str:
    """The path with dot segments resolved as browsers do (url.spec.whatwg.org, "path state"): `%2e` is a dot, an empty
    segment is one that `..` removes, and a path that ends in dots ends in a slash."""
    path = quote(path.replace("\\", "/") or "/", safe=_PATH_CHARACTERS, errors="surrogatepass")
    resolved: list[str] = []
    for segment in path.split("/")[1:]:
        dots = _dots(segment)
        if dots == 0:
            resolved.append(segment)
        elif dots == 2 and resolved:
            resolved.pop()
    if dots:
        resolved.append("")
    return "/" + "/".join(resolved)


def _dots(segment: str) -> int:
    """1 for a segment that stays where it is, 2 for one that goes up, 0 for any other."""
    return len(segment.lower().replace("%2e", ".")) if _DOTS.fullmatch(segment) else 0
