"""Standard error, written to a log: of a command (`symbert --log FILE COMMAND …`), or of any program (below).

    python -m symbert.log FILE PROGRAM [ARGUMENT …]

runs the program in the place of Python, so that FILE holds what the program and all processes that it starts say.
"""

import os
import sys
from pathlib import Path

from symbert.errors import InputOutputError

_terminals: list[int] = []  # where standard error went before a log took its place


def write_stderr(file: Path) -> None:
    """Let standard error (file descriptor 2, which child processes inherit) go to `file`, which is emptied.

    InputOutputError where `file` cannot be created.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        log = open(file, "wb")  # noqa: SIM115
    except OSError as error:
        raise InputOutputError(f"{file}: {os.strerror(error.errno)}; choose another file for --log") from None
    with log:
        _terminals.append(os.dup(2))
        os.dup2(log.fileno(), 2)


def say_last(line: str) -> None:
    """Write why a command failed to standard error or, where the disk of its log is full, to where that went before."""
    try:
        sys.stderr.write(line)  # one write: torchrun's processes are unbuffered, and print writes a line's end apart
    except OSError:
        for terminal in _terminals:
            os.dup2(terminal, 2)
        sys.stderr.write(line)


if __name__ == "__main__":
    write_stderr(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
