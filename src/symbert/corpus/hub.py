"""Questions to the hub, with errors that say what to do.

HF_ENDPOINT is respected. The token comes from HF_TOKEN or the hub's own token file only, and goes to the
hub only: not to the host that it redirects to.
"""

import os
import re
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import build_hf_headers

from symbert.corpus.digests import Digest
from symbert.corpus.download import POLICY, Remote, RetryPolicy, download, retry
from symbert.errors import RemoteError

_COMMIT = re.compile(r"[0-9a-f]{40}")


def endpoint() -> str:
    """The hub's address."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def resolve(kind: str, repository: str, revision: str, policy: RetryPolicy = POLICY) -> str:
    """The commit (40 hexadecimal digits) that a branch or tag of a repository (`kind`: dataset or model) is now.

    A commit is taken as it is, without a question. Raises RemoteError and MissingInputError.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    answer = _repository(kind, repository, revision, policy, expand=["sha"])
    commit = answer and answer.sha
    if not _COMMIT.fullmatch(commit or ""):
        raise RemoteError(
            f"{_page(kind, repository)} at revision {revision}: the answer names no commit; "
            "check HF_ENDPOINT and whether a login page is between"
        )
    return commit


def sizes(kind: str, repository: str, commit: str, policy: RetryPolicy = POLICY) -> dict[str, int]:
    """Bytes of each file of a repository at a commit, by its path; without those whose size the hub does not tell."""
    answer = _repository(kind, repository, commit, policy, files_metadata=True)
    files = (answer and answer.siblings) or []
    return {file.rfilename: file.size for file in files if file.size is not None}


def require_token(kind: str, repository: str) -> None:
    """Raise RemoteError, without a question to the hub, when there is no token for a gated repository."""
    if huggingface_hub.get_token() is None:
        raise RemoteError(f"{repository}: is gated; {_acceptance(kind, repository)}")


def fetch_from_hub(
    kind: str,
    repository: str,
    path: str,
    commit: str,
    destination: Path,
    digest: Digest | None = None,
    policy: RetryPolicy = POLICY,
) -> None:
    """Publish a file of a hub repository as `destination`, checked against `digest` or else the hub's own.

    `huggingface_hub.hf_hub_download` would not do: in 2.4.0 it removes what has arrived when it fails, and cannot go on
    after a kill.
    """
    _check_token()
    remote = Remote(
        huggingface_hub.hf_hub_url(repository, path, repo_type=kind, revision=commit, endpoint=endpoint()),
        on_refusal=_acceptance(kind, repository),
        on_absence=f"see {_page(kind, repository)} for the names of its files",
        headers=build_hf_headers(library_name="symbert"),
    )
    download(remote, destination, lambda: digest or _announced_digest(remote, policy), policy)


def _announced_digest(remote: Remote, policy: RetryPolicy) -> Digest:
    """The digest that the hub announces of a file: the SHA-256 of a large one, git's id of any other."""
    headers = dict(remote.headers)
    try:
        metadata = retry(
            lambda: huggingface_hub.get_hf_file_metadata(remote.url, headers=headers, timeout=policy.stall),
            remote,
            policy,
        )
    except OfflineModeIsEnabled:
        raise RemoteError(f"{remote.url}: HF_HUB_OFFLINE is set; unset it") from None
    etag = metadata.etag or ""
    algorithm = {40: "git", 64: "sha256"}.get(len(etag)) if re.fullmatch(r"[0-9a-f]+", etag) else None
    if algorithm is None:
        raise RemoteError(
            f"{remote.url}: the answer has no digest to check the file by, so it is not the hub's; "
            "is a proxy or a login page in between?"
        )
    return Digest(algorithm, etag)


def _repository(kind: str, repository: str, revision: str, policy: RetryPolicy, **wanted: Any) -> Any:
    """The hub's description of a repository; None when the response is malformed."""
    _check_token()
    name = f"{_page(kind, repository)} at revision {revision}"
    remote = Remote(name, _acceptance(kind, repository), "check the revision in config.yaml")
    interface = huggingface_hub.HfApi(endpoint=endpoint(), library_name="symbert")
    options = {"revision": revision, "repo_type": kind, "timeout": policy.stall, **wanted}
    try:
        return retry(lambda: interface.repo_info(repository, **options), remote, policy)
    except OfflineModeIsEnabled:
        raise RemoteError(f"{name}: HF_HUB_OFFLINE is set; unset it, or give a commit as the revision") from None
    except (ValueError, KeyError, TypeError):
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
        raise RemoteError("HF_TOKEN: has characters that no token has; copy it again")
