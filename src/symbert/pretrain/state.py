"""How far each pre-training of an experiment is, under today's settings, and what of it is still to come. Reads only.

Takes no lock, and imports no torch.
"""

import math
import platform
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from symbert.cost import Cost, Files, Speed, Work, configured_speed, size_of
from symbert.files import is_running, read_json_or_empty, sha256_of
from symbert.hosts import ENCODER, HOSTS
from symbert.paths import Experiment, Run
from symbert.pretrain.guard import difference, recorded_settings
from symbert.pretrain.rows import held_out, rows_hash, rows_of
from symbert.pretrain.storage import FLOAT32, parameters_of, storage_of
from symbert.sizes import SIZES

UNTOUCHED = 3600  # seconds without a write after which no process of another machine is taken to be at work

Values = dict[str, Any]


@dataclass(frozen=True)
class RunState:
    """How far a run is, as its folders show."""

    run: Run
    state: str  # done | running | preempted | failed | diverged | stopped | set aside | other settings | missing
    step: int  # completed
    note: str = ""  # why, or who
    is_shared: bool = False  # done in the folders of the experiment that this one extends

    @property
    def is_done(self) -> bool:
        """Whether it need not be trained any more."""
        return self.state == "done"


def run_state(experiment: Experiment, run: Run) -> RunState:
    """The state of a run, here or where the extended experiment has it.

    `stopped` is one whose process ended without a word. `set aside` is one that comes back when it is started.
    """
    home = run_home(experiment, run)
    if home is not experiment:
        return RunState(run, "done", experiment.last_step(run.host), f"in {home.results}", is_shared=True)
    return _state_here(experiment, run)


def run_home(experiment: Experiment, run: Run) -> Experiment:
    """The experiment in whose folders a finished run is, or will be: of the same settings and rows."""

    def has_run(one: Experiment) -> bool:
        is_of_same_rows = one is experiment
        if not is_of_same_rows:
            is_of_same_rows = None is not rows_hash(one, run.host) == rows_hash(experiment, run.host)
        return is_of_same_rows and _state_here(one, run).is_done

    return experiment.home(has_run)


def _state_here(experiment: Experiment, run: Run) -> RunState:
    """The state of a run in this experiment's folders."""
    other, published = settings_changed(experiment, run), _published(experiment, run)
    if other is None and published == "":
        return RunState(run, "done", experiment.last_step(run.host))
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
        return "its done.json is damaged"
    corpus = {key: done[key] for key in ("corpus_hash",) if key in done}
    return _difference(experiment, run, {**run.facts, **done["settings"], **corpus})


def _difference(experiment: Experiment, run: Run, existing: Values) -> str:
    """What the device decides is unknown before a run, and the corpus hash before packing: neither is compared."""
    wanted = {**run.facts, **run.model, **recorded_settings(experiment.training(run.host))}
    if wanted["precision"] == "auto":
        del wanted["precision"]
    if known := rows_hash(experiment, run.host):
        wanted["corpus_hash"] = known
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
    runs = (run for run in experiment.pretrainings() if run.host == identity.get("model_host", ENCODER))
    return next((run for run in runs if run.facts.items() <= identity.items()), None)


def surplus_checkpoints(experiment: Experiment, run: Run, state: Path) -> list[Path]:
    """The checkpoints to resume a finished run from, but for the last; none where that is damaged."""
    resume = sorted(state.glob("resume/step-*"))
    if not resume or _step_in(resume[-1]) != experiment.last_step(run.host):
        return []
    hashes = read_json_or_empty(resume[-1] / "checkpoint.json").get("sha256")
    if not isinstance(hashes, dict) or not hashes:
        return []
    files = {resume[-1] / name: expected for name, expected in hashes.items()}
    is_whole = all(file.is_file() and sha256_of(file) == expected for file, expected in files.items())
    return [path for path in resume[:-1] if is_whole and not path.is_symlink()]


def surplus_weights(experiment: Experiment, run: Run, state: Path) -> list[Path]:
    """The kept weights of a finished run at steps that nothing asks for."""
    wanted, weights = (
        {*experiment.extracted_steps(run), experiment.last_step(run.host)},
        sorted(state.glob("weights/step-*")),
    )
    return [path for path in weights if _step_in(path) not in wanted and not path.is_symlink()]


def _step_in(path: Path) -> int | None:
    step = re.match(r"step-(\d+)", path.name)
    return int(step[1]) if step else None


def holder(directory: Path) -> str | None:
    """Who works in a folder, by its lease; None where that process has ended."""
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


def pretraining_work(experiment: Experiment, run: Run, done: int = 0) -> Work:
    """The steps of one run after the first `done`, with their evaluations, which are forward only."""
    settings, host, rows = experiment.training(run.host), HOSTS[run.host], rows_of(experiment, run.host)
    shape, left = SIZES[run.size], settings.steps - done
    evaluation = host.step_flops(shape, rows, held_out(experiment, run.host)) / 3
    evaluations = math.ceil(left / settings.evaluate_every) * evaluation
    return Work(left * host.step_flops(shape, rows, settings.batch_size) + evaluations, left * shape.num_hidden_layers)


def pretraining_cost(experiment: Experiment, state: RunState, speed: Speed) -> Cost:
    """Of one run; nothing of one that is elsewhere."""
    if state.is_shared:
        return Cost()
    whole = pretraining_work(experiment, state.run)
    return speed.cost(whole, Work() if state.is_done else pretraining_work(experiment, state.run, state.step))


def pretraining_speed(experiment: Experiment, run: Run) -> Speed:
    """The speed that finished runs of the same size, operator and recipe measured: the median of one device.

    Runs of this experiment come before those of others in results/, and the device of the newest run counts.
    """
    models = "*" if run.host == ENCODER else f"{run.host}/*"
    files = sorted(Path("results").glob(f"*/pretrain/{models}/seed-*/timing.json"))
    timings = {file: timing for file in files if _is_like(timing := read_json_or_empty(file), experiment, run)}
    timings = {file: timings[file] for file in timings if file.parts[1] == experiment.name} or timings
    if not timings:
        return configured_speed(experiment.config["rates"], SIZES[run.size])
    newest = max(timings, key=lambda file: str(timings[file].get("until", "")))
    device = timings[newest]["device"]
    flops = median(_flops_of_device(timing) for timing in timings.values() if timing["device"] == device)
    return Speed(device != "cpu", flops, 0.0, f"{newest.parts[1]} on {device}")


def _is_like(timing: Values, experiment: Experiment, run: Run) -> bool:
    """Whether a timing is whole, and of such a run."""
    wanted = {"size": run.size, "attention": run.attention, "recipe": experiment.config["recipe"]}
    numbers = [timing.get(key) for key in ("flops_per_second", "processes")]
    is_whole = bool(timing.get("device")) and all(type(one) in (int, float) and one > 0 for one in numbers)
    return is_whole and wanted.items() <= timing.items()


def _flops_of_device(timing: Values) -> float:
    """FLOP/s of one device: each process has a GPU, or else `threads` cores."""
    cores = timing.get("threads", 1) if timing["device"] == "cpu" else 1
    return timing["flops_per_second"] / (timing["processes"] * cores)


def pretraining_files(experiment: Experiment, state: RunState) -> Iterator[Files]:
    """What a run works in, and the weights of its checkpoints as models.

    A folder with another run stays beside its successor, and gives no room. Of a run that is elsewhere, only the
    checkpoints that are not extracted there.
    """
    parameters = parameters_of(state.run, rows_of(experiment, state.run.host).vocabulary_size)
    storage = storage_of(parameters, experiment.training(state.run.host))
    planned, folder = storage.weights_bytes + storage.resume_bytes, experiment.place(experiment.state, state.run)
    used = {"other settings": None, "set aside": set_aside(experiment, state.run)}.get(state.state, folder)
    to_come = 0 if state.is_done else max(planned - (size_of(used) if used else 0), 0)
    if not state.is_shared:
        yield Files("pretrain", "states of runs", "storage.checkpoints", folder, planned, to_come)
    for step in experiment.extracted_steps(state.run):
        if checkpoint_home(experiment, state.run, step) is not experiment:
            continue
        weights, extracted = FLOAT32 * parameters, extracted_weights(experiment, state.run, step)
        to_come = 0 if state.is_done and extracted.is_file() else weights
        yield Files("pretrain", "checkpoints", "results/", extracted.parent, weights, to_come)


def weights_of(experiment: Experiment, run: Run, step: int) -> str | None:
    """The sha256 of a step's weights, as the run noted it, or else of the extracted ones; None where neither exists."""
    home = run_home(experiment, run)
    noted = read_json_or_empty(home.place(home.state, run) / f"weights/step-{step:08d}.json").get("sha256")
    extracted = extracted_weights(experiment, run, step)
    return noted or (sha256_of(extracted) if extracted.is_file() else None)


def extracted_weights(experiment: Experiment, run: Run, step: int) -> Path:
    """The file of a step's weights as a model."""
    home = checkpoint_home(experiment, run, step)
    return home.place(home.checkpoint, run, step=step) / "model.safetensors"


def checkpoint_home(experiment: Experiment, run: Run, step: int) -> Experiment:
    """The experiment in whose folders an extracted step is, or will be: that of its run only where it is there."""
    home = run_home(experiment, run)
    return home if (home.place(home.checkpoint, run, step=step) / "model.safetensors").is_file() else experiment
