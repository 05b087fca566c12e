"""File times of results: a copy without them (`cp -r`) must not run anything again, nor a clock that was ahead end all.

Snakemake takes an output that is older than its input for outdated. A file beside the results says when all was up to
date. Where it does not have the time that it tells of, the results were copied without their times, which then mean
nothing: all files are given one time.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from symbert.files import read_json_or_empty, write_json

MARK = "complete.json"
SKEW = 60  # seconds by which the clocks of a file server and of its users may differ


def mark_complete(results: Path) -> None:
    """Say that everything in a folder of results is up to date."""
    now = int(time.time())  # whole seconds, which every archive keeps
    write_json(results / MARK, {"time": now})
    os.utime(results / MARK, (now, now))


def unmark(results: Path) -> None:
    """Before something is made anew, until everything is."""
    (results / MARK).unlink(missing_ok=True)


def mend_times(results: Path, *others: Path) -> bool:
    """Give all files of complete results, and of the folders beside them, one time where a copy has lost theirs.

    Whether it did so. Files that may not be changed stay as they are.
    """
    mark = results / MARK
    then = read_json_or_empty(mark).get("time")
    if not isinstance(then, int) or int(mark.stat().st_mtime) == then:
        return False
    now = int(time.time())
    for folder in dict.fromkeys([results, *others]):
        for path in folder.rglob("*"):
            if _may_change(path):
                os.utime(path, (now, now))
    mark_complete(results)
    return True


def recall_times(*folders: Path) -> int:
    """Give files whose times lie ahead of the clock, by more than SKEW, the present one; returns how many had such.

    The clock was ahead when they were written. By itself Snakemake then refuses all that is made of them, until the
    clock has reached their times.
    """
    now, count = time.time(), 0
    for directory, _, names in (entry for folder in dict.fromkeys(folders) for entry in os.walk(folder)):
        for path in map(Path(directory).joinpath, names):
            with suppress(FileNotFoundError):  # another start is at work
                if path.lstat().st_mtime > now + SKEW and _may_change(path):
                    os.utime(path, (now, now))
                    count += 1
    return count


def _may_change(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and os.access(path, os.W_OK)
