"""Files that are either complete or absent: atomic publishing, checksums, one writer per directory."""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from symbert.errors import DataError, InputOutputError, MissingInputError

MEGABYTE = 10**6  # bytes


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
        yield temporary
        _synchronise(temporary)
        os.replace(temporary, path)
        _synchronise(path.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_space(path, temporary, error.errno) from None
        raise
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of `path` whose processes are no more on this machine."""
    name = re.compile(rf"\.{re.escape(path.name)}\.(\d{{1,9}})\.tmp")
    for file in path.parent.iterdir():
        if (leftover := name.fullmatch(file.name)) and not _is_running(int(leftover[1])):
            with suppress(FileNotFoundError, PermissionError):
                file.unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return True


def _no_space(path: Path, temporary: Path, code: int) -> InputOutputError:
    written = temporary.stat().st_size if temporary.exists() else 0
    folder = Path(os.path.realpath(path.parent))
    mount = next(place for place in (folder, *folder.parents) if place.is_mount())
    return InputOutputError(
        f"{path}: {os.strerror(code)} after {written / MEGABYTE:,.1f} MB; "
        f"{shutil.disk_usage(mount).free / MEGABYTE:,.1f} MB free on {mount}; free space there and run again"
    )


def _synchronise(path: Path) -> None:
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


@contextmanager
def single_writer(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; InputOutputError when another process has it.

    The lock belongs to the process, so it is released however the process ends.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise InputOutputError(
                f"{directory}: in use by process {file.read().strip() or 'unknown'}; wait for it or stop it"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
