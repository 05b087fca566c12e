"""Which commit of this project computes."""

import subprocess
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def commit_of(folder: Path) -> str:
    """The Git commit that is checked out in `folder`, and whether files differ from it; or why it is not known."""
    try:
        top, commit = _git(folder, "rev-parse", "--show-toplevel", "HEAD").splitlines()
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "not known: no Git repository, or no git"
    if Path(top) != folder.resolve():
        return "not known: the project is a copy without its Git repository"
    return f"{commit}, modified" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
