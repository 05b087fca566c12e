"""`symbert download`: a published file, into the folder of its repository and revision, or of UT1's address."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from symbert.digests import FEWER_PARTS, listed_digest
from symbert.errors import MissingInputError
from symbert.sources import DATASET
from symbert.steps import RESULTS, SETTINGS, Step, read_step


class Repository(Step, frozen=True):
    """Files of a repository of the hub at a revision. The commit to which it resolves is asked for once, and kept
    beside them in commit.json."""

    repo_type: Literal["dataset", "model"]
    repository: str  # owner/name
    revision: str

    prefix: ClassVar[str] = ""  # of the folder's name

    @property
    def folder(self) -> str:
        """Where the files lie, each at its path in the repository."""
        return f"{RESULTS}/published/{self.prefix}{self.repository.replace('/', '--')}-{self.key}"


class TextRepository(Repository, frozen=True):
    """A dataset of the hub whose files are parts, which go when they are read."""

    prefix: ClassVar[str] = f"{DATASET}--"


class Ut1(Step, frozen=True):
    """UT1's archive and the list of its digest."""

    place: ClassVar[str] = "published/ut1"

    url: str  # of their folder


def download(
    file: Annotated[Path, "file to write, below results/published"],
    /,
    checksums: Annotated[Path | None, "the publisher's list of digests"] = None,
) -> None:
    """Download a file below results/published, and resume where an earlier download of it stopped.

    It is published when its digest is right: that in the list `checksums` of its publisher, or else the hub's own.
    MissingInputError, RemoteError and IntegrityError name the file and the remedy.
    """
    from symbert.corpus import hub  # imports huggingface_hub
    from symbert.corpus.download import check_environment

    folder = next((folder for folder in file.parents if (folder / SETTINGS).is_file()), None)
    if folder is None:
        raise MissingInputError(f"{file.parent}: no {SETTINGS}; let snakemake run this command")
    check_environment()
    origin = read_step(folder, Repository | TextRepository | Ut1)
    if isinstance(origin, Ut1):
        hub.fetch_blocklist(origin.url, file)
        return
    digest = listed_digest(checksums, "sha256", file.name, remedy=FEWER_PARTS) if checksums else None
    commit = hub.commit_of(folder, origin.repo_type, origin.repository, origin.revision)
    path = str(file.relative_to(folder))
    hub.fetch_from_hub(origin.repo_type, origin.repository, path, commit, file, digest)
