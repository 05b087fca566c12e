"""What of an experiment may go: shown first, removed on request.

Nothing that a rule declares is touched, nothing outside the experiment's own folders, and no link is followed. What
lies in the folder of a process that works is left alone.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from symbert.errors import InputOutputError
from symbert.experiment.disk import size_of
from symbert.experiment.existing import find_run, is_wanted, run_of, superseded
from symbert.experiment.layout import RUN, Experiment, read_experiment
from symbert.experiment.leases import holder_elsewhere, is_old
from symbert.experiment.reading import Values, facts, record_of, records
from symbert.files import TEMPORARY, is_running, sha256_of, single_writer
from symbert.pretrain.job import Run
from symbert.progress import aligned, data_size
from symbert.settings import hash_of

STEP = re.compile(r"step-(\d+)")

SUPERSEDED = "superseded runs"
SURPLUS = "resume checkpoints of finished runs, but for the last"
STALE = "fine-tunings under superseded settings or weights"
LEFTOVERS = "leftovers of killed processes"
WEIGHTS = "kept weights of steps that nothing asks for"


@dataclass(frozen=True)
class Item:
    """Something that may go."""

    kind: str
    path: Path

    @property
    def bytes(self) -> int:
        """What removing it frees."""
        return self.path.lstat().st_size if self.path.is_file() else size_of(self.path)


@dataclass(frozen=True)
class Place:
    """A folder in which one process works at a time, if it has a lock, and what may go there."""

    folder: Path
    locked: bool
    find: Callable[[], Iterator[Item]]

    def lock(self) -> AbstractContextManager:
        """Held while something is removed."""
        return single_writer(self.folder) if self.locked else nullcontext()


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
    places = list(places_of(experiment))
    found = [item for place in places for item in place.find()]
    wanted = [item for item in found if surplus_weights or item.kind != WEIGHTS]
    print("\n".join(_shown(experiment, wanted)))
    rest = sum(item.bytes for item in found) - sum(item.bytes for item in wanted)
    if rest:
        print(f"--surplus-weights would free {data_size(rest)} more: {WEIGHTS}, which could be extracted later")
    if yes:
        _remove_all(experiment, places, {item.path for item in wanted})
    elif wanted:
        print("nothing was removed; --yes removes it")


def places_of(experiment: Experiment) -> Iterator[Place]:
    """All folders of an experiment in which something may go, whether its sweep still has them or not."""
    for run in _folders(experiment, experiment.state.removesuffix("/state"), RUN):
        yield Place(run, True, partial(_of_run, experiment, run))
    for state in _folders(experiment, f"{experiment.finetuned}/state", f"{RUN}/step-{{step}}/state"):
        yield Place(state, True, partial(_of_finetuning, experiment, state))
    for root in _roots(experiment):
        yield Place(root, False, partial(_left_unlocked, root))


def _roots(experiment: Experiment) -> list[Path]:
    """The experiment's own folders: its results, and what it has below the roots in `storage`."""
    storage = (Path(experiment.raw).parents[1], Path(experiment.shards).parents[1], _states(experiment))
    roots = dict.fromkeys([Path(experiment.results), *storage])
    return [root for root in roots if root.is_dir()]


def _states(experiment: Experiment) -> Path:
    return Path(experiment.state).parents[3]  # of pretrain/{size}-{attention}/seed-{seed}/state


def _folders(experiment: Experiment, pattern: str, tail: str) -> list[Path]:
    """The folders of a pattern for any run and step, but for links and what lies behind them."""
    root = Path(pattern.removesuffix(tail))
    found = root.glob(re.sub(r"{\w+}", "*", tail))
    return [folder for folder in sorted(found) if folder.is_dir() and _is_own(folder, root)]


def _is_own(path: Path, root: Path) -> bool:
    """Whether there is no link on the way from the root to a path, nor at its end."""
    return path.resolve() == root.resolve() / path.relative_to(root)


def _of_run(experiment: Experiment, folder: Path) -> Iterator[Item]:
    """Of a pre-training: superseded states beside its own, but for one that comes back, and what is surplus in that."""
    yield from (Item(SUPERSEDED, path) for path in superseded(folder) if not is_wanted(experiment, path))
    state = folder / "state"
    if not state.is_dir() or state.is_symlink():
        return
    hidden = sorted([*state.glob(".*"), *state.glob("*/.*")])
    yield from (Item(LEFTOVERS, path) for path in hidden if _is_leftover(path) or _is_half_checkpoint(path))
    run = run_of(experiment, facts(state / "identity.json"))
    if run and find_run(experiment, run).is_done:
        yield from _surplus(experiment, run, state)


def _surplus(experiment: Experiment, run: Run, state: Path) -> Iterator[Item]:
    """Of a finished run: all resume checkpoints but the last, if that is whole; weights of steps nobody asks for."""
    resume = sorted(state.glob("resume/step-*"))
    if resume and _step_of(resume[-1]) == experiment.final and _is_whole(resume[-1]):
        yield from (Item(SURPLUS, path) for path in resume[:-1] if not path.is_symlink())
    wanted = {*experiment.steps(run.size), experiment.final}
    for path in sorted(state.glob("weights/step-*")):
        if _step_of(path) not in wanted and not path.is_symlink():
            yield Item(WEIGHTS, path)


def _step_of(path: Path) -> int | None:
    found = STEP.match(path.name)
    return int(found[1]) if found else None


def _is_whole(checkpoint: Path) -> bool:
    """Whether the files of a checkpoint are as they were written."""
    hashes = facts(checkpoint / "checkpoint.json").get("sha256")
    return (
        isinstance(hashes, dict)
        and bool(hashes)
        and all(
            (checkpoint / name).is_file() and sha256_of(checkpoint / name) == expected
            for name, expected in hashes.items()
        )
    )


def _of_finetuning(experiment: Experiment, state: Path) -> Iterator[Item]:
    """Of the fine-tunings of a checkpoint: leftovers, and what no score of today is made of."""
    today = hash_of(experiment.finetuning)
    for task in sorted(folder for folder in state.iterdir() if folder.is_dir() and not folder.is_symlink()):
        yield from (Item(LEFTOVERS, path) for path in sorted(task.glob(".*")) if _is_leftover(path))
        published = records(state.parent / f"{task.name}.json")
        current = {_basis(record) for record in published}
        is_current = any(record.get("settings_hash") == today for record in published)
        for path in sorted(task.glob("seed-*.json")):
            record = record_of(path)
            if record is None or path.is_symlink() or _basis(record) in current:
                continue
            if record.get("settings_hash") != today or is_current:
                yield from (Item(STALE, each) for each in _with_companions(path))


def _is_half_checkpoint(path: Path) -> bool:
    """Whether a checkpoint was left half written, so long ago that no process elsewhere can be at it."""
    is_half = path.name.startswith(".step-") and path.suffix == ".tmp" and path.is_dir() and not path.is_symlink()
    return is_half and is_old(path, *path.iterdir())


def _basis(record: Values) -> tuple:
    """What a fine-tuning is of, but for the seed."""
    made = ("settings_hash", "checkpoint_sha256", "data_sha256", "precision", "attention_dropout")
    return tuple(record.get(key) for key in made)


def _with_companions(path: Path) -> list[Path]:
    """The files of one fine-tuning: its record, weights and their checksum, and its scores on other sets."""
    return sorted([*path.parent.glob(f"{path.stem}.*"), *path.parent.glob(f"robustness-{path.stem}-*.json")])


def _left_unlocked(root: Path) -> Iterator[Item]:
    """Temporary files outside the folders that have a lock."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "state" and not name.startswith("state.superseded-")]
        yield from (
            Item(LEFTOVERS, path) for path in (Path(folder, name) for name in sorted(names)) if _is_leftover(path)
        )


def _is_leftover(path: Path) -> bool:
    """Whether a temporary file was left by a process that is no more."""
    named = TEMPORARY.fullmatch(path.name)
    if not named or path.is_symlink() or is_running(int(named[2])):
        return False
    return is_old(path)


def _shown(experiment: Experiment, items: list[Item]) -> list[str]:
    """Each path that may go, under its kind, and what it frees."""
    if not items:
        return [f"Experiment {experiment.name}: nothing to remove"]
    total = data_size(sum(item.bytes for item in items))
    lines = [f"Experiment {experiment.name}: {total} may go"]
    for kind in dict.fromkeys(item.kind for item in items):
        chosen = [item for item in items if item.kind == kind]
        lines += [f"{kind}: {data_size(sum(item.bytes for item in chosen))}"]
        lines += [f"  {line}" for line in aligned([(str(item.path), data_size(item.bytes)) for item in chosen])]
    return lines


def _remove_all(experiment: Experiment, places: list[Place], wanted: set[Path]) -> None:
    """Remove what was shown and still may go, under the lock of its folder; say what was freed or skipped."""
    freed = 0
    for place in places:
        if not any(path.is_relative_to(place.folder) for path in wanted):
            continue
        if who := holder_elsewhere(place.folder):
            print(f"skipped: {place.folder}: in use by {who}, as it seems; if not, remove its file lock")
            continue
        try:
            with place.lock():
                for item in [item for item in place.find() if item.path in wanted]:
                    freed += item.bytes
                    _remove(item.path)
        except InputOutputError as error:
            print(f"skipped: {error}")
    print(f"freed {data_size(freed)}")


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; links in it are removed, not followed."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
