"""What may be removed from results/: what no experiment there names. Shown first, removed on request.

No link is followed, no folder in which a process works is touched, and nothing outside of results/.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

from symbert.console import aligned, data_size
from symbert.errors import InputOutputError
from symbert.files import read_json, single_writer, size_of
from symbert.pretrain.run import branches
from symbert.steps import RESULTS

KEYED = (
    *("published/*", "corpus/*", "runs/*/*/seed-*", "together/*", "tuned/*"),
    *("models/*", "tasks/*", "scores/*", "robustness/*", "measured/*"),
)
WEIGHTS = ("runs/*/*/seed-*/state/weights/step-*.safetensors",)
BRANCHES = (f"runs/*/*/seed-*/{branches(Path('state'))}",)  # states that runs of more steps go on from
RECORD = {"experiment": str, "settings": dict, "checkpoints": [str]}  # experiment.json


def prune(
    yes: Annotated[bool, "remove what is shown"] = False,
    surplus_weights: Annotated[bool, "also weights and states of finished runs that no experiment uses"] = False,
) -> None:
    """Show what of results/ no experiment.json names; remove it with --yes.

    With --surplus-weights also what runs of more steps would go on from, and the kept weights of finished runs at steps
    that no experiment asks for, but for the last ones: they are what was trained. An experiment whose folder
    results/NAME was removed names nothing. DataError for an experiment.json that is damaged, because it may name
    anything.
    """
    sizes = {path: bytes_of(path) for path in removable(Path(RESULTS), surplus_weights)}
    if not sizes:
        print("nothing to remove")
        return
    print("\n".join(aligned([(str(path), data_size(size)) for path, size in sizes.items()])))
    if not yes:
        print(f"{data_size(sum(sizes.values()))} may go; nothing was removed; --yes removes it")
        return
    print(f"freed {data_size(sum(size for path, size in sizes.items() if _remove(path)))}")


def removable(results: Path, surplus_weights: bool) -> Iterator[Path]:
    """All that may be removed, each once."""
    records = [read_json(file, RECORD, "restore or remove it") for file in sorted(results.glob("*/experiment.json"))]
    named = {Path(file).parent for record in records for file in record["settings"]}
    checkpoints = {Path(folder) for record in records for folder in record["checkpoints"]}
    yield from (folder for folder in _plain(results, KEYED) if folder.is_dir() and folder not in named)
    kept = _plain(results, WEIGHTS) if surplus_weights else []
    last = {weights.parent: weights for weights in kept}  # names sort by step
    for weights in kept:
        run, step = weights.parents[2], int(weights.stem.removeprefix("step-"))
        is_surplus = run / f"step-{step}" not in checkpoints and weights != last[weights.parent]
        if run in named and (run / "done.json").is_file() and is_surplus:
            yield weights
    for state in _plain(results, BRANCHES) if surplus_weights else []:
        if (run := state.parents[1]) in named and (run / "done.json").is_file():
            yield state


def _plain(results: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files and folders of these patterns, but for links and what lies behind them."""
    matched = (path for pattern in patterns for path in sorted(results.glob(pattern)))
    return [path for path in matched if path.resolve() == results.resolve() / path.relative_to(results)]


def _remove(path: Path) -> bool:
    """Remove a file or folder, and the folders that are empty then; False where a process works in it."""
    folder = path if path.is_dir() else path.parent
    locks = [file.parent for file in folder.rglob("lock")]
    locks += [above for above in folder.parents if (above / "lock").is_file()]
    try:
        with ExitStack() as held:
            for place in locks:
                held.enter_context(single_writer(place))
            if path.is_dir():
                shutil.rmtree(path)  # links in it are removed, not followed
            else:
                path.unlink(missing_ok=True)
    except (InputOutputError, OSError) as error:
        print(f"skipped: {path}: {error}")
        return False
    with suppress(OSError):  # something lies in it, perhaps only now
        for empty in path.parents:
            if empty.name == RESULTS:
                break
            empty.rmdir()
    return True


def bytes_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder, links not followed."""
    files = [Path(place, name) for place, _, names in os.walk(path) for name in names] if path.is_dir() else [path]
    return sum(size_of(file, follow_symlinks=False) or 0 for file in files)
