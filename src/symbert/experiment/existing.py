"""What exists of an experiment under today's settings: packed rows, GLUE's tables, runs. Reads only, takes no lock."""

import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbert.config import is_outdated, parts_of, source_of
from symbert.errors import SymbertError
from symbert.experiment.layout import Experiment
from symbert.files import is_running, read_json
from symbert.pretrain.guard import difference, recorded_settings
from symbert.pretrain.run import Run

CORPUS_SETTINGS = ("corpus_source", "embedded", "filter", "intake", "pack")  # any change invalidates the corpus
UNTOUCHED = 3600  # seconds without a write after which no process of another machine is taken to be at work

Values = dict[str, Any]


@dataclass(frozen=True)
class RunState:
    """How far a run is, as its folders show."""

    run: Run
    state: str  # done | running | preempted | failed | diverged | stopped | set aside | other settings | missing
    step: int  # completed
    note: str = ""  # why, or who

    @property
    def is_done(self) -> bool:
        """Whether it need not be trained any more."""
        return self.state == "done"


def read_json_or_none(path: Path) -> Any:
    """The content of a JSON file; None where it does not exist or cannot be read."""
    try:
        return read_json(path) if path.is_file() else None
    except (SymbertError, OSError):
        return None


def read_json_or_empty(path: Path) -> Values:
    """The mapping in a JSON file; an empty one where it cannot be read or holds something else."""
    values = read_json_or_none(path)
    return values if isinstance(values, dict) else {}


def agree(experiment: Experiment, *sections: str) -> bool:
    """Whether no existing settings file of these sections differs from today's configuration."""
    folder, values = f"{experiment.results}/settings", experiment.settings | experiment.own_tasks
    return not any(is_outdated(f"{folder}/{section}.json", values[section]) for section in sections)


def manifest_of(experiment: Experiment) -> Path:
    """The file that describes the packed rows."""
    return Path(experiment.shards) / "manifest.json"


def tokens_record(experiment: Experiment, part: str) -> Path:
    """The file that a part has once its documents are token ids."""
    return Path(experiment.results) / f"corpus/tokens/{part}.json"


def has_corpus(experiment: Experiment) -> bool:
    """Whether the rows are packed, under today's settings and of today's parts.

    A part that existed when the rows were packed, but is not in them, was left out: they were full without it.
    """
    file, wanted = manifest_of(experiment), parts_of(experiment.config)
    manifest = read_json_or_empty(file)
    parts = manifest.get("parts")
    packed = set(map(str, parts)) if isinstance(parts, list) else set()
    if not manifest or not agree(experiment, *CORPUS_SETTINGS) or not packed <= set(wanted):
        return False
    records = [tokens_record(experiment, part) for part in wanted if part not in packed]
    return all(one.is_file() and one.stat().st_mtime <= file.stat().st_mtime for one in records)


def share_of_corpus(experiment: Experiment) -> float:
    """Of the parts, the share that is token ids under today's settings; 1 once the rows are packed."""
    if has_corpus(experiment):
        return 1.0
    if not agree(experiment, "corpus_source", "embedded", "filter"):
        return 0.0
    parts = parts_of(experiment.config)
    return sum(tokens_record(experiment, part).is_file() for part in parts) / len(parts)


def missing_tasks(experiment: Experiment) -> list[str]:
    """The tasks whose rows are still to be downloaded from the hub."""
    if source_of(experiment.config, "glue") != "hub":
        return []
    raw = Path(experiment.results) / "glue/raw"
    return [task for task in experiment.tasks if not (raw / f"{task}.parquet").is_file()]


def run_states(experiment: Experiment) -> list[RunState]:
    """The states of all runs of the sweep."""
    return [run_state(experiment, run) for run in experiment.runs()]


def run_state(experiment: Experiment, run: Run) -> RunState:
    """The state of a run.

    `stopped` is one whose process ended without a word. `set aside` is one that comes back when it is started.
    """
    other, published = settings_changed(experiment, run), _published(experiment, run)
    if other is None and published == "":
        return RunState(run, "done", experiment.final)
    if aside := set_aside(experiment, run):
        return RunState(run, "set aside", _step_of(read_json_or_empty(aside / "status.json")), "comes back")
    if other is not None:
        return RunState(run, "other settings", 0, other)
    state = experiment.place(experiment.state, run)
    status = read_json_or_empty(state / "status.json")
    if who := holder(state.parent):
        return RunState(run, "running", _step_of(status), f"by {who}")
    if not status:
        return RunState(run, "missing", 0, f"published under other settings: {published}" if published else "")
    ended = status.get("state")
    name = "stopped" if ended in ("running", "done", None) else ended
    return RunState(run, name, _step_of(status), status.get("reason") or "")


def _step_of(status: Values) -> int:
    step = status.get("step")
    return step if isinstance(step, int) else 0


def settings_changed(experiment: Experiment, run: Run) -> str | None:
    """How the run in the state folder differs from the wanted one; None where they agree, or the folder has no run."""
    existing = read_json_or_empty(experiment.place(experiment.state, run) / "identity.json")
    return _difference(experiment, run, existing) or None if existing else None


def _published(experiment: Experiment, run: Run) -> str | None:
    """How the published run differs from the wanted one: '' where they agree, None where no run is published."""
    path = experiment.place(experiment.run, run) / "done.json"
    if not path.is_file():
        return None
    done = read_json_or_empty(path)
    if not isinstance(done.get("settings"), dict):
        return ""  # runs of early versions do not say
    corpus = {key: done[key] for key in ("corpus_hash",) if key in done}
    return _difference(experiment, run, {**vars(run), **done["settings"], **corpus})


def _difference(experiment: Experiment, run: Run, existing: Values) -> str:
    """What the device decides is unknown before a run, and the corpus hash before packing: neither is compared."""
    wanted = {**vars(run), **run.model, **recorded_settings(experiment.pretraining)}
    if wanted["precision"] == "auto":
        del wanted["precision"]
    if has_corpus(experiment):
        wanted["corpus_hash"] = read_json_or_empty(manifest_of(experiment)).get("hash")
    unknown = {"precision", "attention_dropout", "corpus_hash"} - wanted.keys()
    return difference({key: value for key, value in existing.items() if key not in unknown}, wanted)


def set_aside(experiment: Experiment, run: Run) -> Path | None:
    """The superseded state that comes back when the run is started, as `symbert.pretrain.guard` decides."""
    state = experiment.place(experiment.state, run)
    begun = (state / "identity.json").is_file() and settings_changed(experiment, run) is None
    if begun or experiment.config["on_settings_change"] != "supersede":
        return None
    return next((path for path in superseded(state.parent) if is_wanted(experiment, path)), None)


def superseded(folder: Path) -> list[Path]:
    """The superseded states in the folder of a run, but for links."""
    return [path for path in sorted(folder.glob("state.superseded-*")) if not path.is_symlink()]


def is_wanted(experiment: Experiment, state: Path) -> bool:
    """Whether a state, superseded or not, is of a run that is wanted today."""
    identity = read_json_or_empty(state / "identity.json")
    run = run_of(experiment, identity)
    return run is not None and not _difference(experiment, run, identity)


def run_of(experiment: Experiment, identity: Values) -> Run | None:
    """The run of the sweep that a state is of."""
    return next((run for run in experiment.runs() if vars(run).items() <= identity.items()), None)


def holder(directory: Path) -> str | None:
    """Who works in a folder, by its lease; None where that process is no more."""
    lease = read_json_or_empty(directory / "lock")
    if not isinstance(lease.get("process"), int) or "host" not in lease:
        return None
    if lease["host"] != platform.node():
        return holder_elsewhere(directory)
    return _named(lease) if is_running(lease["process"]) else None


def holder_elsewhere(directory: Path) -> str | None:
    """Who seems to work in a folder from another machine, whose lock may not be seen here.

    A run's status says whether it runs. Without a status, a file that was written within the hour does.
    """
    lease, status = read_json_or_empty(directory / "lock"), read_json_or_empty(directory / "state/status.json")
    if lease.get("host") in (None, platform.node()):
        return None
    seems_alive = status.get("state") == "running" if status else not is_old(directory / "lock", *directory.glob("*/*"))
    return _named(lease) if seems_alive else None


def is_old(*paths: Path) -> bool:
    """Whether none of these was written to within the hour."""
    return all(time.time() - path.lstat().st_mtime > UNTOUCHED for path in paths)


def _named(lease: Values) -> str:
    job = f", Slurm job {lease['slurm_job']}" if lease.get("slurm_job") else ""
    return f"process {lease.get('process')} on {lease['host']}{job}"
