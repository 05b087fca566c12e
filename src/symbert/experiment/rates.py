"""How fast models are computed: as finished runs measured it, or else as `rates` in the configuration says."""

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from symbert.experiment.layout import Experiment
from symbert.experiment.operations import Work, finetuning, total
from symbert.experiment.reading import Values, facts
from symbert.pretrain.job import Run
from symbert.report.scores import is_number
from symbert.sizes import SIZES


@dataclass(frozen=True)
class Speed:
    """How fast one device computes one kind of model."""

    on_gpu: bool
    flops: float  # model operations per second
    layer_seconds: float  # of a step, per layer, beside its arithmetic
    measured: str | None  # where, and on what; None where configured

    def hours(self, work: Work) -> float:
        """Of one device."""
        return (work.flops / self.flops + work.layers * self.layer_seconds) / 3600


def configured(experiment: Experiment, size: str) -> Speed:
    """The speed that `rates` gives a size."""
    rates, device = experiment.config["rates"], "gpu" if SIZES[size].needs_gpu else "core"
    return Speed(device == "gpu", rates[f"{device}_flops"], rates[f"{device}_layer_seconds"], None)


def speed_of(experiment: Experiment, run: Run) -> Speed:
    """The speed of a pre-training: measured where runs of its size, operator and recipe are finished.

    Those of this experiment stand before those of others in results/. Of these count those on the device of the
    newest, and of several the median.
    """
    runs = {path: facts(path) for path in sorted(Path("results").glob("*/pretrain/*/seed-*/timing.json"))}
    alike = {path: told for path, told in runs.items() if _is_like(told, experiment, run)}
    chosen = {path: told for path, told in alike.items() if path.parts[1] == experiment.name} or alike
    if not chosen:
        return configured(experiment, run.size)
    newest = max(chosen, key=lambda path: str(chosen[path].get("until", "")))
    device = chosen[newest]["device"]
    flops = median(_flops(told) for told in chosen.values() if told["device"] == device)
    return Speed(device != "cpu", flops, 0.0, f"{newest.parts[1]} on {device}")


def _flops(timing: Values) -> float:
    """Of one device: of a run on GPUs each process has one; of one on a CPU each has `threads` cores."""
    cores = timing.get("threads", 1) if timing["device"] == "cpu" else 1
    return timing["mfu"] * timing["peak_flops"] / (timing["processes"] * cores)


def finetuning_speed_of(experiment: Experiment, size: str) -> Speed:
    """The speed of fine-tuning: measured where this experiment has fine-tuned a checkpoint of the size.

    A job that only added to what an earlier one had left was short, so the slowest one counts.
    """
    speed, slowest = configured(experiment, size), 0.0
    for run, step in experiment.checkpoints():
        seconds = _seconds_of_job(experiment, run, step) if run.size == size else None
        if seconds is not None:
            seeds = len(experiment.finetune_seeds(size, step))
            work = total(finetuning(experiment, size, task, seeds) for task in experiment.tasks)
            slowest = max(slowest, seconds / 3600 / speed.hours(work))
    if not slowest:
        return speed
    cores = _cores(experiment, size)
    slowest *= cores or 1
    return replace(
        speed,
        on_gpu=speed.on_gpu and not cores,
        flops=speed.flops / slowest,
        layer_seconds=speed.layer_seconds * slowest,
        measured=experiment.name,
    )


def _cores(experiment: Experiment, size: str) -> int:
    """The cores of each process where this experiment's models of a size were trained on a CPU; else 0."""
    timings = [facts(experiment.place(experiment.run, run) / "timing.json") for run in experiment.runs([size])]
    return max((told.get("threads", 1) for told in timings if told.get("device") == "cpu"), default=0)


def _seconds_of_job(experiment: Experiment, run: Run, step: int) -> float | None:
    """What Snakemake measured of the job that fine-tuned a checkpoint; None where it did not finish."""
    name = f"{run.size}-{run.attention}-seed-{run.pretrain_seed}-step-{step}.tsv"
    path = Path(experiment.results) / "benchmarks/finetune" / name
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        measured = [row["s"] for row in csv.DictReader(file, delimiter="\t")]
    return float(measured[-1]) if measured else None


def _is_like(timing: Values, experiment: Experiment, run: Run) -> bool:
    """Whether a timing is whole, and of such a run."""
    wanted = {"size": run.size, "attention": run.attention, "recipe": experiment.config["recipe"]}
    said = all(timing.get(key) == value for key, value in wanted.items())
    numbers = [timing.get(key) for key in ("mfu", "peak_flops", "processes")]
    return said and bool(timing.get("device")) and all(is_number(number) and number > 0 for number in numbers)
