"""What can go wrong, one class per documented exit code (BSD sysexits where one fits).

A message is one line: what, which file or key, expected and found, what to do.
"""

import errno
import os
from pathlib import Path


class SymbertError(Exception):
    """A failure that the user can act on; `exit_code` is the process's exit code."""

    exit_code = 70


class FailedCheckError(SymbertError):
    """A check was made and failed."""

    exit_code = 1


class UsageError(SymbertError):
    """The command line does not make sense."""

    exit_code = 64


class DataError(SymbertError):
    """Input data is malformed; the message names file and line."""

    exit_code = 65


class MissingInputError(SymbertError):
    """A file, part, task or checkpoint that should exist does not, or may not be read."""

    exit_code = 66


class RemoteError(SymbertError):
    """A remote host cannot be reached or answers with an error."""

    exit_code = 69


class MemoryExhaustedError(SymbertError):
    """The memory of the machine or the device is too small; the message names the key that needs less."""

    exit_code = 71


class CannotCreateError(SymbertError):
    """An output cannot be created (read-only directory, no permission)."""

    exit_code = 73


class InputOutputError(SymbertError):
    """A disk or network file system failed, another process holds a lock, or one of the same run has ended."""

    exit_code = 74


class FullDiskError(InputOutputError):
    """The disk or the quota is full."""


class PreemptedError(SymbertError):
    """The process was asked to stop; its state is saved and the same command goes on."""

    exit_code = 75


class TimeLimitError(PreemptedError):
    """The scheduler's time limit is near: saved, and to go on in another session."""


class IntegrityError(SymbertError):
    """A checksum does not match."""

    exit_code = 76


class PermissionRefusedError(SymbertError):
    """A remote host refuses access (401, 403)."""

    exit_code = 77


class ConfigError(SymbertError):
    """A setting is unknown, has a wrong type, or differs from that of the existing results."""

    exit_code = 78


class DivergedError(SymbertError):
    """A loss or a likelihood is not finite."""

    exit_code = 79


FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)
_DISK = (errno.EIO, errno.EREMOTEIO, errno.ESTALE, errno.EUCLEAN)
_LIMITED = {errno.EMFILE: "-n", errno.ENFILE: "-n", errno.EFBIG: "-f"}  # and the option of ulimit


def system_error(error: OSError, file: object, written: bool) -> SymbertError | None:
    """Our error, with the remedy, for an error of the system on writing or reading `file`; None for an unknown one."""
    said = f"{file}: {os.strerror(error.errno)}"
    if error.errno in FULL:
        return FullDiskError(f"{said}; free space and run again")
    if error.errno in _REFUSED and (written or error.errno == errno.EROFS):
        return CannotCreateError(f"{said}; make the directory writable or choose another")
    if error.errno in _REFUSED:
        return MissingInputError(f"{said}; make it readable")
    if error.errno in (*_NO_FILE, errno.EEXIST) and written:
        return CannotCreateError(f"{said}; choose another place for it")
    if error.errno == errno.ENOENT:
        return MissingInputError(f"{file}: file not found")
    if error.errno in _NO_FILE:
        return MissingInputError(f"{said}; correct the path")
    if error.errno == errno.ENOMEM:
        return MemoryExhaustedError(f"{said}; run where there is more memory")
    if error.errno in _LIMITED:
        return InputOutputError(f"{said}; raise the limit (ulimit {_LIMITED[error.errno]}) and run again")
    if error.errno in _DISK:
        doing = "written" if written else "read"
        return InputOutputError(f"{said} while it was {doing}; check the disk or network file system and run again")
    return None


def _named(error: OSError) -> str:
    """The file that an error is about; libraries name it in their text, if at all."""
    if error.filename is not None:
        return str(error.filename)
    text = " ".join(str(error.strerror).split())
    return "a file" if text == os.strerror(error.errno) else f"a file ({text})"


def _is_there(file: str) -> bool:
    try:
        return Path(file).exists()
    except OSError:  # in a folder that may not be read
        return False


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code and one line for any failure: what no class here describes is a bug, 70.

    Errors of writing are named where a file is published; of other files, an existing one was to be read.
    """
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        file = _named(error)
        is_new = error.errno in _REFUSED and error.filename is not None and not _is_there(error.filename)
        error = system_error(error, file, written=is_new) or error
    if isinstance(error, SymbertError):
        return error.exit_code, str(error)
    message = f"internal error: {type(error).__name__}: {error} (run with --debug for the traceback)"
    return SymbertError.exit_code, message
