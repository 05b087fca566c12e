"""The hub in small: an interface that names commits, files in git, and large files on another host."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from corpus.sites import Site, git_id, served

COMMIT = "1" * 40
SIGNATURE = "signed-canary"  # in the address that the hub redirects to
TOKEN = "hf_canary"


@dataclass
class HubSite:
    """The hub's host and the host of its large files."""

    host: Site
    store: Site

    def interface(self, kind: str, repository: str, revision: str = "main") -> str:
        """The path at which the commit of a revision is asked for."""
        return f"/api/{kind}s/{repository}/revision/{revision}"

    def path(self, kind: str, repository: str, name: str, commit: str = COMMIT) -> str:
        """The path of a file at a commit."""
        return f"{'/datasets' if kind == 'dataset' else ''}/{repository}/resolve/{commit}/{name}"

    def add_repository(self, kind: str, repository: str) -> None:
        """Have a repository whose branch main is at COMMIT."""
        answer = {"id": repository, "sha": COMMIT, "private": False, "tags": [], "downloads": 0, "siblings": []}
        self.host.bodies[self.interface(kind, repository)] = json.dumps(answer).encode()

    def add_dataset(self, repository: str, files: dict[str, bytes]) -> None:
        """Have a dataset with these files, whose branch main is at COMMIT."""
        self._add_listed("dataset", repository, files)
        for name, body in files.items():
            self.add("dataset", repository, name, body)

    def add_model(self, repository: str, folder: Path) -> None:
        """Have a model with the files of a folder, whose branch main is at COMMIT; its weights are large files."""
        files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
        self._add_listed("model", repository, files)
        for name, body in files.items():
            (self.add_large if name.endswith((".safetensors", ".bin")) else self.add)("model", repository, name, body)

    def _add_listed(self, kind: str, repository: str, files: dict[str, bytes]) -> None:
        self.add_repository(kind, repository)
        answer = json.loads(self.host.bodies[self.interface(kind, repository)])
        answer["siblings"] = [{"rfilename": name, "size": len(body)} for name, body in files.items()]
        self.host.bodies[self.interface(kind, repository, COMMIT)] = json.dumps(answer).encode()

    def add(self, kind: str, repository: str, name: str, body: bytes) -> str:
        """Have a file in git; gives its path."""
        path = self.path(kind, repository, name)
        self.host.bodies[path], self.host.etags[path] = body, f'"{git_id(body)}"'
        return path

    def add_large(self, kind: str, repository: str, name: str, body: bytes) -> str:
        """Have a file in the store, where the hub redirects to; gives its path there."""
        digest = hashlib.sha256(body).hexdigest()
        address = f"{self.store.address}/{digest}?Signature={SIGNATURE}"
        announced = {"X_Linked_Etag": f'"{digest}"', "X_Linked_Size": len(body), "X_Repo_Commit": COMMIT}
        self.host.redirects[self.path(kind, repository, name)] = (address, announced)
        self.store.bodies[f"/{digest}"] = body
        return f"/{digest}"


@contextmanager
def served_hub(monkeypatch) -> Iterator[HubSite]:
    """A hub at HF_ENDPOINT, and a token for it in the environment."""
    with served() as host, served() as store:
        monkeypatch.setenv("HF_ENDPOINT", host.address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield HubSite(host, store)
