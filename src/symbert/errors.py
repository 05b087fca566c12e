"""Failures by exit code: 64 usage and configuration, 65 data, 75 preempted, 70 a bug; 0 is none of these.

A message is one line: file or key, fact, remedy.
"""

import errno
import os


class SymbertError(Exception):
    """A failure that the user can act on; `exit_code` is the process's exit code."""

    exit_code = 70


class UsageError(SymbertError):
    """The command line does not make sense."""

    exit_code = 64


class ConfigError(SymbertError):
    """A setting is unknown, has a wrong type, or differs from that of the existing results."""

    exit_code = 64


class DataError(SymbertError):
    """Data, a disk, a remote host or a device is not as it has to be; the message names the file or key."""

    exit_code = 65


class MissingInputError(DataError):
    """A file, part, task or checkpoint that should exist does not."""


class IntegrityError(DataError):
    """A checksum does not match."""


class RemoteError(DataError):
    """A remote host cannot be reached, refuses access, or answers with an error."""


class InputOutputError(DataError):
    """A disk has too little room, another process holds a lock, or one of several processes ended."""


class MemoryExhaustedError(DataError):
    """The memory of the machine or the device is too small; the message names the key that needs less."""


class DivergedError(DataError):
    """A loss or a likelihood is not finite."""


class FailedCheckError(DataError):
    """A check was made and failed."""


class PreemptedError(SymbertError):
    """The process was asked to stop; its state is saved and the same command resumes."""

    exit_code = 75


class TimeLimitError(PreemptedError):
    """The scheduler's time limit is near: saved, and to resume in another session."""


OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)  # also where the system names no file


def line_of(error: object) -> str:
    """The message of an error without its line breaks: libraries write several lines, of a job's log one is shown."""
    return " ".join(filter(None, map(str.strip, str(error).splitlines())))


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code and one line for any failure; an error of the system about a file or a disk is data, one of no class
    here is a bug."""
    if isinstance(error, SymbertError):
        return error.exit_code, line_of(error)
    if isinstance(error, OSError) and error.errno and (error.filename is not None or error.errno in OF_DISKS):
        line = str(error) if error.filename is None else f"{error.filename}: {os.strerror(error.errno)}"
        return DataError.exit_code, line_of(line)
    return SymbertError.exit_code, f"internal error: {type(error).__name__}: {line_of(error)}"
