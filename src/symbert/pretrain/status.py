"""status.json: how a run stands or ended, for whoever cannot see its exit code (`torchrun` hides it)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from symbert.errors import DivergedError, PreemptedError, SymbertError, explain
from symbert.files import read_json, write_json

FAILURES = ("failed", "diverged")


@contextmanager
def reported(path: Path, step: Callable[[], int], leader: bool = True) -> Iterator[None]:
    """Write to `path` how the session ended: state, step, exit code, reason, file.

    `step` gives the completed steps. Of several processes the leader writes, the others only why they failed; the
    first failure of a session stays, because the rest fail in consequence.
    """
    if leader and _told(path) in FAILURES:  # by an earlier session
        path.unlink()
    try:
        yield
    except BaseException as error:
        state = _state_of(error)
        if leader or state in FAILURES:
            with suppress(OSError, SymbertError):  # a full disk may be the failure; it shall be the one that is told
                _write_failure(path, state, step(), error)
        raise
    if leader:
        _write(path, "done", step(), 0, None)


def write_running(path: Path, step: int) -> None:
    """Write to `path` that the run goes on, with so many steps completed."""
    _write(path, "running", step, None, None)


def _state_of(error: BaseException) -> str:
    kinds = {PreemptedError: "preempted", DivergedError: "diverged"}
    return next((state for kind, state in kinds.items() if isinstance(error, kind)), "failed")


def _told(path: Path) -> str | None:
    return read_json(path, {"state": str})["state"] if path.is_file() else None


def _write_failure(path: Path, state: str, step: int, error: BaseException) -> None:
    if _told(path) not in FAILURES:
        code, reason = explain(error)
        _write(path, state, step, code, reason)


def _write(path: Path, state: str, step: int, exit_code: int | None, reason: str | None) -> None:
    named = (reason or "").partition(": ")[0]
    file = named if named and Path(named).exists() else None
    values: dict[str, Any] = {"state": state, "step": step, "exit_code": exit_code, "reason": reason, "file": file}
    write_json(path, values)
