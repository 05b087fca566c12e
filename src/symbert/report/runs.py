"""Pre-training runs: validation losses from done.json and metrics.jsonl, as data frames."""

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError, IntegrityError
from symbert.files import flaws, read_json, read_json_lines, sha256_of
from symbert.report.machines import RUN
from symbert.report.order import model_rank
from symbert.report.scores import REMEDY, is_number

POINT = {"split": str, "step": int, "loss": (int, float)}  # of a line of a validation
INITIAL = ("logit_std", "attention_entropy")  # of the line of the untrained model, a number per layer
COLUMNS = (*RUN, "step", "loss", *INITIAL)


def read_runs(folders: list[Path], steps: int, wanted: Iterable[Sequence[str | int]] = ()) -> pd.DataFrame:
    """A row per validation of each run, sorted by size, operator and seed.

    `loss` is the mean cross-entropy of masked tokens (nats). `logit_std` and `attention_entropy` (nats) are those of
    the untrained model, means over its layers, alike in all rows of a run; NaN for a run that did not log them.
    DataError names the file of a run that is there twice or of another length, two runs of different attention
    dropouts, and the first of the `wanted` (size, attention, pretrain_seed) that is not there; IntegrityError the
    metrics.jsonl that is not the run's.
    """
    runs = [read_run(folder / "done.json", folder / "metrics.jsonl") for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        if run["steps"] != steps:
            raise DataError(f"{folder}/done.json: the run has {run['steps']} steps, expected {steps}; {REMEDY}")
    runs.sort(key=lambda run: (model_rank(run["size"], run["attention"]), run["pretrain_seed"]))
    present = [tuple(run[key] for key in RUN) for run in runs]
    for run, following in pairwise(present):
        if run == following:
            raise DataError(f"runs: {run_name(*run)} is there twice; name its folder once")
    decided = [run for run in runs if run["attention_dropout"] is not None]
    for run in decided:
        if run["attention_dropout"] != decided[0]["attention_dropout"]:
            one, other = (f"{run_name(*(each[key] for key in RUN))} has" for each in (decided[0], run))
            raise DataError(
                f"runs: {one} attention_dropout {decided[0]['attention_dropout']}, {other} {run['attention_dropout']}, "
                "as their devices decide for the recipe fast; delete them and run again on one kind of device"
            )
    known = set(present)
    for run in wanted:
        if tuple(run) not in known:
            raise DataError(f"runs: {run_name(*run)} is missing; run again")
    return (
        pd.DataFrame(runs, columns=COLUMNS)
        .explode(["step", "loss"], ignore_index=True)
        .astype({"step": int, "loss": float, **dict.fromkeys(INITIAL, float)})
    )


def losses_of(runs: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Validation losses by size and operator: a row per pre-training seed, a column per step.

    DataError when the seeds of one were evaluated at different steps.
    """
    models = {}
    for model, part in runs.groupby(["size", "attention"], sort=False):
        models[model] = losses = part.pivot(index="pretrain_seed", columns="step", values="loss")
        for seed in losses.index[(losses.isna() != losses.iloc[0].isna()).any(axis=1)]:
            one, other = run_name(*model, seed), run_name(*model, losses.index[0])
            raise DataError(f"runs: {one} was evaluated at other steps than {other}; {REMEDY}")
    return models


def run_name(size: str, attention: str, pretrain_seed: int) -> str:
    """A run in words."""
    return f"{size}-{attention} seed {pretrain_seed}"


def read_run(done: Path, log: Path) -> dict[str, Any]:
    """The columns of a run, with lists of steps and losses, its last step, and the attention dropout where the device
    decides it."""
    run = read_json(done, RUN | {"steps": int}, REMEDY)
    lines = read_log(log, run)
    points = [(line["step"], line["loss"]) for line in lines if line.get("split") == "validation"]
    if not points or any(step >= following for (step, _), (following, _) in pairwise(points)):
        raise DataError(f"{log}: expected validation losses at increasing steps; {REMEDY}")
    for step, loss in points:
        if not is_number(loss):
            raise DataError(
                f"{log}: the validation 'loss' at step {step} is {loss!r}, expected a finite number; {REMEDY}"
            )
    settings = run.get("settings")
    return {
        **{key: run[key] for key in (*RUN, "steps")},
        "step": [step for step, _ in points],
        "loss": [loss for _, loss in points],
        **_initial(log, lines),
        "attention_dropout": settings.get("attention_dropout") if isinstance(settings, dict) else None,
    }


def read_log(log: Path, run: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the metrics.jsonl of a run, given its done.json; DataError or IntegrityError names what is wrong."""
    digest = sha256_of(log)
    if digest != run.get("metrics_sha256", digest):  # imported results do not say
        expected = run["metrics_sha256"]
        raise IntegrityError(f"{log}: sha256 expected {expected}, found {digest}; delete it and {REMEDY}")
    lines = []
    for number, line in enumerate(read_json_lines(log, REMEDY), start=1):
        for flaw in flaws(line, POINT if line.get("split") == "validation" else {}):
            raise DataError(f"{log}:{number}: {flaw}; {REMEDY}")
        lines.append(line)
    return lines


def _initial(log: Path, lines: list[dict]) -> dict[str, float]:
    """Means over layers of what was logged of the untrained model; empty where nothing was."""
    for line in lines:
        if line.get("split") == "initial":
            layers = {key: line.get(key) for key in INITIAL}
            for values in layers.values():
                if not (isinstance(values, list) and values and all(map(is_number, values))):
                    raise DataError(
                        f"{log}: the initial line has no 'logit_std' and 'attention_entropy' per layer; {REMEDY}"
                    )
            return {key: statistics.fmean(values) for key, values in layers.items()}
    return {}
