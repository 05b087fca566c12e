"""Who works in a folder, as its lease tells without its lock."""

import platform
import time
from pathlib import Path

from symbert.experiment.reading import Values, facts
from symbert.files import is_running

UNTOUCHED = 3600  # seconds that a file was not written to: a process of another machine may be at it before


def holder(directory: Path) -> str | None:
    """Who works in a folder, by its lease; None when that process is no more.

    Of a process on another machine nothing is known but its lease, so there the state says whether it runs.
    """
    lease = facts(directory / "lock")
    if not isinstance(lease.get("process"), int) or "host" not in lease:
        return None
    if lease["host"] != platform.node():
        return holder_elsewhere(directory)
    return _named(lease) if is_running(lease["process"]) else None


def holder_elsewhere(directory: Path) -> str | None:
    """Who seems to work in a folder from another machine, whose lock may not be seen here.

    A run says so itself; elsewhere something was written within the hour.
    """
    lease, status = facts(directory / "lock"), facts(directory / "state/status.json")
    if lease.get("host") in (None, platform.node()):
        return None
    seems_alive = status.get("state") == "running" if status else not is_old(directory / "lock", *directory.glob("*/*"))
    return _named(lease) if seems_alive else None


def is_old(*paths: Path) -> bool:
    """Whether none of these was written to within the hour."""
    return all(time.time() - path.lstat().st_mtime > UNTOUCHED for path in paths)


def _named(lease: Values) -> str:
    job = f", Slurm job {lease['slurm_job']}" if lease.get("slurm_job") else ""
    return f"process {lease.get('process')} on {lease['host']}{job}"
