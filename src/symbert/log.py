"""Standard error, copied to a log: of a command (`symbert --log FILE COMMAND …`), or of any program (below).

    python -m symbert.log FILE PROGRAM [ARGUMENT …]

runs the program in the place of Python, so that FILE holds what the program and all processes that it starts say.
"""

import atexit
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from symbert.errors import InputOutputError

# In the environment of jobs: standard error goes to the log alone. What matters of it, the console shows.
LOG_ONLY = "SYMBERT_LOG_ONLY"
PATIENCE = 2.0  # seconds
# A whole group of processes gets these. Who writes decides what they mean: tee ends after its last writer.
OUTLIVED = {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1}
_terminals: list[int] = []  # where standard error went before a log took its place


def copy_stderr(file: Path) -> None:
    """Copy standard error (file descriptor 2, which child processes inherit) to `file`, and to where it went before.
    With LOG_ONLY in the environment it goes to `file` alone.

    `tee` copies, so that the last words of a crash are not lost. When this process ends, it waits until all that it
    wrote is copied; for a child that still runs and may write, no longer than PATIENCE. InputOutputError where `file`
    cannot be created.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        log = open(file, "wb")  # noqa: SIM115
    except OSError as error:
        raise InputOutputError(f"{file}: {os.strerror(error.errno)}; choose another file for --log") from None
    with log:
        terminal = os.dup(2)
        if os.environ.get(LOG_ONLY):
            _terminals.append(terminal)
            os.dup2(log.fileno(), 2)
            return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OUTLIVED)
    tee = subprocess.Popen(
        # Python ignores SIGPIPE, and so does tee: a terminal that is gone ends no copy.
        ["tee", file],
        stdin=subprocess.PIPE,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        restore_signals=False,
    )
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.dup2(tee.stdin.fileno(), 2)
    tee.stdin.close()
    atexit.register(_finish, tee, terminal)


def _finish(tee: subprocess.Popen, terminal: int) -> None:
    sys.stderr.flush()
    os.dup2(terminal, 2)
    with suppress(subprocess.TimeoutExpired):
        tee.wait(PATIENCE)


def say_last(line: str) -> None:
    """Write why a command failed to standard error or, where the disk of its log is full, to where that went before."""
    try:
        sys.stderr.write(line)  # one write: torchrun's processes are unbuffered, and print writes a line's end apart
    except OSError:
        for terminal in _terminals:
            os.dup2(terminal, 2)
        sys.stderr.write(line)


if __name__ == "__main__":
    copy_stderr(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
