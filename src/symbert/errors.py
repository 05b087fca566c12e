"""What can go wrong, one class per documented exit code (BSD sysexits where one fits).

A message is one line: what, which file or key, expected and found, what to do.
"""

import errno


class SymbertError(Exception):
    """A failure that the user can act on; `exit_code` is the process's exit code."""

    exit_code = 70


class UsageError(SymbertError):
    """The command line does not make sense."""

    exit_code = 64


class DataError(SymbertError):
    """Input data is malformed; the message names file and line."""

    exit_code = 65


class MissingInputError(SymbertError):
    """A file, part, task or checkpoint that should exist does not."""

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
    """Writing failed, or another process holds the lock of a run directory."""

    exit_code = 74


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
    """The training loss is not finite."""

    exit_code = 79


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code and one line for any failure: what no class here describes is a bug, 70."""
    if isinstance(error, SymbertError):
        return error.exit_code, str(error)
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return (
            CannotCreateError.exit_code,
            f"{error.filename}: {error.strerror}; make the directory writable or choose another",
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputOutputError.exit_code, f"{error.filename or 'output'}: {error.strerror}; free space and run again"
    if isinstance(error, FileNotFoundError):
        return MissingInputError.exit_code, f"{error.filename}: file not found"
    message = f"internal error: {type(error).__name__}: {error} (run with --debug for the traceback)"
    return SymbertError.exit_code, message
