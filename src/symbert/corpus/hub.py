"""Downloads over the network, with errors that say what to do."""

import os
import shutil
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from symbert.errors import ConfigError, MissingInputError, PermissionRefusedError, RemoteError, SymbertError

TIMEOUT = 60  # seconds without a byte
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")


def fetch_from_hub(kind: str, repository: str, path: str, revision: str, gated: bool, destination: Path) -> None:
    """Download a file of a hub repository (`kind`: dataset or model) to `destination`.

    HF_ENDPOINT is respected; the token comes from HF_TOKEN or the hub's own token file only. The hub's
    working files lie in a folder beside `destination`, which is removed.
    """
    import huggingface_hub
    from huggingface_hub.errors import HTTPError

    if gated and huggingface_hub.get_token() is None:
        raise _refusal(kind, repository, "asks for terms to be accepted, and there is no token")
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".hub-") as folder:
        try:
            fetched = huggingface_hub.hf_hub_download(
                repository, path, repo_type=kind, revision=revision, local_dir=folder, endpoint=_endpoint()
            )
        except (HTTPError, OSError, ValueError) as error:
            raise _explain(error, kind, repository, path, revision) from None
        shutil.move(fetched, destination)


def fetch_url(url: str, destination: Path) -> None:
    """Download a URL to `destination`; https only, except from this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS):
        raise ConfigError(f"corpus.blocklist_url: {url!r} is not https; the list decides what is trained on")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response, open(destination, "wb") as file:
            shutil.copyfileobj(response, file)
    except urllib.error.HTTPError as error:
        kind = {401: PermissionRefusedError, 403: PermissionRefusedError, 404: MissingInputError}
        raise kind.get(error.code, RemoteError)(f"{url}: HTTP {error.code}; check corpus.blocklist_url") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise RemoteError(f"{url}: {error}; check the network and run again") from None


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def _page(kind: str, repository: str) -> str:
    return f"{_endpoint()}/{'datasets/' if kind == 'dataset' else ''}{repository}"


def _refusal(kind: str, repository: str, reason: str) -> PermissionRefusedError:
    return PermissionRefusedError(f"{_page(kind, repository)} {reason}; accept the terms on that page and set HF_TOKEN")


def _explain(error: Exception, kind: str, repository: str, path: str, revision: str) -> SymbertError:
    """Our error for one of the hub client's, by the HTTP status behind it, if there was an answer."""
    status = _status(error)
    if status in (401, 403):
        return _refusal(kind, repository, f"refuses {path} (HTTP {status})")
    if status == 404:
        return MissingInputError(f"{_page(kind, repository)}: no {path} at revision {revision}; check both names")
    reason = f"HTTP {status}" if status else " ".join(str(error.__cause__ or error).split())
    return RemoteError(f"{_page(kind, repository)}: {path} not downloaded ({reason}); check the network and run again")


def _status(error: BaseException | None) -> int | None:
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return response.status_code
        error = error.__cause__
    return None
