"""What can go wrong, one class per documented exit code (BSD sysexits where one fits).

A message is one line: what, which file or key, expected and found, what to do.
"""


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


class CannotCreateError(SymbertError):
    """An output cannot be created (read-only directory, no permission)."""

    exit_code = 73


class InputOutputError(SymbertError):
    """Writing failed, or another process holds the lock of a run directory."""

    exit_code = 74


class PreemptedError(SymbertError):
    """The process was asked to stop; its state is saved and the same command goes on."""

    exit_code = 75


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
