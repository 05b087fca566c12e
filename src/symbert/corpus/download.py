"""One file over the network, whole and checked or not at all.

What has arrived lies in `.<name>.partial` beside the destination, with a note of what it belongs to in
`.<name>.partial.json`. Both survive a failure and a kill, so that the same command goes on where it stopped
(RFC 9110: Range, If-Range); both are gone once the file is published.
"""

import errno
import fcntl
import json
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar

import httpx2

from symbert.corpus.digests import Digest
from symbert.errors import (
    InputOutputError,
    IntegrityError,
    MissingInputError,
    PermissionRefusedError,
    RemoteError,
    SymbertError,
    system_error,
)
from symbert.files import MEGABYTE, publish, write_json
from symbert.progress import Progress

LARGE = 10**7  # bytes from which on progress is reported
WORTH_REPEATING = (408, 425, 429)  # and every 5xx

Result = TypeVar("Result")


@dataclass(frozen=True)
class Patience:
    """How long a remote host is given."""

    attempts: int = 6  # in a row that bring nothing new
    pause: float = 1.0  # seconds before the second attempt; doubled before each further one
    longest_pause: float = 60.0  # seconds
    longest_wait: float = 600.0  # seconds that a Retry-After may ask for
    stall: float = 60.0  # seconds without a byte after which a connection is given up

    def before(self, attempt: int, asked: float) -> float:
        """Seconds to wait before attempt 2, 3, …: half of it at random, so that many jobs do not come at once."""
        pause = min(self.pause * 2 ** (attempt - 2), self.longest_pause) * random.uniform(0.5, 1)
        return max(pause, min(asked, self.longest_wait))


PATIENCE = Patience()


@dataclass(frozen=True)
class Announcement:
    """What the answer to a request says of the whole file, beside its own headers."""

    size: int | None = None  # bytes
    digest: Digest | None = None


@dataclass(frozen=True)
class Remote:
    """A file at a URL, and the remedies that its errors name."""

    url: str
    on_refusal: str  # what to do about 401 and 403
    on_absence: str  # what to do about 404
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # never shown to another host
    announcement: Callable[[httpx2.Response], Announcement] = lambda response: Announcement()


class Interrupted(Exception):
    """An attempt failed in a way that another one may not; `asked` is the remote's Retry-After in seconds."""

    def __init__(self, reason: str, asked: float = 0.0) -> None:
        super().__init__(reason)
        self.asked = asked


def download(
    remote: Remote,
    destination: Path,
    digest: Callable[[], Digest | None] = lambda: None,
    patience: Patience = PATIENCE,
) -> None:
    """Publish the file at `remote` as `destination`.

    `digest` gives the publisher's; it is asked for anew when the bytes disagree, because list and file may just
    have been replaced, and the file is then fetched a second time from its beginning before IntegrityError.
    Raises PermissionRefusedError (401, 403), MissingInputError (404) and InputOutputError (no space, another process
    at the same file) at once, RemoteError when `patience` is at its end.
    """
    timeout = httpx2.Timeout(patience.stall)
    with _partial(destination) as partial, httpx2.Client(follow_redirects=True, timeout=timeout) as client:
        for second in (False, True):
            try:
                listed = digest()
                persist(lambda: _transfer(client, remote, partial), remote.url, patience, lambda: partial.held)
                _check(partial, listed, remote.url)
                break
            except IntegrityError:
                partial.clear()
                if second:
                    raise
        with publish(destination) as temporary:
            os.replace(partial.path, temporary)
            partial.note_path.unlink()


def persist(
    attempt: Callable[[], Result], name: str, patience: Patience, held: Callable[[], int] = lambda: 0
) -> Result:
    """What `attempt` gives, tried again when Interrupted; RemoteError names `name` and the last reason.

    `held` counts what has arrived so far; attempts that bring more than was ever held are not counted against
    `patience`, so that a connection that breaks now and then ends no long download.
    """
    furthest, failures = held(), 0
    while True:
        try:
            return attempt()
        except Interrupted as failure:
            failures = 0 if held() > furthest else failures + 1
            furthest = max(furthest, held())
            if failures == patience.attempts:
                raise RemoteError(
                    f"{name}: {failure} ({failures} attempts in a row); check the network and run again"
                ) from None
            pause = patience.before(max(failures, 1) + 1, failure.asked)
            print(f"{name}: {failure}; again in {pause:.1f} s", file=sys.stderr, flush=True)
            time.sleep(pause)


def seconds_asked(headers: Mapping[str, str]) -> float:
    """The wait that a Retry-After header asks for, in seconds or as a date; 0 without a readable one."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return 0.0


def interruption(status: int, headers: Mapping[str, str]) -> Interrupted | None:
    """The failure that a status is, if another attempt may get another one."""
    if status in WORTH_REPEATING or status >= 500:
        return Interrupted(f"HTTP {status}", seconds_asked(headers))
    return None


@dataclass(frozen=True)
class _Note:
    """What the bytes in a partial file belong to."""

    url: str
    etag: str | None  # a strong one
    size: int | None  # bytes of the whole
    digest: Digest | None  # that the remote announced


class _Partial:
    """The bytes that have arrived, and the note of what they belong to."""

    def __init__(self, destination: Path) -> None:
        self.name = destination.name
        self.path = destination.with_name(f".{destination.name.lstrip('.')}.partial")
        self.note_path = self.path.with_name(f"{self.path.name}.json")

    @property
    def held(self) -> int:
        """Bytes."""
        return self.path.stat().st_size

    def note(self) -> _Note | None:
        """The note; None when there is none to be read."""
        try:
            values = json.loads(self.note_path.read_text(encoding="utf-8"))
            return _Note(**{**values, "digest": values["digest"] and Digest(**values["digest"])})
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def resumable(self, url: str) -> _Note | None:
        """The note, if more of the same file can be appended."""
        note, held = self.note(), self.held
        fits = note and note.url == url and note.etag and held > 0 and (note.size is None or held <= note.size)
        return note if fits else None

    def begin(self, note: _Note) -> None:
        """Drop all bytes, and only then say what the next ones belong to."""
        self.clear()
        write_json(self.note_path, asdict(note))

    def append(self, chunks: Iterable[bytes], size: int | None) -> None:
        """Add bytes up to a whole of `size`; IntegrityError when there are more, Interrupted when fewer."""
        held = self.held
        self._check_space((size or held) - held)
        report = _report(self.name, size, held)
        try:
            with open(self.path, "ab") as file:
                for chunk in chunks:
                    held += len(chunk)
                    if size is not None and held > size:
                        raise IntegrityError(f"{self.name}: more than the {size:,} bytes announced; get it again later")
                    file.write(chunk)
                    report(held)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._no_space((size or held) - held) from None
            if told := system_error(error, self.path, written=True):
                raise told from error
            raise
        if size is not None and held < size:
            raise Interrupted(f"ended after {held:,} of {size:,} bytes")

    def clear(self) -> None:
        """Drop all bytes."""
        self.path.write_bytes(b"")

    def _check_space(self, needed: int) -> None:
        if needed > shutil.disk_usage(self.path.parent).free:
            raise self._no_space(needed)

    def _no_space(self, needed: int) -> InputOutputError:
        free = shutil.disk_usage(self.path.parent).free
        return InputOutputError(
            f"{self.path.parent}: no space for {self.name}: needs {needed / MEGABYTE:,.1f} MB more, "
            f"{free / MEGABYTE:,.1f} MB free; free space and run again"
        )


@contextmanager
def _partial(destination: Path) -> Iterator[_Partial]:
    """The partial file of a destination, held against other processes; removed if it stays empty."""
    partial = _Partial(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    with open(partial.path, "ab") as file:
        _lock(file.fileno(), partial.path)
        try:
            yield partial
        finally:
            if partial.path.exists() and not partial.held:
                partial.note_path.unlink(missing_ok=True)
                partial.path.unlink()


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The other process may have published or removed the file between our opening and its letting go.
        ours = path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
    except BlockingIOError:
        ours = False
    if not ours:
        raise InputOutputError(f"{path}: another process downloads this file; wait for it or stop it")


def _transfer(client: httpx2.Client, remote: Remote, partial: _Partial) -> None:
    """One request for what is missing."""
    note = partial.resumable(remote.url)
    if note and note.size == partial.held:
        return
    headers = {**remote.headers, "Accept-Encoding": "identity"}
    if note:
        headers |= {"Range": f"bytes={partial.held}-", "If-Range": note.etag}
    try:
        with client.stream("GET", remote.url, headers=headers) as response:
            refuse_downgrade(response)
            _check_status(response, remote, partial)
            whole = _note_of(response, remote)
            if response.status_code != 206:
                partial.begin(whole)
            elif not _continues(response, whole, note, partial.held):
                partial.clear()
                raise Interrupted("the answer does not continue what has arrived")
            partial.append(response.iter_raw(), whole.size)
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, httpx2.TooManyRedirects, httpx2.LocalProtocolError) as error:
        # The text of a LocalProtocolError may hold a header, and so the token.
        raise RemoteError(f"{remote.url}: cannot be asked for ({type(error).__name__}); check the address") from None
    except httpx2.RequestError as error:
        raise Interrupted(reason_of(error)) from None


def reason_of(error: httpx2.RequestError) -> str:
    """A failed request in words, without its headers."""
    if isinstance(error, httpx2.TimeoutException):
        return "no answer, or none any more (timeout)"
    if isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError):
        return " ".join(str(error).split()) or type(error).__name__
    return type(error).__name__


def refuse_downgrade(response: httpx2.Response) -> None:
    """Raise RemoteError when a redirection led from https to http."""
    hops = [answer.request.url for answer in (*response.history, response)]
    if hops[0].scheme == "https" and any(hop.scheme != "https" for hop in hops):
        raise RemoteError(f"{hops[0]}: redirects from https to {hops[-1].scheme}; check the address and the network")


def _check_status(response: httpx2.Response, remote: Remote, partial: _Partial) -> None:
    status = response.status_code
    if status in (200, 206):
        return
    if status == 416:
        partial.clear()
        raise Interrupted("HTTP 416, nothing after what has arrived")
    if failure := interruption(status, response.headers):
        raise failure
    raise refusal(status, remote.url, remote.on_refusal, remote.on_absence)


def refusal(status: int, url: str, on_refusal: str, on_absence: str) -> SymbertError:
    """Our error for a status that another attempt would get again."""
    if status in (401, 403):
        return PermissionRefusedError(f"{url}: HTTP {status}; {on_refusal}")
    if status in (404, 410):
        return MissingInputError(f"{url}: HTTP {status}; {on_absence}")
    return RemoteError(f"{url}: HTTP {status}; check the address")


def _note_of(response: httpx2.Response, remote: Remote) -> _Note:
    """What an answer says of the whole file; IntegrityError when it says two sizes."""
    announced = remote.announcement(response)
    if response.status_code == 206:
        declared = _range_of(response)[2]
    else:
        declared = int(response.headers["Content-Length"]) if "Content-Length" in response.headers else None
    if None not in (declared, announced.size) and declared != announced.size:
        raise IntegrityError(
            f"{remote.url}: {announced.size:,} bytes announced, {declared:,} sent; "
            "is a proxy or a login page in between?"
        )
    etag = response.headers.get("ETag", "")
    size = declared if announced.size is None else announced.size
    return _Note(remote.url, etag if etag.startswith('"') else None, size, announced.digest)


def _continues(response: httpx2.Response, whole: _Note, note: _Note | None, held: int) -> bool:
    start, end, _ = _range_of(response)
    length = response.headers.get("Content-Length")
    return (
        note is not None
        and (whole.etag, whole.size) == (note.etag, note.size)
        and start == held
        and length in (None, str(end - start + 1))
    )


def _range_of(response: httpx2.Response) -> tuple[int, int, int | None]:
    """First byte, last byte and size of the whole in a 206 answer."""
    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", response.headers.get("Content-Range", ""))
    if match is None:
        return -1, -1, None
    return int(match[1]), int(match[2]), None if match[3] == "*" else int(match[3])


def _check(partial: _Partial, listed: Digest | None, url: str) -> None:
    note = partial.note()
    digest = listed or (note and note.digest)
    if digest:
        digest.check(partial.path, url)


def _report(name: str, size: int | None, held: int) -> Callable[[int], None]:
    if size is None or size < LARGE:
        return lambda held: None
    total = -(-size // MEGABYTE)
    progress = Progress(f"download {name}", total, "MB", start=held // MEGABYTE)
    return lambda held: progress.update(total if held == size else held // MEGABYTE)
