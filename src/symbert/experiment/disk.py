"""Whether an experiment fits the disks that `storage` names: what is still to be written, by file system."""

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from symbert.config import source_of
from symbert.corpus.plan import plan_of
from symbert.errors import InputOutputError
from symbert.experiment.existing import RunState, has_corpus, missing_tasks, set_aside
from symbert.experiment.layout import Experiment
from symbert.experiment.scores import extracted_weights, scored_seeds
from symbert.files import free_space
from symbert.pretrain.storage import FLOAT32, storage_of
from symbert.progress import data_size
from symbert.sizes import SIZES
from symbert.tasks import GLUE

GLUE_BYTES = 160_000_000  # GLUE's tables as published, of all tasks together; of each by its share of the rows


@dataclass(frozen=True)
class Files:
    """Files of one kind: bytes when all is done, and how many of them are not written yet."""

    stage: str
    kind: str
    key: str  # in the configuration: what to change when there is no room
    folder: Path
    planned: float
    to_come: float
    passing: bool = False  # gone before the shards are written


def files_of(experiment: Experiment, runs: list[RunState]) -> list[Files]:
    """All that an experiment with these runs writes, but for what is small."""
    files = [*_corpus_files(experiment), *(_state_files(experiment, state) for state in runs)]
    if source_of(experiment.config, "glue") == "hub":
        planned, folder = _glue_bytes(experiment.tasks), Path(experiment.results) / "glue"
        files.append(Files("glue", "tasks", "results/", folder, planned, glue_bytes_to_come(experiment)))
    for state in runs:
        for step in experiment.steps(state.run.size):
            files += _model_files(experiment, state, step)
    return files


def _corpus_files(experiment: Experiment) -> Iterator[Files]:
    corpus = Path(experiment.results) / "corpus"
    places = {
        "raw parts": ("storage.raw", Path(experiment.raw)),
        "filtered documents": ("results/", corpus / "filtered"),
        "token streams": ("results/", corpus / "tokens"),
        "shards": ("storage.shards", Path(experiment.shards)),
        "index of documents": ("storage.shards", Path(experiment.shards)),
    }
    done = has_corpus(experiment)
    for kind, planned in plan_of(experiment.config).disk.items():
        key, folder = places[kind]
        written = 0 if kind == "index of documents" else size_of(folder)
        passing = kind == "raw parts" and not experiment.config["corpus"]["keep_raw"]
        yield Files("corpus", kind, key, folder, planned, 0 if done else max(planned - written, 0), passing)


def _state_files(experiment: Experiment, state: RunState) -> Files:
    """What a run writes. A folder with another run stays beside its successor, and gives no room."""
    storage = storage_of(_parameters(experiment, state.run.size), experiment.pretraining)
    planned, folder = storage.weights_bytes + storage.resume_bytes, experiment.place(experiment.state, state.run)
    used = {"other settings": None, "set aside": set_aside(experiment, state.run)}.get(state.state, folder)
    to_come = 0 if state.is_done else max(planned - (size_of(used) if used else 0), 0)
    return Files("pretrain", "states of runs", "storage.checkpoints", folder, planned, to_come)


def _model_files(experiment: Experiment, state: RunState, step: int) -> Iterator[Files]:
    """A step's weights as a model, and those of its fine-tunings where they are kept."""
    weights = FLOAT32 * _parameters(experiment, state.run.size)
    extracted = extracted_weights(experiment, state.run, step)
    to_come = 0 if state.is_done and extracted.is_file() else weights
    yield Files("pretrain", "checkpoints", "results/", extracted.parent, weights, to_come)
    if experiment.config["glue"]["keep_finetuned"] and step == experiment.final:
        folder = experiment.place(experiment.finetuned, state.run, step=step) / "state"
        wanted = len(experiment.tasks) * len(experiment.finetune_seeds(state.run.size, step))
        kept = sum(map(len, scored_seeds(experiment, state, step).values()))
        planned, to_come = weights * wanted, weights * (wanted - kept)
        yield Files("glue", "fine-tuned weights", "glue.keep_finetuned", folder, planned, to_come)


def _parameters(experiment: Experiment, size: str) -> int:
    return SIZES[size].parameters(experiment.vocabulary_size)


def glue_bytes_to_come(experiment: Experiment) -> float:
    """Bytes of GLUE that are still to be downloaded."""
    return _glue_bytes(missing_tasks(experiment))


def _glue_bytes(tasks: list[str]) -> float:
    rows = {name: sum(task.official_rows.values()) for name, task in GLUE.items()}
    return GLUE_BYTES * sum(rows[task] for task in tasks) / sum(rows.values())


def by_mount(files: list[Files]) -> dict[Path, tuple[float, int, list[str]]]:
    """By file system: bytes to come at most at one time, bytes free, and the configuration's keys of what comes.

    Raw parts are gone when shards are written: of both the larger counts.
    """
    groups, free = defaultdict(list), {}
    for one in sorted(files, key=lambda one: -one.to_come):
        free_bytes, mount = free_space(one.folder)
        groups[mount].append(one)
        free[mount] = free_bytes
    mounts = {}
    for mount, group in groups.items():
        passing = sum(one.to_come for one in group if one.passing)
        shards = sum(one.to_come for one in group if one.kind == "shards" and passing)
        at_once = sum(one.to_come for one in group) - min(passing, shards)
        mounts[mount] = (at_once, free[mount], list(dict.fromkeys(one.key for one in group if one.to_come)))
    return mounts


def refuse_small(files: list[Files]) -> None:
    """InputOutputError when what is to come does not fit: first file system, the keys, what to do."""
    for mount, (needed, free, keys) in by_mount(files).items():
        if needed > free:
            movable = [key for key in keys if key.startswith("storage.")]
            larger = f"set '{movable[0]}' to" if movable else "make results/ a link to"
            raise InputOutputError(
                f"config: {', '.join(keys)}: {data_size(needed)} are still to be written on {mount}, where "
                f"{data_size(free)} are free; free space there, or {larger} a folder on a larger file system"
            )


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder, links not followed; 0 where it does not exist."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a temporary file, renamed meanwhile
                total += Path(place, name).lstat().st_size
    return total
