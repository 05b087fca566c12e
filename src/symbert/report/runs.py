"""Pre-training runs as curves of validation loss, from their done.json and metrics.jsonl."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from symbert.errors import DataError
from symbert.files import read_json
from symbert.report.order import model_rank


@dataclass(frozen=True)
class Run:
    """One run's validation losses (mean cross-entropy of masked tokens, nats) at its evaluation steps."""

    size: str
    attention: str
    pretrain_seed: int
    steps: list[int]
    losses: list[float]


def read_runs(done: list[Path], metrics: list[Path], steps: int) -> list[Run]:
    """Runs of one size, sorted by operator and seed; a run's two files lie in one directory.

    DataError names the file of a run that is unpaired, there twice, of another size or length.
    """
    if sorted(file.parent for file in done) != sorted(file.parent for file in metrics):
        raise DataError("runs: done and metrics are not of the same runs; give both files of each run")
    logs = {file.parent: file for file in metrics}
    runs = [_run(file, logs[file.parent], steps) for file in done]
    runs.sort(key=lambda run: (model_rank(run.size, run.attention), run.pretrain_seed))
    for run, following in pairwise(runs):
        if run.size != following.size:
            raise DataError(f"runs: sizes {run.size} and {following.size} in one figure; draw one size at a time")
        if (run.attention, run.pretrain_seed) == (following.attention, following.pretrain_seed):
            raise DataError(f"runs: {run.size}-{run.attention} seed {run.pretrain_seed} is there twice; give it once")
    return runs


def _run(done: Path, log: Path, steps: int) -> Run:
    run = read_json(done)
    if run["steps"] != steps:
        raise DataError(f"{done}: the run has {run['steps']} steps, expected {steps}; run pretrain again")
    points = [(record["step"], record["loss"]) for record in _records(log) if record.get("split") == "validation"]
    if not points or any(step >= following for (step, _), (following, _) in pairwise(points)):
        raise DataError(f"{log}: expected validation losses at increasing steps; run pretrain again")
    if not all(isinstance(loss, int | float) and math.isfinite(loss) for _, loss in points):
        raise DataError(f"{log}: a validation loss is not a finite number; run pretrain again")
    return Run(
        run["size"], run["attention"], run["pretrain_seed"], *(list(values) for values in zip(*points, strict=True))
    )


def _records(log: Path) -> Iterator[dict]:
    with open(log, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield json.loads(line)
            except ValueError:
                raise DataError(f"{log}:{number}: not JSON; run pretrain again") from None
