"""Whether an experiment fits the disks that `storage` names: what is still to be written, by file system."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from symbert.config import source_of
from symbert.corpus.plan import plan_of
from symbert.errors import InputOutputError
from symbert.experiment.existing import FoundRun, set_aside
from symbert.experiment.inputs import has_corpus, missing_tasks
from symbert.experiment.jobs import Job, count_by_stage
from symbert.experiment.layout import Experiment
from symbert.experiment.scores import extracted_of, scores_found
from symbert.files import free_space
from symbert.glue.tasks import GLUE
from symbert.pretrain.storage import FLOAT32, storage_of
from symbert.progress import data_size
from symbert.sizes import SIZES

GLUE_BYTES = 160_000_000  # GLUE's tables as published, of all tasks together; of each by its share of the rows
PASSING = "raw parts"  # are gone when shards are written, unless corpus.keep_raw


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


def files_of(experiment: Experiment, runs: list[FoundRun]) -> list[Files]:
    """All that an experiment with these runs writes, but for what is small."""
    return [*_corpus(experiment), *_pretraining(experiment, runs), *_tasks(experiment), *_finetuning(experiment, runs)]


def written_by(experiment: Experiment, files: list[Files], jobs: Iterable[Job]) -> list[Files]:
    """Those of the files that these jobs write; of the corpus all when there is any job of it."""
    patterns = {
        "pretrain_model": experiment.state,
        "download_task": f"{experiment.results}/glue",
        "extract_checkpoint": experiment.checkpoint,
        "finetune": f"{experiment.finetuned}/state",
    }
    folders = {Path(patterns[rule].format(**wildcards)) for rule, wildcards in jobs if rule in patterns}
    corpus = count_by_stage(experiment, jobs)["corpus"]
    return [one for one in files if one.folder in folders or (corpus and one.stage == "corpus")]


def refuse_small(files: list[Files]) -> None:
    """InputOutputError when what is to come does not fit: first file system, the keys, what to do."""
    for mount, (needed, free, keys) in by_mount(files).items():
        if needed > free:
            raise InputOutputError(
                f"config: {', '.join(keys)}: {data_size(needed)} are still to be written on {mount}, where "
                f"{data_size(free)} are free; free space there, or {_remedy(keys)}"
            )


def _remedy(keys: list[str]) -> str:
    """What moves the most elsewhere."""
    movable = [key for key in keys if key.startswith("storage.")]
    if movable:
        return f"set '{movable[0]}' to a folder on a larger file system"
    return "make results/ a link to a folder on a larger file system"


def by_mount(files: list[Files]) -> dict[Path, tuple[float, int, list[str]]]:
    """By file system: bytes to come at most at one time, bytes free, and the configuration's keys of what comes."""
    groups, free = defaultdict(list), {}
    for one in files:
        free_bytes, mount = free_space(one.folder)
        groups[mount].append(one)
        free[mount] = free_bytes
    return {mount: (_at_once(group), free[mount], _keys(group)) for mount, group in groups.items()}


def _at_once(files: list[Files]) -> float:
    """Raw parts are gone when shards are written: the larger of both counts."""
    passing = sum(one.to_come for one in files if one.passing)
    shards = sum(one.to_come for one in files if one.kind == "shards" and passing)
    return sum(one.to_come for one in files) - min(passing, shards)


def _keys(files: list[Files]) -> list[str]:
    ordered = sorted(files, key=lambda one: -one.to_come)
    return list(dict.fromkeys(one.key for one in ordered if one.to_come))


def _corpus(experiment: Experiment) -> list[Files]:
    config, done = experiment.config, has_corpus(experiment)
    disk, results = plan_of(config).disk, Path(experiment.results) / "corpus"
    places = {
        "raw parts": ("storage.raw", Path(experiment.raw)),
        "filtered documents": ("results/", results / "filtered"),
        "token streams": ("results/", results / "tokens"),
        "shards": ("storage.shards", Path(experiment.shards)),
        "index of documents": ("storage.shards", Path(experiment.shards)),
    }
    found = []
    for kind, (key, folder) in places.items():
        there = 0 if kind == "index of documents" else size_of(folder)
        to_come = 0 if done else max(disk[kind] - there, 0)
        passing = kind == PASSING and not config["corpus"]["keep_raw"]
        found.append(Files("corpus", kind, key, folder, disk[kind], to_come, passing))
    return found


def _pretraining(experiment: Experiment, runs: list[FoundRun]) -> list[Files]:
    files = []
    for found in runs:
        planned = storage_of(_parameters(experiment, found.run.size), experiment.pretraining)
        whole = planned.weights_bytes + planned.resume_bytes
        to_come = 0 if found.is_done else max(whole - _there(experiment, found), 0)
        state = experiment.place(experiment.state, found.run)
        files.append(Files("pretrain", "states of runs", "storage.checkpoints", state, whole, to_come))
    return files


def _there(experiment: Experiment, found: FoundRun) -> int:
    """Bytes that a run goes on from. One of other settings stays beside its successor, and gives no room."""
    state = experiment.place(experiment.state, found.run)
    chosen = {"other settings": None, "set aside": set_aside(experiment, found.run)}.get(found.state, state)
    return size_of(chosen) if chosen else 0


def _tasks(experiment: Experiment) -> list[Files]:
    if source_of(experiment.config, "glue") != "hub":
        return []
    planned, to_come = _glue_bytes(experiment.tasks), glue_bytes_to_come(experiment)
    return [Files("glue", "tasks", "results/", Path(experiment.results) / "glue", planned, to_come)]


def glue_bytes_to_come(experiment: Experiment) -> float:
    """Bytes of GLUE that are still to be downloaded."""
    return _glue_bytes(missing_tasks(experiment))


def _glue_bytes(tasks: Iterable[str]) -> float:
    rows = {name: sum(task.official_rows.values()) for name, task in GLUE.items()}
    return GLUE_BYTES * sum(rows[task] for task in tasks) / sum(rows.values())


def _finetuning(experiment: Experiment, runs: list[FoundRun]) -> list[Files]:
    return [
        one for found in runs for step in experiment.steps(found.run.size) for one in _models(experiment, found, step)
    ]


def _models(experiment: Experiment, found: FoundRun, step: int) -> Iterator[Files]:
    """A step's weights as a model, and those of its fine-tunings where they are kept."""
    weights, extracted = FLOAT32 * _parameters(experiment, found.run.size), extracted_of(experiment, found.run, step)
    to_come = 0 if found.is_done and extracted.is_file() else weights
    yield Files("glue", "checkpoints", "results/", extracted.parent, weights, to_come)
    if experiment.config["glue"]["keep_finetuned"] and step == experiment.final:
        state = experiment.place(experiment.finetuned, found.run, step=step) / "state"
        wanted = len(experiment.tasks) * len(experiment.finetune_seeds(found.run.size, step))
        there = sum(map(len, scores_found(experiment, found, step).values()))
        kept, left = weights * wanted, weights * (wanted - there)
        yield Files("glue", "fine-tuned weights", "glue.keep_finetuned", state, kept, left)


def _parameters(experiment: Experiment, size: str) -> int:
    return SIZES[size].parameters(experiment.vocabulary_size)


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder, links not followed; 0 where there is none."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a temporary file, renamed meanwhile
                total += Path(place, name).lstat().st_size
    return total
