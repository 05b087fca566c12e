"""The commit that is checked out, and whether files differ from it."""

import shutil
import subprocess

import pytest

from symbert.provenance import commit_of


@pytest.mark.skipif(shutil.which("git") is None, reason="no git on the path")
def test_the_commit_is_told_and_whether_files_differ_from_it(tmp_path, monkeypatch):
    def git(*words: str) -> str:
        named = ["git", "-C", tmp_path, "-c", "user.name=test", "-c", "user.email=test@localhost"]
        return subprocess.run([*named, *words], capture_output=True, text=True, check=True).stdout.strip()

    (tmp_path / "file").write_text("one")
    for words in (["init", "--quiet"], ["add", "file"], ["commit", "--quiet", "-m", "one"]):
        git(*words)
    (tmp_path / "results").write_text("files that Git does not know change nothing")
    assert commit_of(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "file").write_text("two")
    assert commit_of(tmp_path) == f"{git('rev-parse', 'HEAD')}, modified"
    (tmp_path / "copy").mkdir()
    assert "not known" in commit_of(tmp_path / "copy"), "a copy in another repository does not have its commit"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path) == "not known: no Git repository, or no git"
