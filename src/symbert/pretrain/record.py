"""What a run says of its sessions: provenance.json, on what each was computed; status.json, how the run stands.

Neither is an input of any rule. status.json is for whoever cannot see a run's exit code (`torchrun` hides it).
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from symbert.errors import DivergedError, PreemptedError, SymbertError, explain
from symbert.files import read_json, write_json

# The facts of a session that may change the last bits.
SOFT = ("device", "processor", "threads", "processes", "micro_batch_size", "shard_parameters", "versions")

FAILURES = ("failed", "diverged")


def read_sessions(path: Path) -> list[dict[str, Any]]:
    """The sessions so far, the first one first."""
    return read_json(path, {"sessions": [dict]})["sessions"]


def open_session(path: Path, facts: dict[str, Any]) -> None:
    """Add a session; one line on stderr for each soft fact that differs from the session before."""
    sessions = read_sessions(path) if path.is_file() else []
    if sessions:
        before, now = _soft_facts(sessions[-1]), _soft_facts(facts)
        for key in sorted(before.keys() | now.keys()):
            old, new = before.get(key, "absent"), now.get(key, "absent")
            if old != new:
                print(
                    f"warning: {path}: {key}: {old} → {new} since the session before; the bits of the result may "
                    "differ from those of an uninterrupted run",
                    file=sys.stderr,
                )
    write_json(path, {"sessions": [*sessions, {**facts, "started": _now()}]})


def close_session(path: Path, **measured: Any) -> None:
    """Add the measurements so far, and the time, to the newest session; may be called again and again."""
    *before, newest = read_sessions(path)
    write_json(path, {"sessions": [*before, {**newest, **measured, "until": _now()}]})


def _soft_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The soft facts, the version of each package by itself."""
    soft = {key: facts[key] for key in SOFT if key in facts}
    versions = soft.pop("versions", {})
    return soft | {f"versions.{package}": version for package, version in versions.items()}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@contextmanager
def status_written(path: Path, step: Callable[[], int], leader: bool = True) -> Iterator[None]:
    """Write to `path` how the session ended: state, step, exit code, reason, file.

    `step` gives the completed steps. Of several processes the leader writes, the others only why they failed; the
    first failure of a session stays, because the rest fail in consequence.
    """
    if leader and _read_state(path) in FAILURES:  # of an earlier session
        path.unlink()
    try:
        yield
    except BaseException as error:
        kinds = {PreemptedError: "preempted", DivergedError: "diverged"}
        state = next((state for kind, state in kinds.items() if isinstance(error, kind)), "failed")
        if leader or state in FAILURES:
            with suppress(OSError, SymbertError):  # a full disk may be the failure; the user shall see that one
                if _read_state(path) not in FAILURES:
                    _write_status(path, state, step(), *explain(error))
        raise
    if leader:
        _write_status(path, "done", step(), 0, None)


def write_running(path: Path, step: int) -> None:
    """Write to `path` that the run goes on, with so many steps completed."""
    _write_status(path, "running", step, None, None)


def _read_state(path: Path) -> str | None:
    return read_json(path, {"state": str})["state"] if path.is_file() else None


def _write_status(path: Path, state: str, step: int, exit_code: int | None, reason: str | None) -> None:
    named = (reason or "").partition(": ")[0]
    file = named if named and Path(named).exists() else None
    values: dict[str, Any] = {"state": state, "step": step, "exit_code": exit_code, "reason": reason, "file": file}
    write_json(path, values)
