"""Pre-training runs as curves of validation loss, from their done.json and metrics.jsonl."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from symbert.errors import DataError, IntegrityError
from symbert.files import flaws, read_json, read_json_lines, sha256_of
from symbert.report.order import model_rank
from symbert.report.records import is_number
from symbert.report.statistics import plateau_exit

REMEDY = "run pretrain again"
DONE = {"size": str, "attention": str, "pretrain_seed": int, "steps": int}
POINT = {"split": str, "step": int, "loss": (int, float)}  # of a line of a validation


@dataclass(frozen=True)
class Run:
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

    runs: list[Run]

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


def read_runs(
    done: list[Path], metrics: list[Path], steps: int, wanted: Iterable[Sequence[str | int]] = ()
) -> list[Run]:
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
    _refuse_two_dropouts(runs)
    refuse_absent(runs, wanted)
    return runs


def _refuse_two_dropouts(runs: list[Run]) -> None:
    told = [run for run in runs if run.attention_dropout is not None]
    for run in told:
        if run.attention_dropout != told[0].attention_dropout:
            raise DataError(
                f"runs: {_name(told[0])} has attention_dropout {told[0].attention_dropout}, {_name(run)} has "
                f"{run.attention_dropout}, as their devices decide for the recipe fast; run pretrain again on one kind "
                "of device"
            )


def refuse_absent(runs: list[Run], wanted: Iterable[Sequence[str | int]]) -> None:
    """DataError for the first of the wanted runs (size, attention, pretrain_seed) that is not there."""
    present = {(run.size, run.attention, run.pretrain_seed) for run in runs}
    for size, attention, pretrain_seed in wanted:
        if (size, attention, pretrain_seed) not in present:
            raise DataError(f"runs: {size}-{attention} seed {pretrain_seed} is missing; run pretrain for it")


def models_of(runs: list[Run]) -> list[Model]:
    """Sorted runs by size and operator; DataError when the seeds of one were evaluated at different steps."""
    models = [Model(list(group)) for _, group in groupby(runs, key=lambda run: (run.size, run.attention))]
    for model in models:
        for run in model.runs:
            if run.steps != model.steps:
                raise DataError(
                    f"runs: {_name(run)} was evaluated at other steps than {_name(model.runs[0])}; run pretrain again"
                )
    return models


def size_of(runs: list[Run]) -> str:
    """The size of all runs; DataError when there are several."""
    for run, following in pairwise(runs):
        if run.size != following.size:
            raise DataError(f"runs: sizes {run.size} and {following.size} in one figure; draw one size at a time")
    return runs[0].size


def _name(run: Run) -> str:
    return f"{run.size}-{run.attention} seed {run.pretrain_seed}"


def _run(done: Path, log: Path, steps: int) -> Run:
    run = read_json(done, DONE, REMEDY)
    found = sha256_of(log)
    if found != run.get("metrics_sha256", found):  # imported results and runs of older versions do not say
        expected = run["metrics_sha256"]
        raise IntegrityError(f"{log}: sha256 expected {expected}, found {found}; delete it and {REMEDY}")
    records = list(_records(log))
    if run["steps"] != steps:
        raise DataError(f"{done}: the run has {run['steps']} steps, expected {steps}; run pretrain again")
    settings = run.get("settings")
    dropout = settings.get("attention_dropout") if isinstance(settings, dict) else None
    key = run["size"], run["attention"], run["pretrain_seed"]
    return Run(*key, *_losses(log, records), *_initial(log, records), dropout)


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


def _records(log: Path) -> Iterator[dict]:
    for number, record in enumerate(read_json_lines(log, REMEDY), start=1):
        for flaw in flaws(record, POINT if record.get("split") == "validation" else {}):
            raise DataError(f"{log}:{number}: {flaw}; {REMEDY}")
        yield record
