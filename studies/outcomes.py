"""The runs of docs/findings/start-and-symmetry/runs.csv with their outcomes, and how pages show them.

The outcome of a run is the step at which its validation loss crosses a level for good, on the line between two
evaluations, or the sum of the learning rates up to there; a run that does not cross counts as its last step.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

from studies.collected import RUNS, Point
from studies.exits import plateau_exit
from symbert.pretrain.compute import linear_rate

LEVEL = 2.8  # nats, halfway between a plateau and the end
LEVELS = {
    "directed-48": 2.20,
    "addressed-48": 2.34,
    "swapped-48": 2.51,
    "cycled-48": 2.50,
    "repeated-48": 2.59,
    "chained-48": 2.10,
    "neighbours-48": 2.63,
    "documentation-words-48": 3.61,
}  # of texts with other plateaus: direction.md, word-pieces.md
NEARBY = (0.2, -0.2, -0.6)  # of other levels, relative to a text's own
LAYERS = {"tiny": 2, "deep4": 4, "deep8": 8}
OPERATORS = {  # narrow, wide, color
    "original": ("original", "original-wide", "#000000"),
    "pairwise": ("pairwise-narrow", "pairwise", "#0072B2"),
    "symmetric": ("symmetric", "symmetric-wide", "#E69F00"),
}
COPIES = {layers: {"text": "copying-48", "size": size, "learning_rate": 1e-3} for size, layers in LAYERS.items()}
RATES = {rate: COPIES[2] | {"learning_rate": rate} for rate in (5e-4, 1e-3, 2e-3)}


def crossing(losses: np.ndarray, every: int, level: float) -> float:
    """The step from which the loss stays at or below the level; NaN where it ends above."""
    above = np.flatnonzero(losses > level)
    if len(above) == 0 or above[-1] == len(losses) - 1:
        return np.nan if len(above) else float(every)
    last = above[-1]
    return every * (last + 1 + (losses[last] - level) / (losses[last] - losses[last + 1]))


def travelled(step: float, peak: float, warmup: int, schedule: int) -> float:
    """The sum of the learning rates of the steps before `step`, which need not be whole."""
    rates = [linear_rate(number, peak, warmup, schedule) for number in range(int(np.ceil(step)))]
    return float(np.interp(step, range(len(rates) + 1), np.cumsum([0.0, *rates])))


def outcomes(run: Any) -> dict[str, Any]:
    """The step and the distance of a run's crossing, whether it has not escaped, and its exit by `plateau_exit`."""
    losses = np.array(run.losses.split(), float)
    steps = range(run.evaluate_every, run.steps + 1, run.evaluate_every)
    level = LEVELS.get(run.text, LEVEL)
    levels = {"step": level, **{f"step {shift:+}": round(level + shift, 2) for shift in NEARBY}}
    crossings = {name: crossing(losses, run.evaluate_every, level) for name, level in levels.items()}
    found: dict[str, Any] = {name: run.steps if np.isnan(step) else step for name, step in crossings.items()}
    found["not_escaped"] = bool(np.isnan(crossings["step"]))
    found["distance"] = travelled(found["step"], run.learning_rate, run.warmup_steps, run.schedule_steps)
    for name, count in (("rule", len(losses)), ("rule, two thirds", len(losses) * 2 // 3)):
        step = plateau_exit(steps[:count], losses[:count].tolist())
        found |= {name: float(step or steps[count - 1]), f"{name} escaped": step is not None}
    return found


def read_runs() -> pd.DataFrame:
    """runs.csv with the outcomes of each run."""
    runs = pd.read_csv(RUNS, dtype={"exit": str, "losses": str})
    return runs.join(pd.DataFrame([outcomes(run) for run in runs.itertuples()]))


def cell(runs: pd.DataFrame, point: Point, seeds: list[int]) -> pd.DataFrame:
    """The runs of a point, by seed."""
    chosen = runs[(runs[list(point)] == pd.Series(point)).all(axis=1) & runs["seed"].isin(seeds)]
    assert chosen["seed"].is_unique, point
    return chosen.set_index("seed").sort_index()


def at(rows: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows with these values."""
    return rows[(rows[list(values)] == pd.Series(values)).all(axis=1)]


def interval(values: np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of the mean."""
    return tuple(map(float, ttest_1samp(values, 0).confidence_interval(confidence)))


def markdown(header: list[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of a page."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows))


def with_numbers(page: str, numbers: dict[str, str]) -> str:
    """A page whose facts, each between its comment and the end, are these."""
    pattern = r"<!-- (\S+) -->(\n?).*?<!-- end -->"
    return re.sub(
        pattern,
        lambda match: f"<!-- {match[1]} -->{match[2]}{numbers[match[1]]}{match[2]}<!-- end -->",
        page,
        flags=re.S,
    )
