"""The UT1 blocklist: from the published archive to a trie that every job maps into memory.

The archive is read as a stream: nothing is extracted, and unexpected members are refused. A list is a member
`<category>/domains` or `<category>/urls`, in whatever folder, as others who pack UT1 again name it otherwise. Of its
lines most must be addresses.

The trie's keys are hosts (`bad.example`) and exact addresses (`bad.example/page`); an address has a slash
and a host has none. A value is two bytes: the index of a directory in the list of names under `NAMES`.
"""

import gzip
import json
import posixpath
import re
import sys
import tarfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from symbert.configuration import Match
from symbert.digests import listed_digest
from symbert.errors import DataError
from symbert.files import publish, sha256_of, together, write_json
from symbert.sources import located, verified
from symbert.steps import File, Step, read_step

if TYPE_CHECKING:  # where rows are packed and models trained, it may be absent
    import can_ada

Listing = Literal["domains", "urls"]

MOST_MEMBERS = 10_000
MOST_BYTES = 4 << 30
LARGEST_RATIO = 200  # of expanded to compressed bytes
_ALLOWANCE = 1 << 20  # bytes that a small archive may expand to, whatever the ratio
LONGEST_NAME = 4096  # characters
LONGEST_HEADER = 1 << 16  # bytes between the content of two members, with names of any form
LONGEST_ENTRY = 1 << 16  # bytes
_LISTING = re.compile(r"(?:.+/)?([^/]+)/(domains|urls)")
_ALIKE = re.compile(r"(?:.*/)?(domains|urls)(?![a-z]).*", re.IGNORECASE)  # compressed, split, of no category
_ALIAS = re.compile(r"(?:.+/)?([^/]+)")
# A line of a list: an address, perhaps with a scheme, as `*.bad.example`, or after an address as in a hosts file.
_ENTRY = re.compile(
    r"(?:(?:0|0\.0\.0\.0|127\.0\.0\.1|::1?)\s+|https?://)?(?:\*?\.)?(\S+|[^\s/]+/.+?)(?:\s+#.*)?", re.IGNORECASE
)
_HOST = re.compile(r"[\w.-]+|\[[\da-f:.]+\]", re.ASCII)
# A text without a scheme: `bad.example:8080/x` begins with a host and its port.
_WITHOUT_SCHEME = re.compile(r"(?![a-z][a-z\d+.-]*:(?!\d+(?:[/\\?#]|\Z)))(?://)?[^/\\?#]", re.IGNORECASE)
NAMES, EMPTY = " names", " empty"  # the latter: names of categories without entries
HOSTS_REMEMBERED = 1 << 15  # of a part, whose documents are often of few hosts; a few megabytes


class BuildBlocklist(Step, frozen=True):
    """The trie of UT1's archive, and how many entries each of its categories has."""

    place: ClassVar[str] = "corpus/blocklist"
    files: ClassVar[dict[str, str]] = {"trie": "blocklist.marisa", "summary": "blocklist.json"}
    memory: ClassVar[int] = 4000  # MB
    minutes: ClassVar[int] = 120

    archive: File
    checksums: File  # its publisher's list of MD5 sums

    def reads(self) -> list[str]:
        """Both files."""
        return [located(self.archive.path), located(self.checksums.path)]


class Address(NamedTuple):
    """The parts of a web address that lists are searched for."""

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
        url = url.strip()
        parsed = _parsed("https://" + url) if _WITHOUT_SCHEME.match(url) else None
        if parsed is None or not re.search(r"[.:]", parsed.hostname):  # a word without a dot
            return None
    written = host = parsed.hostname
    if host.endswith("."):
        bare = _parsed("https://" + host.rstrip("."))  # of which the rest may be a number, hence another address
        if bare is None:
            return None
        host = bare.hostname
    return Address(host, host + parsed.host[len(written) :] + parsed.pathname, parsed.protocol == "https:")


def _parsed(url: str) -> "can_ada.URL | None":
    import can_ada

    try:
        return can_ada.parse(url)
    except (ValueError, TypeError):  # TypeError: half of a surrogate pair
        return None


class _Bounded:
    """The content of an archive up to `end`, where the next header must have ended: tarfile holds it in memory."""

    def __init__(self, content: gzip.GzipFile, archive: Path) -> None:
        self.content, self.archive, self.position, self.end = content, archive, 0, LONGEST_HEADER

    def read(self, size: int) -> bytes:
        self.position += size
        if self.position > self.end:
            fault = f"has a header of more than {LONGEST_HEADER:,} bytes before byte {self.position:,}"
            raise DataError(f"{self.archive}: {fault}; get the archive from its publisher")
        return self.content.read(size)


def read_entries(archive: Path, links: dict[str, str]) -> Iterator[tuple[str, Listing, str]]:
    """Category, kind and text of each line of the lists `<category>/{domains,urls}` of an archive.

    An empty text begins each list. `links` is filled with the symlinked directories and their targets. A line on
    stderr names a member that resembles a list and is not read. Raises DataError for device files, hard links, absolute
    names, `..`, links that leave the folder, a category in two folders and anything too large, and at the end for an
    archive whose content gzip's checksum does not confirm; the message names archive and, where it is one, the member.
    """
    lists: set[tuple[str, Listing]] = set()
    try:
        with gzip.open(archive) as content:
            bounded = _Bounded(content, archive)
            with tarfile.open(fileobj=bounded, mode="r|") as stream:
                for name, member in _checked(stream, archive):
                    bounded.end = member.offset_data + member.size + LONGEST_HEADER
                    if member.issym() and (alias := _ALIAS.fullmatch(name)):
                        links[alias[1]] = member.linkname.removesuffix("/")
                    elif member.isfile() and (listing := _LISTING.fullmatch(name)):
                        if listing.groups() in lists:
                            raise _refusal(archive, name, "is of a category that another folder has, too")
                        lists.add(listing.groups())
                        yield *listing.groups(), ""
                        lines = stream.extractfile(member)
                        while line := lines.readline(LONGEST_ENTRY + 1):
                            if len(line) > LONGEST_ENTRY:
                                raise _refusal(archive, name, f"has a line of more than {LONGEST_ENTRY:,} bytes")
                            if text := line.decode(errors="surrogateescape").strip():
                                yield *listing.groups(), text
                    elif member.isfile() and member.size and _ALIKE.fullmatch(name):
                        fact = f"{name!r} is not read, only CATEGORY/domains and CATEGORY/urls"
                        print(f"warning: {archive}: {fact}", file=sys.stderr)
            while content.read(_ALLOWANCE):  # to its end, where gzip compares its checksum
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{archive}: damaged archive ({error}); download it again") from None


def _refusal(archive: Path, name: str, fault: str) -> DataError:
    return DataError(f"{archive}: member {name!r} {fault}; get the archive from its publisher")


def _checked(stream: tarfile.TarFile, archive: Path) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """The members of the stream with their normal names, each once its name, kind and size proved harmless."""
    seen: set[str] = set()
    allowed = min(MOST_BYTES, LARGEST_RATIO * archive.stat().st_size + _ALLOWANCE)
    for member in stream:
        fault, size, name = None, member.offset_data + member.size, posixpath.normpath(member.name)
        if member.name.startswith("/") or ".." in member.name.split("/"):
            fault = "has a name that leaves the archive"
        elif len(name) > LONGEST_NAME:
            raise _refusal(archive, f"{name[:80]}…", f"has a name of {len(name):,} characters")
        elif member.issym() and not re.fullmatch(r"(?!\.\.?$)[\w.-]+", member.linkname.removesuffix("/")):
            fault = f"is a link to {member.linkname!r}, which is no name in the same folder"
        elif not (member.isfile() or member.isdir() or member.issym()) or member.issparse():
            fault = "is neither file, directory nor link"
        elif name in seen:
            fault = "occurs twice"
        elif len(seen) == MOST_MEMBERS:
            fault = f"is one of more than {MOST_MEMBERS:,} members"
        elif size > allowed:
            fault = f"expands the archive to more than {allowed:,} bytes"
        if fault:
            raise _refusal(archive, member.name, fault)
        seen.add(name)
        yield name, member
        stream.members.clear()  # which hold headers of any length


def entry_of(line: str) -> Address | None:
    """The address in a line of a list; None where there is none."""
    match = _ENTRY.fullmatch(line)
    address = address_of(f"https://{match[1]}") if match else None
    return address if address and _HOST.fullmatch(address.host) else None


@together()
def build_blocklist(output: Annotated[Path, "the trie, beside its settings.json"], /) -> None:
    """Make the files of a `BuildBlocklist`; IntegrityError when the archive is not that of its publisher's list."""
    step = read_step(output.parent, BuildBlocklist)
    archive, listing = verified(step.archive.path), verified(step.checksums.path)
    remedy = f"delete {archive} and {listing} and run again"
    listed_digest(listing, "md5", archive.name).check(archive, str(archive), remedy)
    write_blocklist(archive, output, output.with_suffix(".json"))


def write_blocklist(archive: Path, output: Path, summary: Path) -> None:
    """Write the trie of an archive and, in `summary`, how many entries each category has.

    A symlinked directory counts under each of its names. Lines that are no address are left out and counted on stderr;
    DataError where they are most of a list, and for an archive without any address.
    """
    links: dict[str, str] = {}
    counts: dict[str, Counter[Listing]] = {}
    strange: dict[tuple[str, Listing], tuple[int, str]] = {}  # by list: how many lines, and the first

    def entries() -> Iterator[tuple[str, bytes]]:
        indices: dict[str, int] = {}
        for directory, kind, text in read_entries(archive, links):
            counts.setdefault(directory, Counter())
            if address := text and entry_of(text):
                index = indices.setdefault(directory, len(indices))
                counts[directory][kind] += 1
                yield address.host if kind == "domains" else address.location, index.to_bytes(2)
            elif text and not text.startswith("#"):
                count, first = strange.get((directory, kind), (0, text))
                strange[directory, kind] = count + 1, first
        groups = {name: [name] for name in {**indices, **counts}}
        for alias, directory in _resolved(links, counts).items():
            groups[directory].append(alias)
        yield NAMES, json.dumps(list(groups.values())).encode()
        yield EMPTY, json.dumps([name for category in groups.keys() - indices for name in groups[category]]).encode()

    import marisa_trie

    trie = marisa_trie.BytesTrie(entries())
    for (directory, kind), (count, first) in strange.items():
        known = counts[directory][kind]
        fact = f"{count:,} of {known + count:,} lines of {f'{directory}/{kind}'!r} are no address, as {first[:60]!a}"
        if count > known:
            raise DataError(f"{archive}: {fact}; get the archive from its publisher")
        print(f"{archive}: {fact}", file=sys.stderr)
    if not any(map(Counter.total, counts.values())):
        raise DataError(
            f"{archive}: has no address in a file CATEGORY/domains or CATEGORY/urls; get the archive from its publisher"
        )
    with publish(output) as temporary:
        temporary.write_bytes(trie.tobytes())  # save() does not say why it fails
    directories = {name: name for name in counts} | _resolved(links, counts)
    categories = {
        name: {kind: counts[directory][kind] for kind in ("domains", "urls")}
        for name, directory in sorted(directories.items())
    }
    write_json(summary, {"archive_sha256": sha256_of(archive), "categories": categories})


def _resolved(links: dict[str, str], directories: Collection[str]) -> dict[str, str]:
    """Symlinked name → directory, through links to links; those that lead nowhere are left out."""
    resolved = {name: name for name in links}
    for _ in links:  # a circle ends where it began
        resolved = {name: links.get(target, target) for name, target in resolved.items()}
    return {name: directory for name, directory in resolved.items() if directory in directories}


class Blocklist:
    """The categories of web addresses, looked up in the file that `build_blocklist` wrote; DataError names another."""

    def __init__(self, path: Path) -> None:
        import marisa_trie

        try:
            self._trie = marisa_trie.BytesTrie().mmap(str(path))
            self._names = json.loads(self._trie[NAMES][0])
        except (RuntimeError, KeyError, ValueError):
            raise DataError(f"{path}: not a blocklist; delete it and run build-blocklist") from None
        self.names = frozenset(name for group in self._names for name in group)
        self.without_entries = frozenset(json.loads(self._trie.get(EMPTY, [b"[]"])[0]))
        self._look_up_host = lru_cache(HOSTS_REMEMBERED)(self._categories_of_host)

    def look_up(self, url: str | None, match: Match = "exact") -> frozenset[str] | None:
        """The categories of a URL; None when it is missing or no web address, and so can have none.

        `exact`: its host is listed, or, for https, its host and path without query (ut1_blocklist 0.3.0, which OSCAR
        used). `suffix`: a parent domain of two labels or more may be listed instead (newer ut1-rs).
        """
        address = address_of(url) if url else None
        if address is None:
            return None
        listed = self._look_up_host(address.host, match)
        if address.secure:
            listed = listed | self._categories(address.location)
        return listed

    def _categories_of_host(self, host: str, match: Match) -> frozenset[str]:
        labels = host.split(".")
        parents = [".".join(labels[start:]) for start in range(1, len(labels) - 1)] if match == "suffix" else []
        return frozenset().union(*map(self._categories, [host, *parents]))

    def _categories(self, key: str) -> frozenset[str]:
        return frozenset(name for value in self._trie.get(key, ()) for name in self._names[int.from_bytes(value)])


def look_up_nothing(url: str | None) -> frozenset[str] | None:
    """In the place of `Blocklist.look_up`, where no blocklist is asked for: only whether it is a web address."""
    return frozenset() if url and address_of(url) else None
