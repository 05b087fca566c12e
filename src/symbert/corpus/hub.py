"""What is asked of the hub and of UT1's host, with errors that say what to do.

HF_ENDPOINT is respected. The token comes from HF_TOKEN or the hub's own token file only, and goes to the
hub only: not to the host that it redirects to.
"""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import build_hf_headers

from symbert.corpus.digests import Digest
from symbert.corpus.download import (
    PATIENCE,
    Announcement,
    Interrupted,
    Patience,
    Remote,
    download,
    interruption,
    persist,
    reason_of,
    refusal,
)
from symbert.errors import ConfigError, PermissionRefusedError, RemoteError

LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def endpoint() -> str:
    """The hub's address."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def resolve(kind: str, repository: str, revision: str, patience: Patience = PATIENCE) -> str:
    """The commit (40 hexadecimal digits) that a branch or tag of a repository (`kind`: dataset or model) is now.

    A commit is taken as it is, without asking. Raises PermissionRefusedError, MissingInputError and RemoteError.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    _check_token()
    name = f"{_page(kind, repository)} at revision {revision}"
    return persist(lambda: _ask_commit(kind, repository, revision, name, patience), name, patience)


def sizes(kind: str, repository: str, commit: str, patience: Patience = PATIENCE) -> dict[str, int]:
    """Bytes of each file of a repository at a commit, by its path; without those whose size the hub does not tell."""
    _check_token()
    name = f"{_page(kind, repository)} at revision {commit}"
    answer = persist(lambda: _ask(kind, repository, commit, name, patience, files_metadata=True), name, patience)
    files = (answer and answer.siblings) or []
    return {file.rfilename: file.size for file in files if file.size is not None}


def require_token(kind: str, repository: str) -> None:
    """Raise PermissionRefusedError, without asking the hub, when there is no token for a gated repository."""
    if huggingface_hub.get_token() is None:
        raise PermissionRefusedError(f"{repository}: is gated; {_acceptance(kind, repository)}")


def fetch_from_hub(
    kind: str,
    repository: str,
    path: str,
    commit: str,
    destination: Path,
    digest: Digest | None = None,
    patience: Patience = PATIENCE,
) -> None:
    """Publish a file of a hub repository as `destination`, checked against `digest` or else the hub's own."""
    _check_token()
    remote = Remote(
        huggingface_hub.hf_hub_url(repository, path, repo_type=kind, revision=commit, endpoint=endpoint()),
        on_refusal=_acceptance(kind, repository),
        on_absence=f"see {_page(kind, repository)} for the names of its files",
        headers=build_hf_headers(library_name="symbert"),
        announcement=announcement,
    )
    download(remote, destination, lambda: digest, patience)


def announcement(response: httpx2.Response) -> Announcement:
    """Size and digest that the hub announces with a file; RemoteError when there are none.

    For a large file the answer before the redirection carries its SHA-256 (X-Linked-Etag); the ETag of any
    other is git's id of it. https://huggingface.co/docs/huggingface_hub/package_reference/file_download
    """
    answers = (*response.history, response)
    for answer in answers:
        if re.fullmatch(r'"?[0-9a-f]{64}"?', answer.headers.get("X-Linked-Etag", "")):
            digest = Digest("sha256", answer.headers["X-Linked-Etag"].strip('"'))
            size = answer.headers.get("X-Linked-Size", "")
            return Announcement(int(size) if size.isdecimal() else None, digest)
    etag = response.headers.get("ETag", "").removeprefix("W/").strip('"')
    if not _COMMIT.fullmatch(etag):
        raise RemoteError(
            f"{answers[0].request.url}: the answer has no digest to check the file by, so it is not the hub's; "
            "is a proxy or a login page in between?"
        )
    return Announcement(digest=Digest("git", etag))


def check_secure(url: str) -> None:
    """Refuse a URL of the blocklist that is not https, except on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS):
        raise ConfigError(f"corpus.blocklist_url: {url!r} is not https; the list decides what is trained on")


def blocklist_remote(url: str) -> Remote:
    """A file beside UT1's archive."""
    remedy = "check corpus.blocklist_url"
    return Remote(url, on_refusal=remedy, on_absence=remedy)


def _ask_commit(kind: str, repository: str, revision: str, name: str, patience: Patience) -> str:
    """One question for the commit that a revision is."""
    answer = _ask(kind, repository, revision, name, patience, expand=["sha"])
    commit = answer and answer.sha
    if not _COMMIT.fullmatch(commit or ""):
        raise RemoteError(f"{name}: the answer names no commit; check HF_ENDPOINT and whether a login page is between")
    return commit


def _ask(kind: str, repository: str, revision: str, name: str, patience: Patience, **wanted: Any) -> Any:
    """One question to the hub's interface, None when the answer is none; Interrupted when another one may have one."""
    interface = huggingface_hub.HfApi(endpoint=endpoint(), library_name="symbert")
    try:
        return interface.repo_info(repository, revision=revision, repo_type=kind, timeout=patience.stall, **wanted)
    except HfHubHTTPError as error:
        status, headers = error.response.status_code, error.response.headers
        raise (
            interruption(status, headers)
            or refusal(status, name, _acceptance(kind, repository), "check the revision in config.yaml")
        ) from None
    except OfflineModeIsEnabled:
        raise RemoteError(f"{name}: HF_HUB_OFFLINE is set; unset it, or give a commit as the revision") from None
    except httpx2.RequestError as error:
        raise Interrupted(reason_of(error)) from None
    except (ValueError, KeyError, TypeError):  # the client's reading of an answer that is none
        return None


def _page(kind: str, repository: str) -> str:
    return f"{endpoint()}/{'datasets/' if kind == 'dataset' else ''}{repository}"


def _acceptance(kind: str, repository: str) -> str:
    state = "none is set" if huggingface_hub.get_token() is None else "the one that is set was not accepted"
    return f"accept the terms on {_page(kind, repository)} and set HF_TOKEN ({state})"


def _check_token() -> None:
    """Refuse a token that cannot stand in a header; the client's own message would show it."""
    token = huggingface_hub.get_token() or ""
    if not (token.isascii() and token.isprintable()):
        raise PermissionRefusedError("HF_TOKEN: has characters that no token has; copy it again")
