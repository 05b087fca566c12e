"""What may be removed from results/: what no experiment there names. Shown first, removed on request.

No link is followed, no folder in which a process works is touched, and nothing outside of results/.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbert.console import aligned, data_size
from symbert.errors import InputOutputError
from symbert.experiment.status import holder, is_old
from symbert.files import is_leftover, read_json, single_writer
from symbert.paths import RESULTS

UNNAMED, LEFTOVER = "named by no experiment", "left by a killed process"
WEIGHTS = "kept weights of a step that nothing asks for"
KEYED = ("published/*", "corpus/*", "runs/*/*/seed-*", "tasks/*", "scores/*", "robustness/*", "measured/*")  # by key
RECORD = {"experiment": str, "inputs": dict, "settings": dict, "checkpoints": [str]}  # experiment.json


@dataclass(frozen=True)
class Item:
    """A file or folder that may be removed, and why."""

    why: str
    path: Path

    @property
    def bytes(self) -> int:
        """What removing it frees."""
        return self.path.lstat().st_size if self.path.is_file() else size_of(self.path)


def prune(yes: bool = False, surplus_weights: bool = False) -> None:
    """Show what of results/ no experiment.json names, and what killed processes left; remove it with --yes.

    With --surplus-weights also the kept weights of finished runs at steps that no experiment asks for. An experiment
    whose folder results/NAME was removed names nothing. DataError for an experiment.json that is damaged, because it
    may name anything.
    """
    results = Path(RESULTS)
    items = list(removable(results, surplus_weights))
    if not items:
        print("nothing to remove")
        return
    print("\n".join(aligned([("what", "why", "size"), *((str(i.path), i.why, data_size(i.bytes)) for i in items)])))
    if not yes:
        print(f"{data_size(sum(item.bytes for item in items))} may go; nothing was removed; --yes removes it")
        return
    freed = sum(map(_remove, items))
    print(f"freed {data_size(freed)}")


def removable(results: Path, surplus_weights: bool) -> Iterator[Item]:
    """All that may be removed, each once."""
    records = [read_json(file, RECORD, "restore or remove it") for file in sorted(results.glob("*/experiment.json"))]
    named = {Path(file).parent for record in records for file in record["settings"]}
    asked = {Path(file) for record in records for file in _files_in(record["inputs"])}
    checkpoints = {Path(folder) for record in records for folder in record["checkpoints"]}
    gone = []
    for folder in _folders(results, KEYED):
        if folder not in named:
            gone.append(folder)
            yield Item(UNNAMED, folder)
    scores = [file for kind in ("scores", "robustness") for file in results.glob(f"{kind}/*/*/*/seed-*/step-*/*.json")]
    for file in sorted(file for file in scores if not _is_below(file, gone)):
        if file not in asked and _is_plain(results, file):
            yield Item(UNNAMED, file)
    for run in _folders(results, ("runs/*/*/seed-*",)) if surplus_weights else ():
        if run in named and (run / "done.json").is_file():
            for weights in sorted(run.glob("state/weights/step-*.safetensors")):
                step = int(re.search(r"\d+", weights.name)[0])
                if run / f"step-{step}" not in checkpoints:
                    yield Item(WEIGHTS, weights)
    for folder, _, names in os.walk(results):
        paths = (Path(folder, name) for name in sorted(names))
        for path in (path for path in paths if not _is_below(path, gone)):
            if is_leftover(path) and not path.is_symlink() and is_old(path):
                yield Item(LEFTOVER, path)


def _folders(results: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The folders of these patterns, but for links and what lies behind them."""
    found = (folder for pattern in patterns for folder in sorted(results.glob(pattern)))
    return [folder for folder in found if folder.is_dir() and _is_plain(results, folder)]


def _is_plain(results: Path, path: Path) -> bool:
    """Whether no folder from results/ to the path is a link."""
    return path.resolve() == results.resolve() / path.relative_to(results)


def _is_below(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _files_in(value: Any) -> Iterator[str]:
    """All texts within maps and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _files_in(item)


def _remove(item: Item) -> int:
    """Remove one, unless a process works in it; bytes that were freed."""
    folder = item.path if item.path.is_dir() else item.path.parent
    locks = [file.parent for file in folder.rglob("lock") if file.is_file()]
    locks += [place for place in item.path.parents if (place / "lock").is_file()]
    if users := [f"{place}: in use by {who}" for place in locks if (who := holder(place))]:
        print(f"skipped: {item.path}: {users[0]}, as it seems; if not, remove its file lock")
        return 0
    size = item.bytes
    try:
        with ExitStack() as held:
            for place in locks:
                held.enter_context(single_writer(place))
            if item.path.is_dir():
                shutil.rmtree(item.path)  # links in it are removed, not followed
            else:
                item.path.unlink(missing_ok=True)
    except (InputOutputError, OSError) as error:
        print(f"skipped: {error}")
        return 0
    for empty in item.path.parents:
        if empty.name == RESULTS or any(empty.iterdir()):
            break
        empty.rmdir()
    return size


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder, links not followed."""
    return sum(Path(place, name).lstat().st_size for place, _, names in os.walk(folder) for name in names)
