"""Files that are either complete or absent: atomic publishing, checksums, one writer per directory."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from symbert.errors import DataError, InputOutputError, MissingInputError


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what is written there replaces `path` when the block succeeds.

    The data and then the directory entry are synchronised to disk, so a crash leaves the old
    file or the new one, never a part. When the block fails, nothing is left behind.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _synchronise(temporary)
        os.replace(temporary, path)
        _synchronise(path.parent)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


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
