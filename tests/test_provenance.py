"""The commit that is checked out, and whether files differ from it."""

import shutil
import subprocess

import pytest

from symbert.provenance import commit_of


def test_the_commit_is_told_and_whether_files_differ_from_it(tmp_path, monkeypatch):
    if shutil.which("git") is None:
        pytest.skip("no git on the path")
    folder = tmp_path / "a project"
    folder.mkdir()
    (folder / "file").write_text("one")

    def git(*words: str) -> str:
        named = ["git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@localhost"]
        return subprocess.run([*named, *words], capture_output=True, text=True, check=True).stdout.strip()

    for words in (["init", "--quiet"], ["add", "file"], ["commit", "--quiet", "-m", "one"]):
        git(*words)
    (folder / "results").write_text("files that Git does not know change nothing")
    assert commit_of(folder) == git("rev-parse", "HEAD")
    (folder / "file").write_text("two")
    assert commit_of(folder) == f"{git('rev-parse', 'HEAD')}, modified"
    (folder / "copy").mkdir()
    assert "not known" in commit_of(folder / "copy"), "a copy in another repository does not have its commit"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(folder) == "not known: no Git repository, or no git"
