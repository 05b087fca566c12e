"""The commit that is checked out, and whether files differ from it."""

import shutil
import subprocess

import pytest

from symbert.provenance import commit_of


@pytest.fixture
def repository(tmp_path):
    """A folder under Git with one committed file, and its commit."""
    if shutil.which("git") is None:
        pytest.skip("no git on the path")
    folder = tmp_path / "a project"
    folder.mkdir()
    (folder / "file").write_text("one")
    named = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["init", "--quiet"], ["add", "file"], [*named, "commit", "--quiet", "-m", "one"]):
        subprocess.run(["git", "-C", folder, *command], check=True)
    commit = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return folder, commit.stdout.strip()


def test_the_commit_is_told_and_whether_files_differ_from_it(repository):
    folder, commit = repository
    assert commit_of(folder) == commit and len(commit) == 40
    (folder / "results").write_text("files that Git does not know change nothing")
    assert commit_of(folder) == commit
    (folder / "file").write_text("two")
    assert commit_of(folder) == f"{commit}, modified"
    (folder / "copy").mkdir()
    assert "not known" in commit_of(folder / "copy"), "a copy in another repository does not have its commit"


def test_without_git_the_commit_is_not_known(tmp_path, monkeypatch):
    assert commit_of(tmp_path) == "not known: no Git repository, or no git"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path) == "not known: no Git repository, or no git"
