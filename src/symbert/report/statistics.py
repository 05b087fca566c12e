"""What is computed from scores and losses: GLUE score, spread over seeds, first crossing, end of the plateau."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from symbert.report.published import COLUMNS

MODEL = ["size", "attention", "pretrain_seed"]
TARGET = 0.95  # share of the highest final score that figure 3 asks for
PLATEAU_HEIGHT = 0.02  # share of the loss by which a plateau must stand out


def glue_scores(scores: pd.DataFrame) -> pd.Series:
    """GLUE score in percent of each model, step and fine-tuning seed: the mean of its score columns.

    `scores` is a table of `symbert.report.scores`. The paper averages nine columns, MNLI's two as two;
    a column outside them (wnli) is left out.
    """
    counted = scores[scores["column"].isin(COLUMNS)]
    return 100 * counted.groupby([*MODEL, "step", "finetune_seed"], sort=False)["score"].mean()


def task_scores(scores: pd.DataFrame) -> pd.Series:
    """As `glue_scores`, but the mean of eight tasks: MNLI's two columns count as one."""
    counted = scores[scores["column"].isin(COLUMNS)]
    seeds = [*MODEL, "step", "finetune_seed"]
    tasks = counted.groupby([*seeds, "task"], sort=False)["score"].mean()
    return 100 * tasks.groupby(seeds, sort=False).mean()


@dataclass(frozen=True)
class Spread:
    """Mean over seeds, the sample standard deviation (n−1), which one seed does not have, and the range."""

    mean: float
    deviation: float | None
    lowest: float
    highest: float
    count: int


def spread(values: Iterable[float]) -> Spread:
    """Mean, sample standard deviation and range; any order of the same values gives the same numbers."""
    values = list(values)
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.mean(values), deviation, min(values), max(values), len(values))


def target_line(final_scores: Iterable[float]) -> float:
    """Figure 3's line: 95 % of the highest final score among the operators compared."""
    return TARGET * max(final_scores)


@dataclass(frozen=True)
class Crossing:
    """The first pair of neighbouring checkpoints between which a curve reaches the line."""

    before: int | None  # last step below the line; None when the first checkpoint is on or above it
    after: int  # first step on or above the line
    step: float  # where the straight line between the two meets it


def first_crossing(steps: Sequence[int], scores: Sequence[float], line: float) -> Crossing | None:
    """Where the curve first reaches the line, or None; later returns below the line do not matter."""
    reached = next((index for index, score in enumerate(scores) if score >= line), None)
    if reached is None:
        return None
    if reached == 0:
        return Crossing(None, steps[0], float(steps[0]))
    before, after = steps[reached - 1], steps[reached]
    share = (line - scores[reached - 1]) / (scores[reached] - scores[reached - 1])
    return Crossing(before, after, before + share * (after - before))


def plateau_exit(steps: Sequence[int], losses: Sequence[float]) -> int | None:
    """The first evaluation after the initial plateau, or None for a curve that has none or never leaves it.

    Draw the loss over the logarithm of the step, and a straight line from some evaluation to the last one:
    learning that slows down like a power of the step stays below such lines, a plateau that ends in a fall
    bulges above them. The plateau's last evaluation is where the bulge above the highest-standing line is largest; it
    must be more than 2 % of the loss there, or it is noise.
    """
    position, loss = np.log(np.asarray(steps, dtype=float)), np.asarray(losses, dtype=float)
    if len(loss) < 3:
        return None
    slope = (loss[-1] - loss[:-1]) / (position[-1] - position[:-1])
    line = loss[:-1, None] + slope[:, None] * (position[None, :] - position[:-1, None])
    height = np.triu(loss[None, :] - line)[:, :-1]  # from each evaluation (row) to each later one (column)
    last = int(height.max(axis=0).argmax())
    return steps[last + 1] if height[:, last].max() > PLATEAU_HEIGHT * loss[last] else None
