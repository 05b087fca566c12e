"""Web servers on this machine that misbehave when told to, and count what they send."""

import hashlib
import http.server
import re
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path

PIECE = 1 << 14  # bytes written at once


def git_id(body: bytes) -> str:
    """The name that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


@dataclass
class Asked:
    """A request, and how many bytes of body it got."""

    path: str
    headers: dict[str, str]  # names in small letters
    method: str = "GET"
    sent: int = 0


@dataclass
class Site:
    """What a server has; `faults` are used up one per request to their path, then the answers are right."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)  # beside the usual one, a hash of the body
    redirects: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)  # path to URL and more headers
    faults: dict[str, Iterator[Callable]] = field(default_factory=lambda: defaultdict(lambda: iter(())))
    asked: list[Asked] = field(default_factory=list)
    address: str = ""

    def fail(self, path: str, *faults: Callable, always: bool = False) -> None:
        """Have the next requests to `path` go wrong: one by one, the last for ever if `always`."""
        self.faults[path] = chain(faults, repeat(faults[-1])) if always else iter(faults)

    def sent(self, path: str) -> int:
        """Bytes of body sent for a path so far."""
        return sum(asked.sent for asked in self.asked if asked.path == path)

    def count(self, path: str) -> int:
        """Requests for the content of a path so far."""
        return sum(asked.path == path and asked.method == "GET" for asked in self.asked)


class Answer(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked = Asked(path, {name.lower(): value for name, value in self.headers.items()}, self.command)
        self.site.asked.append(self.asked)
        with suppress(ConnectionError):  # the other side may stop listening
            next(self.site.faults[path], right)(self, path)

    do_HEAD = do_GET

    def head(self, status: int, **headers: object) -> None:
        """Send status and headers; Content_Length is Content-Length."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def body(self, data: bytes) -> None:
        """Send bytes, if any were asked for, and count them."""
        if self.command == "HEAD":
            return
        for start in range(0, len(data), PIECE):
            self.wfile.write(data[start : start + PIECE])
            self.asked.sent += len(data[start : start + PIECE])
        self.wfile.flush()

    def etag(self, path: str) -> str:
        return self.site.etags.get(path, f'"{hashlib.md5(self.site.bodies[path]).hexdigest()}"')

    def log_message(self, *arguments) -> None:
        pass


def right(answer: Answer, path: str) -> None:
    """As RFC 9110 has it: the rest for a range of the same version, the whole otherwise."""
    announce(answer, path, answer.body)


def announce(answer: Answer, path: str, send: Callable[[bytes], None]) -> None:
    """The right status and headers, and then `send` of what should follow."""
    site = answer.site
    if path in site.redirects:
        url, headers = site.redirects[path]
        answer.head(302, Location=url, Content_Length=0, **headers)
        return
    if path not in site.bodies:
        answer.head(404, Content_Length=0)
        return
    whole, start = site.bodies[path], 0
    wanted = re.fullmatch(r"bytes=(\d+)-", answer.asked.headers.get("range", ""))
    if wanted:
        start = int(wanted[1])
    if start and start >= len(whole):
        answer.head(416, Content_Range=f"bytes */{len(whole)}", Content_Length=0)
        return
    more = {"Content_Range": f"bytes {start}-{len(whole) - 1}/{len(whole)}"} if start else {}
    answer.head(206 if start else 200, ETag=answer.etag(path), Content_Length=len(whole) - start, **more)
    send(whole[start:])


def broken(after: int, end: Callable[[Answer], None]) -> Callable:
    """The right answer up to that many bytes, and then `end`."""

    def send(answer: Answer, rest: bytes) -> None:
        answer.body(rest[:after])
        end(answer)
        answer.close_connection = True

    return lambda answer, path: announce(answer, path, lambda rest: send(answer, rest))


def drop(after: int) -> Callable:
    """Close the connection after that many bytes."""
    return broken(after, lambda answer: None)


def stall(after: int, seconds: float) -> Callable:
    """Go silent after that many bytes."""
    return broken(after, lambda answer: time.sleep(seconds))


def reset(after: int) -> Callable:
    """Break the connection off after that many bytes."""

    def end(answer: Answer) -> None:
        time.sleep(0.05)  # a reset takes back what the other side has not read yet
        answer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        answer.connection.close()

    return broken(after, end)


def status(code: int, body: bytes = b"oops", **headers: object) -> Callable:
    """An error page."""

    def fault(answer: Answer, path: str) -> None:
        answer.head(code, Content_Length=len(body), **headers)
        answer.body(body)

    return fault


def page(body: bytes = b"<html>log in</html>") -> Callable:
    """A page that is not the file, with status 200."""
    return status(200, body, Content_Type="text/html")


def redirect(url: str, code: int = 302) -> Callable:
    """The file is said to be at another address."""
    return status(code, b"", Location=url)


def continued(after: int, lie: Callable) -> Callable:
    """Break off after that many bytes, and answer with `lie` whoever asks for the rest."""
    return lambda answer, path: (lie if "range" in answer.asked.headers else drop(after))(answer, path)


def changed(change: Callable[[bytes], bytes]) -> Callable:
    """Another body under the name and ETag of the right one; the whole, whatever was asked for."""

    def fault(answer: Answer, path: str) -> None:
        body = change(answer.site.bodies[path])
        status(200, body, ETag=answer.etag(path))(answer, path)

    return fault


start_over = changed(bytes)  # ranges are not known here


def flip(position: int) -> Callable:
    """One bit of the file is another one."""
    return changed(lambda body: bytes([*body[:position], body[position] ^ 1, *body[position + 1 :]]))


def cut(by: int) -> Callable:
    """A shorter body, declared as if it were the whole."""
    return changed(lambda body: body[:-by])


def partial(make: Callable[[bytes, int], tuple[int, bytes]], etag: str | None = None) -> Callable:
    """206: from the file and the number of bytes that are missing, the place that the answer names and its body."""

    def fault(answer: Answer, path: str) -> None:
        whole = answer.site.bodies[path]
        missing = len(whole) - int(re.fullmatch(r"bytes=(\d+)-", answer.asked.headers["range"])[1])
        start, body = make(whole, missing)
        span = f"bytes {start}-{start + missing - 1}/{len(whole)}"
        status(206, body, ETag=etag or answer.etag(path), Content_Range=span)(answer, path)

    return fault


# As many bytes as are missing, but from the file's beginning, said and not said; the right place, with fewer bytes
# than are missing; the rest of another version of the file.
honest_from_zero = partial(lambda whole, missing: (0, whole[:missing]))
lying_from_zero = partial(lambda whole, missing: (len(whole) - missing, whole[:missing]))
mislaid = partial(lambda whole, missing: (len(whole) - missing, whole[:10]))
other_version = partial(lambda whole, missing: (len(whole) - missing, bytes(missing)), '"another"')


def chunked(extra: bytes = b"") -> Callable:
    """No Content-Length, and `extra` bytes at the end."""

    def fault(answer: Answer, path: str) -> None:
        body = answer.site.bodies[path] + extra
        answer.head(200, Transfer_Encoding="chunked", ETag=answer.etag(path))
        answer.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        answer.asked.sent += len(body)

    return fault


@contextmanager
def served() -> Iterator[Site]:
    """A site, while it is served."""
    site = Site()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Answer,), {"site": site}))
    server.daemon_threads, server.block_on_close = True, False
    server.handle_error = lambda *_: None  # a client that hangs up is no news
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def closed_port() -> Iterator[str]:
    """An address at which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def wait_until_asleep(process: int, begun: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something has begun and the process sleeps in a system call.

    Python loses no signal there; one that comes just before the call is heeded when the call returns, not earlier.
    """
    until, asleep = time.monotonic() + seconds, 0
    while asleep < 10 and time.monotonic() < until:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if begun() and state == "S" else 0
        time.sleep(0.02)
    assert asleep == 10


def hurry(monkeypatch, stall: float, pause: float = 0.01) -> None:
    """Let downloads wait for seconds where they wait for minutes."""
    changes = {"ATTEMPTS": 3, "PAUSE": pause, "LONGEST_PAUSE": 2 * pause, "LONGEST_WAIT": 50 * pause, "STALL": stall}
    for name, value in changes.items():
        monkeypatch.setattr(f"symbert.corpus.download.{name}", value)
