"""How far an experiment is: which name is which path, and what of it exists. Reads only."""

import platform
import time
from pathlib import Path

from symbert.console import aligned
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_experiment
from symbert.files import is_running, read_json_or_empty
from symbert.paths import Run

UNTOUCHED = 3600  # seconds without a write after which no process of another machine is taken to be at work


def status(
    name: str | None = None,
    /,
    scale: str | None = None,
    configfile: list[Path] | None = None,
    config: list[str] | None = None,
) -> None:
    """Print the path and the state of each pre-training, and which scores of each checkpoint exist.

    Of the experiment of that name, as it was started last, or with the options of Snakemake, and --scale, as one would
    be started. Run it in the folder with results/; nothing is changed.
    """
    print("\n".join(status_of(read_experiment(scale, configfile, config, name))))


def status_of(experiment: Experiment) -> list[str]:
    """The status as lines."""
    runs = experiment.pretrainings()
    states = {run: state_of(experiment, run) for run in runs}
    done = sum(state == "done" for state in states.values())
    page = f"{experiment.folder}/report/report.html"
    is_made = Path(f"{experiment.folder}/report/experiment-{experiment.key}.json").is_file()
    return [
        f"Experiment {experiment.name}: {done} of {len(runs)} pre-trainings done; "
        f"{page if is_made else 'no report of this configuration yet'}",
        "",
        *(f"{file}: {'there' if Path(file).is_file() else 'missing'}" for file in _manifests(experiment)),
        "",
        *(f"{run}: {experiment.run_folder(run)}: {state}" for run, state in states.items()),
        *_scores(experiment),
    ]


def _manifests(experiment: Experiment) -> list[str]:
    return list(dict.fromkeys(experiment.manifest(run) for run in experiment.pretrainings()))


def _scores(experiment: Experiment) -> list[str]:
    """A row per checkpoint: whether it is extracted, and whether its scores exist; '.' where none are asked for."""
    asked = dict(experiment.asked_scores())
    names = {name: ("noise: " if one.kind == "robustness" else "") + name for name, one in experiment.scorings.items()}
    rows = []
    for run in experiment.pretrainings():
        for step in experiment.extracted_steps(run):
            files = {scoring.name: file for file, (of, at, scoring) in asked.items() if (of, at) == (run, step)}
            weights = f"{experiment.checkpoint(run, step)}/model.safetensors"
            cells = [_exists(files[name]) if name in files else "." for name in names]
            rows.append((str(run), f"{step:,}", _exists(weights), *cells))
    return ["", *aligned([("checkpoint", "step", "extracted", *names.values()), *rows])] if rows else []


def _exists(file: str) -> str:
    return "yes" if Path(file).is_file() else "no"


def state_of(experiment: Experiment, run: Run) -> str:
    """How a run stands: done, missing, or its last step and why it is not done."""
    folder = Path(experiment.run_folder(run))
    if (folder / "done.json").is_file():
        return "done"
    status = read_json_or_empty(folder / "state/status.json")
    who = holder(folder)
    if not status and who is None:
        return "missing"
    step = f"step {status.get('step', 0):,} of {experiment.last_step(run):,}"
    if who:
        return f"{step}, running by {who}"
    ended = status.get("state")
    state = "stopped" if ended in ("running", "done", None) else ended  # whose process ended without a word
    return f"{step}, {state}{f': {reason}' if (reason := status.get('reason')) else ''}"


def holder(folder: Path) -> str | None:
    """Who works in a folder, by its lease; None where that process has ended.

    The process of another machine is taken to be at work if something was written in the folder within the hour.
    """
    lease = read_json_or_empty(folder / "lock")
    if not isinstance(lease.get("process"), int) or "host" not in lease:
        return None
    here = lease["host"] == platform.node()
    is_at_work = is_running(lease["process"]) if here else not is_old(folder / "lock", *folder.glob("*/*"))
    job = f", Slurm job {lease['slurm_job']}" if lease.get("slurm_job") else ""
    return f"process {lease['process']} on {lease['host']}{job}" if is_at_work else None


def is_old(*paths: Path) -> bool:
    """Whether none of these was written to within the hour."""
    return all(time.time() - path.lstat().st_mtime > UNTOUCHED for path in paths)
