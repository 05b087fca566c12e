"""The library that is preloaded into all processes of a run: what it is told, and what it notes (strike.c)."""

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("strike.c")
SNAKEMAKE = "snakemake"  # the name of the process that the user started; that of any other is its log


def compiler() -> str | None:
    """The C compiler of the system, if there is one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compile_library(folder: Path) -> Path:
    """The library, in `folder`."""
    library = folder / "strike.so"
    subprocess.run([compiler(), "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return library


@dataclass(frozen=True)
class Call:
    """Something that a process did to a file of the run; a `start` has the process id as its file."""

    process: str  # SNAKEMAKE, the log of a job, or - for any other
    name: str  # start, open (for writing), write, fsync, rename, unlink, mkdir
    file: str
    after: str = ""  # the name that a file has then


@dataclass(frozen=True)
class Notes:
    """The folder by which the campaign and the library talk."""

    folder: Path
    library: Path

    def environment(self, root: Path, clock: tuple[float, float] | None) -> dict[str, str]:
        """What the processes of a run below `root` are started with; `clock` is a moment and a jump of seconds."""
        words = {"CHAOS_ROOT": str(root), "CHAOS_FOLDER": str(self.folder), "LD_PRELOAD": str(self.library)}
        return words | ({"CHAOS_CLOCK": f"{clock[0]} {clock[1]}"} if clock else {})

    def plan(self, lines: Iterable[tuple]) -> None:
        """Write the faults: number, process, call, count, action, error."""
        text = "".join("\t".join(map(str, line)) + "\n" for line in lines)
        (self.folder / "faults").write_text(text, encoding="utf-8")

    def struck(self) -> dict[int, str]:
        """What was to be done to which file when each fault struck, by its number."""
        marks = self.folder.glob("struck-*")
        return {int(mark.name.removeprefix("struck-")): mark.read_text(encoding="utf-8").strip() for mark in marks}

    def mark(self, number: int, text: str) -> None:
        """Say that a fault struck."""
        (self.folder / f"struck-{number}").write_text(text, encoding="utf-8")

    def length(self) -> int:
        """Bytes of the trace so far."""
        path = self.folder / "trace"
        return path.stat().st_size if path.is_file() else 0

    def trace(self, start: int = 0) -> tuple[list[Call], int]:
        """What was done since the trace was `start` bytes long, and how long it is now."""
        path = self.folder / "trace"
        if not path.is_file():
            return [], start
        with open(path, "rb") as file:
            file.seek(start)
            content = file.read()
        lines = content[: content.rfind(b"\n") + 1].decode("utf-8", "surrogateescape").splitlines()
        calls = [Call(*words) for words in (line.split("\t") for line in lines) if 3 <= len(words) <= 4]
        return calls, start + content.rfind(b"\n") + 1


def unsynced(calls: Iterable[Call], root: Path) -> list[Path]:
    """The files that are there and were written, but not synchronised since: what a power loss may cut."""
    dirty: dict[str, bool] = {}
    for call in calls:
        if call.name in ("open", "write"):
            dirty[call.file] = True
        elif call.name == "fsync":
            dirty[call.file] = False
        elif call.name == "rename" and call.after:
            prefix = call.file + "/"
            moved = {name: state for name, state in dirty.items() if name == call.file or name.startswith(prefix)}
            for name, state in moved.items():
                del dirty[name]
                dirty[call.after + name[len(call.file) :]] = state
    return [root / name for name, state in sorted(dirty.items()) if state and (root / name).is_file()]
