"""What of an experiment may be removed: shown first, removed on request.

Nothing that a rule declares is touched, nothing outside the experiment's own folders, and no link is followed. What
lies in the folder of a process that works is left alone.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from symbert.cost import size_of
from symbert.errors import InputOutputError
from symbert.files import is_leftover, read_json_or_empty, single_writer
from symbert.glue.state import stale_files
from symbert.hosts import HOSTS
from symbert.paths import RUN, Experiment, of_host
from symbert.pretrain.state import (
    holder_elsewhere,
    is_old,
    is_wanted,
    run_of,
    run_state,
    superseded,
    surplus_checkpoints,
    surplus_weights,
)
from symbert.progress import aligned, data_size
from symbert.project import read_experiment
from symbert.suites import SUITES

SUPERSEDED = "superseded runs"
SURPLUS = "resume checkpoints of finished runs, but for the last"
STALE = "fine-tunings under superseded settings or weights"
LEFTOVERS = "leftovers of killed processes"
WEIGHTS = "kept weights of steps that nothing asks for"


@dataclass(frozen=True)
class Item:
    """A file or folder that may be removed."""

    kind: str
    path: Path

    @property
    def bytes(self) -> int:
        """What removing it frees."""
        return self.path.lstat().st_size if self.path.is_file() else size_of(self.path)


@dataclass(frozen=True)
class Workplace:
    """A folder in which one process works at a time, if it has a lock, and what may be removed in it."""

    folder: Path
    has_lock: bool
    find: Callable[[], Iterator[Item]]


def prune(
    scale: str | None = None,
    configfile: list[Path] | None = None,
    config: list[str] | None = None,
    surplus_weights: bool = False,
    yes: bool = False,
) -> None:
    """Show what may go and how much that frees; with --yes, remove it. The other options are those of Snakemake.

    Superseded runs, resume checkpoints of finished runs, fine-tunings under superseded settings, what killed processes
    left. Kept weights of steps that nothing asks for stay, for a step may be added later, unless --surplus-weights.
    """
    experiment = read_experiment(scale, configfile, config)
    places = list(workplaces(experiment))
    items = [item for place in places for item in place.find()]
    wanted = [item for item in items if surplus_weights or item.kind != WEIGHTS]
    total = sum(item.bytes for item in wanted)
    print(f"Experiment {experiment.name}: {f'{data_size(total)} may go' if wanted else 'nothing to remove'}")
    for kind in dict.fromkeys(item.kind for item in wanted):
        rows = [(str(item.path), data_size(item.bytes)) for item in wanted if item.kind == kind]
        print(f"{kind}: {data_size(sum(item.bytes for item in wanted if item.kind == kind))}")
        print("\n".join(f"  {line}" for line in aligned(rows)))
    if rest := sum(item.bytes for item in items) - total:
        print(f"--surplus-weights would free {data_size(rest)} more: {WEIGHTS}, which could be extracted later")
    if yes:
        _remove_all(places, {item.path for item in wanted})
    elif wanted:
        print("nothing was removed; --yes removes it")


def workplaces(experiment: Experiment) -> Iterator[Workplace]:
    """All folders of an experiment in which something may be removed, of runs outside today's sweep, too."""
    for host in HOSTS:
        for run in _folders(of_host(experiment.state, host).removesuffix("/state"), of_host(RUN, host)):
            yield Workplace(run, True, partial(_of_run, experiment, run))
    for suite in SUITES:
        finetuned = experiment.finetuned.replace("{suite}", suite)
        for state in _folders(f"{finetuned}/state", f"{RUN}/step-{{step}}/state"):
            yield Workplace(state, True, partial(_of_finetuning, experiment, suite, state))
    for root in map(Path, experiment.folders):
        if root.is_dir():
            yield Workplace(root, False, partial(_outside_locks, root))


def _folders(pattern: str, tail: str) -> list[Path]:
    """The folders of a pattern for any run and step, but for links and what lies behind them."""
    root = Path(pattern.removesuffix(tail))
    folders = [folder for folder in sorted(root.glob(re.sub(r"{\w+}", "*", tail))) if folder.is_dir()]
    return [folder for folder in folders if folder.resolve() == root.resolve() / folder.relative_to(root)]


def _of_run(experiment: Experiment, folder: Path) -> Iterator[Item]:
    """Of a pre-training: superseded states, but for one that comes back, and what is surplus in its own state."""
    yield from (Item(SUPERSEDED, path) for path in superseded(folder) if not is_wanted(experiment, path))
    state = folder / "state"
    if not state.is_dir() or state.is_symlink():
        return
    hidden = sorted([*state.glob(".*"), *state.glob("*/.*")])
    yield from (Item(LEFTOVERS, path) for path in hidden if _is_leftover(path) or _is_half_checkpoint(path))
    run = run_of(experiment, read_json_or_empty(state / "identity.json"))
    if run is not None and run_state(experiment, run).is_done:
        yield from (Item(SURPLUS, path) for path in surplus_checkpoints(experiment, run, state))
        yield from (Item(WEIGHTS, path) for path in surplus_weights(experiment, run, state))


def _of_finetuning(experiment: Experiment, suite: str, state: Path) -> Iterator[Item]:
    """Of the fine-tunings of a checkpoint on a suite: leftovers, and what no score of today is made of."""
    for task in sorted(folder for folder in state.iterdir() if folder.is_dir() and not folder.is_symlink()):
        yield from (Item(LEFTOVERS, path) for path in sorted(task.glob(".*")) if _is_leftover(path))
        yield from (Item(STALE, path) for path in stale_files(experiment, suite, task))


def _is_half_checkpoint(path: Path) -> bool:
    """Whether a checkpoint was left half written, so long ago that no process elsewhere can be at it."""
    is_half = path.name.startswith(".step-") and path.suffix == ".tmp" and path.is_dir() and not path.is_symlink()
    return is_half and is_old(path, *path.iterdir())


def _outside_locks(root: Path) -> Iterator[Item]:
    """Temporary files outside the folders that have a lock."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "state" and not name.startswith("state.superseded-")]
        paths = [Path(folder, name) for name in sorted(names)]
        yield from (Item(LEFTOVERS, path) for path in paths if _is_leftover(path))


def _is_leftover(path: Path) -> bool:
    """Whether a temporary file was left by a process that has ended."""
    return is_leftover(path) and not path.is_symlink() and is_old(path)


def _remove_all(places: list[Workplace], wanted: set[Path]) -> None:
    """Remove what was shown and still may be removed, under the lock of its folder; say what was freed or skipped."""
    freed = 0
    for place in places:
        if not any(path.is_relative_to(place.folder) for path in wanted):
            continue
        if who := holder_elsewhere(place.folder):
            print(f"skipped: {place.folder}: in use by {who}, as it seems; if not, remove its file lock")
            continue
        try:
            with single_writer(place.folder) if place.has_lock else nullcontext():
                for item in [item for item in place.find() if item.path in wanted]:
                    freed += item.bytes
                    if item.path.is_dir():
                        shutil.rmtree(item.path)  # links in it are removed, not followed
                    else:
                        item.path.unlink()
        except InputOutputError as error:
            print(f"skipped: {error}")
    print(f"freed {data_size(freed)}")
