"""The parts of a web address that blocklists speak of, in one canonical form; None for what is no web address."""

import posixpath
import re
from urllib.parse import SplitResult, quote, unquote, urlsplit

_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_HOST = re.compile(r"[^\s/\\?#@:<>^|%\x00-\x20\x7f]+")
_PATH_CHARACTERS = "/%:@!$&'()*+,;=~|[]^\\"  # what browsers leave as it is in a path


def host_of(url: str) -> str | None:
    """The host: lower case, international names in their ASCII form, without port, user and final dot."""
    parts = _split(url)
    return _host(parts) if parts else None


def address_of(url: str) -> str | None:
    """Host and path, without scheme, user, query and fragment; a port only if it is not https's own."""
    parts = _split(url)
    host = _host(parts) if parts else None
    if host is None:
        return None
    try:
        port = parts.port
    except ValueError:
        return None
    return host + (f":{port}" if port not in (None, 443) else "") + _path(parts.path)


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
    host = unquote(parts.hostname or "").removesuffix(".")
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


def _path(path: str) -> str:
    path = quote(path.replace("\\", "/") or "/", safe=_PATH_CHARACTERS, errors="surrogatepass")
    if "/." in path:
        directory = path.endswith(("/", "/.", "/.."))
        resolved = posixpath.normpath(path)
        path = resolved + "/" if directory and not resolved.endswith("/") else resolved
    return path
