"""Files that are either complete or absent: atomic publishing, checksums, one writer per directory."""

import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from symbert.errors import DataError, InputOutputError, MissingInputError

MEGABYTE = 10**6  # bytes
TEMPORARY = re.compile(r"\.(.+)\.(\d{1,9})\.tmp")  # of `publish`: the file that is written, the process


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what is written there replaces `path` when the block succeeds.

    The data and then the directory entry are synchronised to disk, so a crash leaves the old
    file or the new one, never a part. When the block fails, nothing is left behind; what a process
    that was killed left, the next one removes. InputOutputError says that the disk or quota is full.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with explain_full_disk(path, temporary):
            yield temporary
            synchronise(temporary)
            os.replace(temporary, path)
            synchronise(path.parent)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def explain_full_disk(path: Path, written: Path | None = None) -> Iterator[None]:
    """InputOutputError, with the remedy, when the disk or quota is full while `path` is written (as `written`)."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_space(path, written or path, error.errno) from None
        raise


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of `path` whose processes are no more on this machine."""
    for file in path.parent.iterdir():
        named = TEMPORARY.fullmatch(file.name)
        if named and named[1] == path.name and not is_running(int(named[2])):
            with suppress(FileNotFoundError, PermissionError):
                file.unlink()


def is_running(process: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return True


def _no_space(path: Path, file: Path, code: int) -> InputOutputError:
    written = file.stat().st_size if file.exists() else 0
    free, mount = free_space(path)
    return InputOutputError(
        f"{path}: {os.strerror(code)} after {written / MEGABYTE:,.1f} MB; "
        f"{free / MEGABYTE:,.1f} MB free on {mount}; free space there and run again"
    )


def free_space(path: Path) -> tuple[int, Path]:
    """Bytes free for `path`, which need not exist yet, and the mount point of its file system."""
    place = Path(os.path.realpath(path))
    existing = next(folder for folder in (place, *place.parents) if folder.is_dir())
    mount = next(folder for folder in (existing, *existing.parents) if folder.is_mount())
    return shutil.disk_usage(existing).free, mount


def synchronise(path: Path) -> None:
    """Make a file's content, or a directory's entries, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Publish `text` as UTF-8."""
    with publish(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Publish `value` as indented JSON; NaN and infinities are refused with ValueError."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """The value in a JSON file; MissingInputError or DataError name the file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingInputError(f"{path}: file not found; run the rule that makes it") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); delete it and run again") from None


def copy_file(origin: Path, destination: Path) -> None:
    """Publish a copy of `origin`; MissingInputError when it does not exist."""
    if not Path(origin).is_file():
        raise MissingInputError(f"{origin}: file not found")
    with publish(destination) as temporary:
        shutil.copyfile(origin, temporary)


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


LOCKLESS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def single_writer(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; InputOutputError, naming its holder, when another process has it.

    The lock belongs to the process, so it is released however the process ends. The file `lock` says who had it
    last: host, process and, under Slurm, the job.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise InputOutputError(f"{directory}: in use by {_holder(file.read())}; wait for it or stop it") from None
        except OSError as error:
            if error.errno not in LOCKLESS:
                raise
            raise InputOutputError(
                f"{directory}: its file system has no locks ({error.strerror}), without which two processes "
                "could write there at once; choose another one, or have it mounted with locks (Lustre: -o flock)"
            ) from None
        lease = {"host": platform.node(), "process": os.getpid(), "slurm_job": os.environ.get("SLURM_JOB_ID")}
        file.truncate(0)
        file.write(json.dumps(lease) + "\n")
        file.flush()
        yield


def _holder(text: str) -> str:
    """Who holds a lock, by the content of its file; another process may be writing it at this moment."""
    try:
        lease = json.loads(text)
        job = f", Slurm job {lease['slurm_job']}" if lease["slurm_job"] else ""
        return f"process {lease['process']} on {lease['host']}{job}"
    except (ValueError, KeyError, TypeError):
        return "another process"
