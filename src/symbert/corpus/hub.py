"""A published file of a hub repository or of UT1's host, checked against its publisher's digest.

HF_ENDPOINT is respected. The token comes from HF_TOKEN or the hub's own token file only, and goes to the
hub only: not to the host that it redirects to.
"""

import fcntl
import re
import tempfile
from collections.abc import Callable, Container
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub.utils import build_hf_headers

from symbert.corpus.download import STALL, Remote, fetch, retry
from symbert.digests import Digest, listed_digest
from symbert.errors import RemoteError
from symbert.files import copy_file, read_json, write_json
from symbert.sources import BLOCKLIST, BLOCKLIST_CHECKSUMS, check_blocklist_url, endpoint

_COMMIT = re.compile(r"[0-9a-f]{40}")
CHECK_URL = "check corpus.blocklist_url"
NO_ANSWER = "check HF_ENDPOINT and whether a login page is between"


def commit_of(folder: Path, repo_type: str, repository: str, revision: str) -> str:
    """The commit that a revision was when files of `folder` were first asked for, as commit.json there says."""
    record = folder / "commit.json"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".commit.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of several downloads asks, the others wait for its answer
        if not record.is_file():
            commit, today = resolve(repo_type, repository, revision), datetime.now(UTC).date().isoformat()
            write_json(record, {"commit": commit, "endpoint": endpoint(), "resolved": today})
        return read_json(record, {"commit": str})["commit"]


def fetch_blocklist(url: str, output: Path) -> None:
    """Publish UT1's archive, checked against the list of MD5 sums beside it, or that list."""
    check_blocklist_url(url)
    url = url.rstrip("/")
    archive, listing = (Remote(f"{url}/{file.name}", CHECK_URL, CHECK_URL) for file in (BLOCKLIST, BLOCKLIST_CHECKSUMS))
    with tempfile.TemporaryDirectory(prefix="symbert-") as folder:
        listed = Path(folder, "list")
        fetch(listing, listed)
        digest = listed_digest(listed, "md5", BLOCKLIST.name, listing.url)  # a login page is no list
        if output.name == BLOCKLIST.name:
            fetch(archive, output, digest)
        else:
            copy_file(listed, output)


def resolve(repo_type: str, repository: str, revision: str) -> str:
    """The commit (40 hexadecimal digits) that a branch or tag of a repository (`repo_type`: dataset or model) is now.

    A commit is taken as it is, without a question. Raises RemoteError and MissingInputError.
    """
    _check_token()
    if _COMMIT.fullmatch(revision):
        return revision
    commit = _described(repo_type, repository, revision, lambda answer: answer.sha, expand=["sha"])
    if not _COMMIT.fullmatch(commit or ""):
        page = f"{_page(repo_type, repository)} at revision {revision}"
        raise RemoteError(f"{page}: the answer names no commit; {NO_ANSWER}")
    return commit


def listed_files(
    folder: Path, repo_type: str, repository: str, revision: str, read: Container[str]
) -> tuple[str, dict[str, int]]:
    """The commit that a revision of a repository was when it was first asked for, and the sizes of the files there, as
    commit.json and files.json in `folder` say. Those that are `read` at once lie in `folder`, too."""
    commit, record = commit_of(folder, repo_type, repository, revision), folder / "files.json"

    def sizes_of(answer: huggingface_hub.DatasetInfo | huggingface_hub.ModelInfo) -> dict[str, int]:
        return {file.rfilename: file.size or 0 for file in answer.siblings}

    if record.is_file():
        sizes = read_json(record, {str: int})
    elif (sizes := _described(repo_type, repository, commit, sizes_of, files_metadata=True)) is None:
        raise RemoteError(f"{_page(repo_type, repository)}: the answer names no files; {NO_ANSWER}")
    for file in (file for file in sizes if file in read and not (folder / file).is_file()):
        fetch_from_hub(repo_type, repository, file, commit, folder / file)
    if not record.is_file():
        write_json(record, sizes)
    return commit, sizes


def _described(repo_type: str, repository: str, revision: str, part: Callable[[Any], Any], **options: Any) -> Any:
    """A part of what the hub says of a revision of a repository; None where its answer is malformed."""
    remote = Remote(
        f"{_page(repo_type, repository)} at revision {revision}",
        _acceptance(repo_type, repository),
        "check the revision and the name in config.yaml",
    )
    interface = huggingface_hub.HfApi(endpoint=endpoint(), library_name="symbert")
    options |= {"revision": revision, "repo_type": repo_type, "timeout": STALL}
    try:
        return part(retry(lambda: interface.repo_info(repository, **options), remote))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def fetch_from_hub(
    repo_type: str, repository: str, path: str, commit: str, destination: Path, digest: Digest | None = None
) -> None:
    """Publish a file of a hub repository as `destination`, checked against `digest` or else the hub's own.

    `huggingface_hub.hf_hub_download` would not do: 2.4.0 removes an incomplete file when it fails and never resumes the
    download of another process, so that a large part would begin again after every interruption.
    """
    _check_token()
    remote = Remote(
        huggingface_hub.hf_hub_url(repository, path, repo_type=repo_type, revision=commit, endpoint=endpoint()),
        on_refusal=_acceptance(repo_type, repository),
        on_absence=f"see {_page(repo_type, repository)} for the names of its files",
        headers=build_hf_headers(library_name="symbert"),
    )
    fetch(remote, destination, digest or _announced_digest(remote))


def _announced_digest(remote: Remote) -> Digest:
    """The digest that the hub announces of a file: the SHA-256 of a large one, git's id of any other."""
    options = {"headers": dict(remote.headers), "timeout": STALL}
    etag = retry(lambda: huggingface_hub.get_hf_file_metadata(remote.url, **options), remote).etag or ""
    algorithm = {40: "git", 64: "sha256"}.get(len(etag)) if re.fullmatch(r"[0-9a-f]+", etag) else None
    if algorithm is None:
        raise RemoteError(f"{remote.url}: the answer has no digest; is a proxy or a login page in between?")
    return Digest(algorithm, etag)


def _page(repo_type: str, repository: str) -> str:
    return f"{endpoint()}/{'datasets/' if repo_type == 'dataset' else ''}{repository}"


def _acceptance(repo_type: str, repository: str) -> str:
    state = "none is set" if huggingface_hub.get_token() is None else "the one that is set was not accepted"
    return f"accept the terms on {_page(repo_type, repository)} and set HF_TOKEN ({state})"


def _check_token() -> None:
    """Refuse a token that cannot stand in a header; the client's own message would show it."""
    token = huggingface_hub.get_token() or ""
    if not (token.isascii() and token.isprintable()):
        raise RemoteError("HF_TOKEN: has characters that no token has; copy it again")
