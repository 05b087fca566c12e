"""Standard error, copied to a log: of a command (`symbert --log FILE COMMAND …`), or of any program (below).

    python -m symbert.log FILE PROGRAM [ARGUMENT …]

runs the program in the place of Python, so that FILE holds what the program and all processes that it starts say.
"""

import atexit
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from symbert.errors import InputOutputError

# In the environment of jobs: standard error goes to the log alone. What matters of it, the console shows.
LOG_ONLY = "SYMBERT_LOG_ONLY"
# A whole group of processes gets these. Who writes decides what they mean: the copier ends after its last writer.
OUTLIVED = {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1}
_terminals: list[int] = []  # where standard error went before a log took its place


def copy_stderr(file: Path) -> None:
    """Copy standard error (file descriptor 2, which child processes inherit) to `file`, and to where it went before.
    With LOG_ONLY in the environment it goes to `file` alone.

    A process of its own copies, so that the last words of a crash are not lost. When this process ends, it waits until
    all that it wrote is copied, but for no child that still runs: the copier serves that one on. InputOutputError
    where `file` cannot be created. Call it before any thread starts.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        log = open(file, "wb")  # noqa: SIM115
    except OSError as error:
        raise InputOutputError(f"{file}: {os.strerror(error.errno)}; choose another file for --log") from None
    with log:
        if os.environ.get(LOG_ONLY):
            _terminals.append(os.dup(2))
            os.dup2(log.fileno(), 2)
            return
        reader, writer = os.pipe()
        ours, copiers = socket.socketpair()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, OUTLIVED)
        copier = os.fork()
        if copier == 0:
            try:
                ours.close()
                os.close(writer)
                for stream in (0, 1):  # readers of our standard output see its end when we end
                    os.dup2(os.open(os.devnull, os.O_RDWR), stream)
                _copy(reader, [2, log.fileno()], copiers)
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    copiers.close()
    os.close(reader)
    terminal = os.dup(2)
    os.dup2(writer, 2)
    os.close(writer)
    atexit.register(_finish, copier, ours, terminal)


def say_last(line: str) -> None:
    """Write why a command failed to standard error or, where the disk of its log is full, to where that went before."""
    try:
        sys.stderr.write(
            line
        )  # one write: torchrun's processes are unbuffered, and print writes the end of a line apart
    except OSError:
        for terminal in _terminals:
            os.dup2(terminal, 2)
        sys.stderr.write(line)


def _copy(reader: int, targets: list[int], parent: socket.socket) -> None:
    """Copy until all writers have ended. When the parent asks, answer once all that it wrote is copied."""
    watched: list = [reader, parent]
    asked = False
    while True:
        ready, _, _ = select.select(watched, [], [], 0 if asked else None)
        if reader in ready:
            text = os.read(reader, 1 << 16)
            if not text:
                return
            for target in targets:
                with suppress(OSError):  # a full disk or a closed terminal ends no command
                    _write(target, text)
        elif parent in ready:
            watched = [reader]
            asked = bool(parent.recv(1))  # nothing where the parent has died
        else:
            asked = False
            parent.send(b".")


def _write(target: int, text: bytes) -> None:
    while text:
        text = text[os.write(target, text) :]


def _finish(copier: int, channel: socket.socket, terminal: int) -> None:
    """Give standard error back, and wait for the copier: for its end, or for its word that only children hold it."""
    sys.stderr.flush()
    os.dup2(terminal, 2)
    with suppress(OSError):
        channel.send(b".")
        if channel.recv(1):
            return
    os.waitpid(copier, 0)


if __name__ == "__main__":
    copy_stderr(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
