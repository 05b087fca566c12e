"""What happens to files between two starts: damage, a power loss, a clock that jumped, a file system that is small."""

import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from campaigns.chaos.faults import Damage
from campaigns.chaos.stages import Call

PAGE = 4096  # bytes
DELETED = (
    re.compile(r"; delete (\S+) and "),
    re.compile(r"^symbert [\w-]+: (\S+?): .*delete it"),
)  # a file or folder that is named
AGAIN = re.compile(r"snakemake -R (\w+)")  # a rule
DEAD_HOST = '{"host": "a-host-that-died", "process": 1, "slurm_job": null}\n'


def damage(results: Path, kind: Damage, draw: random.Random) -> tuple[str, str]:
    """Change a file of this kind: which one, and how; "" where there is none."""
    files = sorted(file for file in results.glob(kind.files) if file.is_file() and file.stat().st_size)
    if not files:
        return "", "nothing to damage"
    file = draw.choice(files)
    status, content = file.stat(), bytearray(file.read_bytes())
    if file.name == "lock":
        file.write_text(DEAD_HOST, encoding="utf-8")
        return str(file.relative_to(results)), "of a dead host"
    how = draw.choice(("a bit flipped", "cut", "emptied"))
    if how == "a bit flipped":
        place = draw.randrange(len(content))
        content[place] ^= 1 << draw.randrange(8)
        how += f" in byte {place}"
    else:
        del content[0 if how == "emptied" else draw.randrange(len(content)) :]
    file.write_bytes(content)
    if draw.random() < 0.5:  # as a medium that fails leaves it, and not a program
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        how += ", its time kept"
    return str(file.relative_to(results)), how


def cut(file: Path, draw: random.Random) -> str:
    """Leave the beginning of a file, or nothing of it, as a power loss does with what was not synchronised."""
    os.truncate(file, draw.choice((0, draw.randrange(file.stat().st_size + 1))))
    return str(file)


def unsynced(calls: Iterable[Call], root: Path) -> list[Path]:
    """The files that are there and were written, but not synchronised since: what a power loss may cut."""
    dirty: dict[str, bool] = {}
    for call in calls:
        if call.name == "open":
            dirty[call.file] = True
        elif call.name == "fsync":
            dirty[call.file] = False
        elif call.name == "rename" and call.after:
            moved = [name for name in dirty if name == call.file or name.startswith(f"{call.file}/")]
            for name in moved:
                dirty[call.after + name.removeprefix(call.file)] = dirty.pop(name)
    return [root / name for name, state in sorted(dirty.items()) if state and (root / name).is_file()]


def shift_times(root: Path, draw: random.Random, jump: float) -> None:
    """Give the newest files, from a random one on, the times of a clock that had jumped."""
    files = [path for name in ("results", ".snakemake") for path in (root / name).rglob("*")]
    files = sorted((path for path in files if path.is_file() and not path.is_symlink()), key=os.path.getmtime)
    for path in files[draw.randrange(len(files) + 1) :]:
        os.utime(path, (path.stat().st_atime + jump, path.stat().st_mtime + jump))


def follow(lines: list[str], root: Path) -> tuple[str, list[str]] | None:
    """Do what the first line says that names a remedy: that line, and what the next start has more; else None."""
    for line in lines:
        for pattern in DELETED:
            if (named := pattern.search(line)) and (file := root / named[1]).exists():
                shutil.rmtree(file) if file.is_dir() else file.unlink()
                return line, []
        if named := AGAIN.search(line):
            return line, ["--forcerun", named[1]]
    return None


def size_on_disk(folder: Path) -> int:
    """Bytes of whole pages that the results of a snapshot take."""
    files = [*(folder / "results").rglob("*")] if folder.is_dir() else []
    return sum((path.stat().st_size // PAGE + 2) * PAGE if path.is_file() else PAGE for path in files)


def can_mount() -> bool:
    """Whether file systems can be mounted here, which root may do."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode == 0
        if mounted:
            subprocess.run(["umount", folder], check=True)
        return mounted


def limit(folder: Path, size: int) -> None:
    """Move a folder to a file system of so many bytes."""
    aside = folder.with_name("aside")
    folder.mkdir(exist_ok=True)
    folder.rename(aside)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size + 64 * PAGE}", "none", folder], check=True)
    shutil.copytree(aside, folder, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(aside)


def enlarge(folder: Path) -> None:
    """Give a file system that is full room enough."""
    subprocess.run(["mount", "-o", "remount,size=1g", folder], check=True)


def release(folder: Path) -> None:
    """Give up the file system of a folder, with what it holds."""
    while folder.is_mount():
        subprocess.run(["umount", "--lazy", folder], check=True)
