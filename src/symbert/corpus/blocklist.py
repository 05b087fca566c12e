"""The UT1 blocklist: from the published archive to a trie that every job maps into memory.

The trie's keys are hosts (`bad.example`) and exact addresses (`bad.example/page`); an address has a slash
and a host has none. A value is two bytes: the index of a directory in the list of names under `NAMES`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import can_ada
import marisa_trie

from symbert.corpus.archive import Listing, Listings
from symbert.corpus.digests import Digest
from symbert.errors import DataError, MissingInputError
from symbert.files import publish, read_json, sha256_of, write_json

# What does not begin with a scheme: `bad.example:8080/x` begins with a host and its port.
_WITHOUT_SCHEME = re.compile(r"(?![a-z][a-z\d+.-]*:(?!\d+(?:[/\\?#]|\Z)))(?://)?[^/\\?#]", re.IGNORECASE)
NAMES = " names"


class Address(NamedTuple):
    """What a web address is matched by."""

    host: str  # lower case, international names in their ASCII form, without port, user and final dot
    location: str  # host and path, a port only if it is not the scheme's own
    secure: bool  # https


def address_of(url: str) -> Address | None:
    """The address in a URL, without user, query and fragment; `bad.example/x`, without a scheme, is read as https.

    Its form is that of the URL Standard (url.spec.whatwg.org), which `can_ada` computes as browsers do. None for what
    is no web address.
    """
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


def build_blocklist(archive: Path, output: Path, summary: Path, record: Path | None = None) -> None:
    """Write the trie of a UT1 archive and, in `summary`, how many entries each category has.

    A symlinked directory counts under each of its names. Entries that are no host or address are left out. `record` is
    what download-blocklist wrote of the archive that agreed with UT1's list; IntegrityError when this is another one.
    """
    if record is not None and archive.is_file():
        remedy = "delete it and run download-blocklist"
        recorded = read_json(record, {"sha256": str}, remedy)["sha256"]
        Digest("sha256", recorded).check(archive, str(archive), remedy)
    listings = Listings(archive)
    counts: Counter[tuple[str, Listing]] = Counter()
    trie = marisa_trie.BytesTrie(_entries(listings, counts))
    with publish(output) as temporary:
        temporary.write_bytes(trie.tobytes())  # save() does not say why it fails
    directories = {**{name: name for name in listings.directories}, **listings.aliases()}
    categories = {
        name: {kind: counts[directory, kind] for kind in ("domains", "urls")}
        for name, directory in sorted(directories.items())
    }
    write_json(summary, {"archive_sha256": sha256_of(archive), "categories": categories})


def _entries(listings: Listings, counts: Counter[tuple[str, Listing]]) -> Iterator[tuple[str, bytes]]:
    """Key and value of every entry, counted, and then the names of the directories."""
    indices: dict[str, bytes] = {}
    for directory, kind, line in listings.entries():
        address = address_of("https://" + line)  # an entry carries no scheme
        if address:
            if directory not in indices:
                indices[directory] = len(indices).to_bytes(2)
            counts[directory, kind] += 1
            yield address.host if kind == "domains" else address.location, indices[directory]
    groups = {name: [name] for name in {**indices, **listings.directories}}
    for alias, directory in listings.aliases().items():
        groups[directory].append(alias)
    yield NAMES, json.dumps(list(groups.values())).encode()


class Blocklist:
    """The categories of web addresses, looked up in the file that `build_blocklist` wrote.

    Raises MissingInputError or DataError, which name the file.
    """

    def __init__(self, path: Path) -> None:
        if not Path(path).is_file():
            raise MissingInputError(f"{path}: file not found; run build-blocklist")
        try:
            self._trie = marisa_trie.BytesTrie().mmap(str(path))
            self._names = json.loads(self._trie[NAMES][0])
        except (RuntimeError, KeyError, ValueError):
            raise DataError(f"{path}: not a blocklist; delete it and run build-blocklist") from None
        self.names = frozenset(name for group in self._names for name in group)

    def look_up(self, url: str | None) -> "UrlCategories":
        """The categories of a URL by either rule; NO_ADDRESS when it is missing or no web address."""
        address = address_of(url) if url else None
        if address is None:
            return NO_ADDRESS
        get = self._trie.get
        listed = get(address.host) or []
        if address.secure:
            listed = listed + (get(address.location) or [])
        by_parent = [value for parent in parents_of(address.host) for value in get(parent) or ()]
        if not listed and not by_parent:
            return NOTHING
        exact = self._categories(listed)
        return UrlCategories(exact, exact | self._categories(by_parent))

    def _categories(self, values: list[bytes]) -> frozenset[str]:
        return frozenset(name for value in values for name in self._names[int.from_bytes(value)])


class UrlCategories(NamedTuple):
    """The categories of a URL by the two published rules.

    `exact`: its host is listed, or, for https, its host and path without query (ut1_blocklist 0.3.0,
    which OSCAR used). `suffix`: a parent domain of two labels or more may be listed instead (newer ut1-rs).
    """

    exact: frozenset[str]
    suffix: frozenset[str]
    has_address: bool = True  # without one no category can be found


def look_up_nothing(url: str | None) -> UrlCategories:
    """In the place of `Blocklist.look_up`, where no blocklist is asked for: only whether it is a web address."""
    return NOTHING if url and address_of(url) else NO_ADDRESS


NOTHING = UrlCategories(frozenset(), frozenset())
NO_ADDRESS = UrlCategories(frozenset(), frozenset(), has_address=False)  # no URL, or one that is no web address


def parents_of(host: str) -> list[str]:
    """The domains that contain `host`, down to two labels: `a.b.example` is in `b.example`."""
    parents = []
    _, _, parent = host.partition(".")
    while "." in parent:
        parents.append(parent)
        _, _, parent = parent.partition(".")
    return parents
