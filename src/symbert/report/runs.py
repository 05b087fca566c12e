"""Pre-training runs: curves of validation loss from done.json and metrics.jsonl, and speed from timing.json."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from symbert.errors import DataError, IntegrityError
from symbert.files import flaws, read_json, read_json_lines, sha256_of
from symbert.report.order import model_rank
from symbert.report.scores import is_number
from symbert.report.statistics import plateau_exit, spread

REMEDY = "run pretrain again"
DONE = {"size": str, "attention": str, "pretrain_seed": int, "steps": int}
POINT = {"split": str, "step": int, "loss": (int, float)}  # of a line of a validation
JSON_TYPES = {str: str, int: int, int | None: int, float | None: (int, float, type(None))}  # of a timing's fields


@dataclass(frozen=True)
class TrainedRun:
    """One run's validation losses (mean cross-entropy of masked tokens, nats) at its evaluation steps.

    Standard deviation of logits and entropy of attention (nats) are those of the untrained model, means over its
    layers; None for a run that did not log them.
    """

    size: str
    attention: str
    pretrain_seed: int
    steps: list[int]
    losses: list[float]
    logit_std: float | None = None
    attention_entropy: float | None = None
    attention_dropout: float | None = None  # None where the device does not decide it


@dataclass(frozen=True)
class Model:
    """The runs of one size and operator, one per pre-training seed, evaluated at the same steps."""

    runs: list[TrainedRun]

    @property
    def size(self) -> str:
        """The size of all runs."""
        return self.runs[0].size

    @property
    def attention(self) -> str:
        """The operator of all runs."""
        return self.runs[0].attention

    @property
    def steps(self) -> list[int]:
        """The evaluation steps of all runs."""
        return self.runs[0].steps

    @property
    def losses(self) -> np.ndarray:
        """Validation losses, `seed step`."""
        return np.array([run.losses for run in self.runs])

    @property
    def exits(self) -> list[int | None]:
        """Where each run leaves the plateau; None for one that stays on it, or that has none."""
        return [plateau_exit(run.steps, run.losses) for run in self.runs]


@dataclass(frozen=True)
class Timing:
    """Speed of one run, and what it ran on; a speed is None where no step was timed."""

    size: str
    attention: str
    pretrain_seed: int
    device: str
    processor: str  # name, and the instructions that are used
    precision: str
    threads: int
    processes: int
    micro_batch_size: int | None  # None where a process computes its whole share of a batch at once
    step_seconds: float | None  # median
    tokens_per_second: float | None
    mfu: float | None  # share of `peak_flops` that the model's FLOPs take
    peak_flops: float | None  # per second, measured on the device

    @property
    def machine(self) -> str:
        """All that two timings must share to be compared, in words."""
        device = f"cpu ({self.processor})" if self.device == "cpu" else self.device
        parts = [device, self.precision, f"{self.threads} thread{'s' if self.threads > 1 else ''}"]
        if self.processes > 1:
            parts.append(f"{self.processes} processes")
        if self.micro_batch_size is not None:
            parts.append(f"micro-batches of {self.micro_batch_size:,}")
        return ", ".join(parts)


def read_runs(
    done: list[Path], metrics: list[Path], steps: int, wanted: Iterable[Sequence[str | int]] = ()
) -> list[TrainedRun]:
    """Runs sorted by size, operator and seed; a run's two files lie in one directory.

    DataError names the file of a run that is unpaired, there twice, or of another length, two runs of different
    attention dropouts, and the first of the `wanted` (size, attention, pretrain_seed) that is not there; IntegrityError
    the metrics.jsonl that is not the run's.
    """
    if sorted(file.parent for file in done) != sorted(file.parent for file in metrics):
        raise DataError("runs: done and metrics are not of the same runs; give both files of each run")
    logs = {file.parent: file for file in metrics}
    runs = [_run(file, logs[file.parent], steps) for file in done]
    runs.sort(key=lambda run: (model_rank(run.size, run.attention), run.pretrain_seed))
    for run, following in pairwise(runs):
        if _name(run) == _name(following):
            raise DataError(f"runs: {_name(run)} is there twice; give it once")
    decided = [run for run in runs if run.attention_dropout is not None]
    for run in decided:
        if run.attention_dropout != decided[0].attention_dropout:
            raise DataError(
                f"runs: {_name(decided[0])} has attention_dropout {decided[0].attention_dropout}, {_name(run)} has "
                f"{run.attention_dropout}, as their devices decide for the recipe fast; run pretrain again on one kind "
                "of device"
            )
    present = {(run.size, run.attention, run.pretrain_seed) for run in runs}
    for size, attention, pretrain_seed in wanted:
        if (size, attention, pretrain_seed) not in present:
            raise DataError(f"runs: {size}-{attention} seed {pretrain_seed} is missing; run pretrain for it")
    return runs


def models_of(runs: list[TrainedRun]) -> list[Model]:
    """Sorted runs by size and operator; DataError when the seeds of one were evaluated at different steps."""
    models = [Model(list(group)) for _, group in groupby(runs, key=lambda run: (run.size, run.attention))]
    for model in models:
        for run in model.runs:
            if run.steps != model.steps:
                raise DataError(
                    f"runs: {_name(run)} was evaluated at other steps than {_name(model.runs[0])}; run pretrain again"
                )
    return models


def size_of(runs: list[TrainedRun]) -> str:
    """The size of all runs; DataError for runs of several."""
    for run, following in pairwise(runs):
        if run.size != following.size:
            raise DataError(f"runs: sizes {run.size} and {following.size} in one figure; draw one size at a time")
    return runs[0].size


def read_timings(files: list[Path], runs: list[TrainedRun], batch_size: int) -> list[Timing]:
    """The timing of each run, in the order of `runs`; DataError names the file or the run that has no partner.

    `batch_size` is in sequences per step, over all processes.
    """
    shape = {field.name: JSON_TYPES[field.type] for field in fields(Timing)}
    timings = {}
    for file in files:
        record = read_json(file, shape, REMEDY)
        share = batch_size // record["processes"]  # of the first process, which writes the file
        in_parts = record["micro_batch_size"] if record["micro_batch_size"] < share else None
        timing = Timing(**{key: record[key] for key in shape} | {"micro_batch_size": in_parts})
        timings[timing.size, timing.attention, timing.pretrain_seed] = timing
    keys = [(run.size, run.attention, run.pretrain_seed) for run in runs]
    for size, attention, seed in sorted(timings.keys() ^ keys):
        raise DataError(
            f"timing: {size}-{attention} seed {seed} has not all of done, metrics and timing; "
            "give the three files of each run"
        )
    return [timings[key] for key in keys]


def of_original(own: list[Timing], original: list[Timing]) -> float | None:
    """Mean step time in percent of that of `original` with the same seed on the same machine; None without a pair."""
    references = {(timing.pretrain_seed, timing.machine): timing.step_seconds for timing in original}
    pairs = [(timing.step_seconds, references.get((timing.pretrain_seed, timing.machine))) for timing in own]
    shares = [100 * step / reference for step, reference in pairs if step is not None and reference is not None]
    return spread(shares).mean if shares else None


def _name(run: TrainedRun) -> str:
    return f"{run.size}-{run.attention} seed {run.pretrain_seed}"


def _run(done: Path, log: Path, steps: int) -> TrainedRun:
    run = read_json(done, DONE, REMEDY)
    digest = sha256_of(log)
    if digest != run.get("metrics_sha256", digest):  # imported results and runs of older versions do not say
        expected = run["metrics_sha256"]
        raise IntegrityError(f"{log}: sha256 expected {expected}, found {digest}; delete it and {REMEDY}")
    records = []
    for number, record in enumerate(read_json_lines(log, REMEDY), start=1):
        for flaw in flaws(record, POINT if record.get("split") == "validation" else {}):
            raise DataError(f"{log}:{number}: {flaw}; {REMEDY}")
        records.append(record)
    if run["steps"] != steps:
        raise DataError(f"{done}: the run has {run['steps']} steps, expected {steps}; run pretrain again")
    settings = run.get("settings")
    dropout = settings.get("attention_dropout") if isinstance(settings, dict) else None
    key = run["size"], run["attention"], run["pretrain_seed"]
    return TrainedRun(*key, *_losses(log, records), *_initial(log, records), dropout)


def _losses(log: Path, records: list[dict]) -> tuple[list[int], list[float]]:
    points = [(record["step"], record["loss"]) for record in records if record.get("split") == "validation"]
    if not points or any(step >= following for (step, _), (following, _) in pairwise(points)):
        raise DataError(f"{log}: expected validation losses at increasing steps; run pretrain again")
    for step, loss in points:
        if not is_number(loss):
            raise DataError(
                f"{log}: the validation 'loss' at step {step} is {loss!r}, expected a finite number; run pretrain again"
            )
    return [step for step, _ in points], [loss for _, loss in points]


def _initial(log: Path, records: list[dict]) -> tuple[float | None, float | None]:
    """Mean over layers of what was logged of the untrained model: standard deviation of logits, attention entropy."""
    initial = next((record for record in records if record.get("split") == "initial"), None)
    if initial is None:
        return None, None
    layers = [initial.get(key) for key in ("logit_std", "attention_entropy")]
    if not all(isinstance(values, list) and values and all(map(is_number, values)) for values in layers):
        raise DataError(
            f"{log}: the initial line has no 'logit_std' and 'attention_entropy' per layer; run pretrain again"
        )
    deviations, entropies = layers
    return statistics.fmean(deviations), statistics.fmean(entropies)
