"""One file over the network: whole and checked under its name, or not there.

Bytes are collected in the folder `.<name>.<start of the digest>.partial` beside the destination. It survives a failure
and a kill, so that the same command resumes (RFC 9110: Range); a file of another digest has another folder.
"""

import glob
import os
import random
import shutil
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar
from urllib.request import getproxies_environment

import httpx2
from huggingface_hub.errors import OfflineModeIsEnabled

from symbert.console import Progress
from symbert.digests import Digest
from symbert.errors import ConfigError, IntegrityError, MissingInputError, RemoteError, line_of
from symbert.files import MEGABYTE, publish, single_writer, size_of, writing
from symbert.sources import check_address

ATTEMPTS = 6  # in a row that bring nothing new
PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before the second attempt, doubled before each further one
LONGEST_WAIT = 600.0  # seconds that a Retry-After may ask for
STALL = 60.0  # seconds without a byte after which a connection is given up
LARGE = 10**7  # bytes from which on progress is reported
TRANSIENT = (408, 425, 429)  # status codes after which another attempt may succeed; every 5xx is one more
FINAL = (httpx2.InvalidURL, httpx2.UnsupportedProtocol)  # time does not mend an address
UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"  # as OpenSSL writes it
PROXIES = ("http", "https", "socks5", "socks5h")  # schemes
SPEAKING = (httpx2.NetworkError, httpx2.RemoteProtocolError)  # the text of any other error may hold a header: the token

Result = TypeVar("Result")


@dataclass(frozen=True)
class Remote:
    """Something at a URL, and the remedies that its errors name."""

    url: str
    on_refusal: str  # remedy for 401 and 403
    on_absence: str  # remedy for 404
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # never shown to another host


def fetch(remote: Remote, destination: Path, digest: Digest | None = None) -> None:
    """Publish the file at `remote` as `destination`.

    Without the publisher's digest every attempt starts from the beginning. Raises the errors of `retry`, IntegrityError
    for other bytes, which are removed, and InputOutputError when another process downloads the same file.
    """
    hidden = f".{destination.name.lstrip('.')}"
    folder = destination.with_name(f"{hidden}.{digest.value[:12] if digest else 'whole'}.partial")
    partial = folder / "bytes"
    with single_writer(folder), httpx2.Client(follow_redirects=True, timeout=STALL) as client:
        try:
            retry(lambda: _transfer(client, remote, partial, destination.name, digest is not None), remote, partial)
            if digest:
                digest.check(partial, remote.url)
            with publish(destination) as temporary:
                os.replace(partial, temporary)
        except IntegrityError:
            partial.unlink()
            raise
        finally:
            if not size_of(partial):
                shutil.rmtree(folder)
    for outdated in destination.parent.glob(f"{glob.escape(hidden)}.*.partial"):
        shutil.rmtree(outdated)


def check_environment() -> None:
    """ConfigError where an environment variable names a proxy or certificates with which nothing can be reached."""
    for name, value in proxies().items():  # which may have a password
        address = value if "://" in value else f"http://{value}"
        scheme = check_address(name, address, PROXIES).scheme
        try:
            httpx2.URL(address)
        except httpx2.InvalidURL as error:
            raise ConfigError(f"{name}: {error}; correct or unset it") from None
        if scheme.startswith("socks") and not find_spec("socksio"):
            raise ConfigError(f"{name}: a SOCKS proxy needs the package socksio; pip install socksio, or unset it")
    if file := os.environ.get("SSL_CERT_FILE"):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
        except OSError as error:
            fact = f"SSL_CERT_FILE: {file}: {error.strerror}"
            raise ConfigError(f"{fact}; name a file of certificates, or unset it") from None
    elif (folders := os.environ.get("SSL_CERT_DIR")) and not any(map(os.path.isdir, folders.split(os.pathsep))):
        raise ConfigError(f"SSL_CERT_DIR: {folders}: no such folder; name one of certificates, or unset it")


def proxies() -> dict[str, str]:
    """The environment variables that name a proxy which is used, and their values."""
    used = getproxies_environment()
    kinds = {f"{kind}_proxy": used[kind] for kind in ("http", "https", "all") if used.get("no") != "*" and kind in used}
    return {name: value for name, value in os.environ.items() if value and kinds.get(name.lower()) == value}


def retry(attempt: Callable[[], Result], remote: Remote, partial: Path | None = None) -> Result:
    """The result of `attempt`, which is repeated after failures of the network and of the server.

    Attempts after which the file `partial` is larger than ever before are not counted, so that a connection that
    breaks now and then ends no long download. Raises RemoteError (401, 403) and MissingInputError (404) at
    once, RemoteError for other refusals, for what is no address, and after the last attempt.
    """
    failures, largest = 0, (partial and size_of(partial)) or 0
    while True:
        try:
            return attempt()
        except OfflineModeIsEnabled:
            raise RemoteError(f"{remote.url}: HF_HUB_OFFLINE is set; unset it") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason, asked = (isinstance(error, SPEAKING) and line_of(error)) or type(error).__name__, 0.0
            if (response := getattr(error, "response", None)) is not None:
                reason, asked = _refusal(response, remote)
            elif isinstance(error, FINAL):
                raise RemoteError(f"{remote.url}: {reason}; check the address") from None
            elif UNTRUSTED in reason:
                remedy = "name the certificates of your network in SSL_CERT_FILE"
                raise RemoteError(f"{remote.url}: {reason}; {remedy}") from None
        size = (partial and size_of(partial)) or 0
        failures, largest = 0 if size > largest else failures + 1, max(largest, size)
        if failures == ATTEMPTS:
            places = ", ".join(["address", "network", *proxies()])
            raise RemoteError(f"{remote.url}: {reason} ({failures} attempts in a row); check {places}")
        pause = min(PAUSE * 2 ** max(failures - 1, 0), LONGEST_PAUSE) * random.uniform(0.5, 1)
        pause = max(pause, min(asked, LONGEST_WAIT))  # half of it is random, so that jobs do not come at once
        print(f"{remote.url}: {reason}; again in {pause:.1f} s", file=sys.stderr, flush=True)
        time.sleep(pause)


def _refusal(response: httpx2.Response, remote: Remote) -> tuple[str, float]:
    """Why a server refused, and the seconds that it asks to wait; raises for a refusal that time does not mend."""
    status, asked = response.status_code, response.headers.get("Retry-After", "")
    if status in TRANSIENT or status >= 500:
        return f"HTTP {status}", float(asked) if asked.isdecimal() else 0.0
    kind = MissingInputError if status in (404, 410) else RemoteError
    remedies = {401: remote.on_refusal, 403: remote.on_refusal, 404: remote.on_absence, 410: remote.on_absence}
    raise kind(f"{remote.url}: HTTP {status}; {remedies.get(status, 'check the address')}") from None


def refuse_downgrade(response: httpx2.Response) -> None:
    """Raise RemoteError when a redirection led from https to http."""
    hops = [answer.request.url for answer in (*response.history, response)]
    if hops[0].scheme == "https" and any(hop.scheme != "https" for hop in hops):
        raise RemoteError(f"{hops[0]}: redirects from https to {hops[-1].scheme}; check the address and the network")


def _transfer(client: httpx2.Client, remote: Remote, partial: Path, name: str, resumes: bool) -> None:
    """One request for the bytes that are missing, or for all of them unless it `resumes`."""
    held = (resumes and size_of(partial)) or 0
    wanted = {"Range": f"bytes={held}-"} if held else {}
    headers = {**remote.headers, "Accept-Encoding": "identity", **wanted}
    with client.stream("GET", remote.url, headers=headers) as response:
        refuse_downgrade(response)
        if held and response.status_code == 416:
            return  # there are no more bytes; the digest tells whether these are right
        response.raise_for_status()
        if response.status_code != 206:
            held = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {held}-"):
            partial.write_bytes(b"")
            raise httpx2.RemoteProtocolError("the answer does not continue the bytes that have arrived")
        size = held + int(response.headers.get("Content-Length", 0))
        progress = Progress(f"download {name}", -(-size // MEGABYTE), "MB", start=held // MEGABYTE)
        with writing(partial), open(partial, "ab" if held else "wb") as file:
            for chunk in response.iter_raw():
                held += len(chunk)
                file.write(chunk)
                if size >= LARGE:
                    progress.update(progress.total if held == size else held // MEGABYTE)
            file.flush()
            os.fsync(file.fileno())
