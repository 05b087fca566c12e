"""What made a report is told as it is: the commit that is checked out, versions, hashes, and the runs' machines."""

import json
import platform
import shutil
import subprocess

import pytest
import torch

from symbert.report.provenance import commit_of, provenance_table, version_of
from symbert.report.sessions import read_pretrained
from symbert.settings import hash_of


def facts(settings=(), files=()):
    rows = provenance_table(list(settings), read_pretrained(list(files), [])).frame.to_dict("records")
    return {row["what"]: row["value"] for row in rows}


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


def test_a_copy_inside_another_repository_does_not_have_its_commit(repository):
    folder, _ = repository
    (folder / "copy").mkdir()
    assert commit_of(folder / "copy") == "not known: the project is a copy without its Git repository"


def test_without_git_the_commit_is_not_known(tmp_path, monkeypatch):
    assert commit_of(tmp_path) == "not known: no Git repository, or no git"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path) == "not known: no Git repository, or no git"


def test_versions_are_those_installed_and_hashes_those_of_the_files(settings_file):
    file = settings_file()
    told = facts([file])
    assert f"torch {torch.__version__}" in told["packages"] and "absent" not in told["packages"]
    assert told["settings of report"] == f"hash {hash_of(json.loads(file.read_text()))}"
    assert platform.python_version() in told["system"] and platform.node() in told["written"]
    assert version_of("no-such-package") == "absent"


def test_the_runs_machines_are_named_once(pretrained):
    files = [*pretrained("original", host="a"), *pretrained("shared", host="b", sessions=3)]
    told = facts(files=files)
    assert told["pre-training: runs"] == "2, in 4 sessions"
    assert (told["pre-training: host"], told["pre-training: device"]) == ("a, b", "cpu")


def test_imported_scores_have_no_runs(settings_file):
    assert not [key for key in facts([settings_file()]) if key.startswith("pre-training")]
