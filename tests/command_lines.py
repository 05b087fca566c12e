"""The command lines of this machine's processes while something runs: what `ps` shows to every user."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE = 0.1  # seconds between two looks


@contextmanager
def command_lines() -> Iterator[set[str]]:
    """All that are seen until the context ends, their words separated by spaces."""
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(PAUSE):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):  # the process ended
                    seen.add(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
