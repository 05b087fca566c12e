"""What is computed from scores and losses: GLUE score, spread over seeds, first crossing, end of the plateau."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from symbert.errors import MissingInputError
from symbert.glue.tasks import BESIDE_GLUE, SUITES
from symbert.report.inference import FEWEST
from symbert.report.published import COLUMNS

SEEDS = ["size", "attention", "pretrain_seed", "step", "finetune_seed"]
MEANS = ("glue_score", "mean_of_tasks")  # over score columns
SUITE_SCORES = tuple(suite.score for suite in SUITES.values())  # GLUE's first
OTHER_COLUMNS = {column: suite.score for suite in BESIDE_GLUE for column in suite.columns}
COUNTED = (*COLUMNS, *OTHER_COLUMNS)  # score columns that count for the mean of their suite
STAND_IN = " (stand-in)"  # ends the name of a score that is not GLUE's
TARGET = 0.95  # share of the highest final score that figure 3 asks for
PLATEAU_HEIGHT = 0.02  # share of the loss by which a plateau must stand out


def final_scores(scores: pd.DataFrame, steps: int) -> pd.DataFrame:
    """The scores at the last step, and at step 0 those of models without pre-training, where there are any.

    `scores` is a table of `symbert.report.scores`. MissingInputError when they do not end at `steps`.
    """
    last = int(scores["step"].max()) if len(scores) else 0
    if last != steps:
        raise MissingInputError(f"scores: the last step is {last}, expected {steps}; fine-tune that checkpoint first")
    return scores[scores["step"].isin([0, steps])]


def glue_scores(scores: pd.DataFrame) -> pd.Series:
    """GLUE score in percent of each model, step and fine-tuning seed: the mean of its score columns. Of a table of
    another suite's scores: its score, the mean of its tasks.

    `scores` is a table of `symbert.report.scores`. The paper averages nine columns, MNLI's two as two;
    a column outside them (wnli, the user's own) is left out. NaN for a seed that lacks a column of the others.
    """
    counted = scores[scores["column"].isin(COUNTED)]
    return 100 * counted.groupby(SEEDS, sort=False)["score"].mean().where(_is_complete(counted))


def is_inferred_from(scores: pd.DataFrame) -> bool:
    """Whether there are as many seeds as an interval or a test takes: of fewer no score is called the best."""
    seeds = scores["pretrain_seed"].nunique()
    return (seeds if seeds > 1 else scores["finetune_seed"].nunique()) >= FEWEST


def task_scores(scores: pd.DataFrame) -> pd.Series:
    """As `glue_scores`, but the mean of eight tasks: MNLI's two columns count as one."""
    counted = scores[scores["column"].isin(COUNTED)]
    tasks = counted.groupby([*SEEDS, "task"], sort=False)["score"].mean()
    return 100 * tasks.groupby(SEEDS, sort=False).mean().where(_is_complete(counted))


def of_whole_seeds(scores: pd.DataFrame) -> pd.DataFrame:
    """The same with NaN in place of scores of seeds that lack a column which counts and which some seed has."""
    complete = _is_complete(scores[scores["column"].isin(COUNTED)])
    is_partial = pd.MultiIndex.from_frame(scores[SEEDS]).isin(complete[~complete].index)
    return scores.assign(score=scores["score"].mask(is_partial))


def _is_complete(counted: pd.DataFrame) -> pd.Series:
    """Whether a seed has every column that counts and that some seed has: a mean of others is no mean of these."""
    return counted.groupby(SEEDS, sort=False)["score"].count() == counted["column"].nunique()


def seed_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """All scores in percent, a row per model, step and fine-tuning seed.

    Columns are `glue_score` and `mean_of_tasks` (of another suite's scores `<suite>_score`), where a column counts for
    them, and the score columns.
    """
    columns = 100 * scores.pivot(index=SEEDS, columns="column", values="score")
    means = {name: mean(scores) for name, mean in zip(means_of(scores), (glue_scores, task_scores), strict=False)}
    names = [*(name for name, mean in means.items() if len(mean)), *dict.fromkeys(scores["column"])]
    rows = pd.MultiIndex.from_frame(scores[SEEDS].drop_duplicates())
    return columns.assign(**means).reindex(index=rows, columns=names)


def means_of(scores: pd.DataFrame) -> tuple[str, ...]:
    """What the means over the score columns of a table are called."""
    others = scores["column"].map(OTHER_COLUMNS).dropna()
    return (others.iloc[0],) if len(others) else MEANS


def stand_in_names(scores: pd.DataFrame) -> dict[str, str]:
    """New names for the score columns of stand-ins, and for the means, where one of them counts for these."""
    stand_ins = dict.fromkeys(scores.loc[scores["stand_in"].astype(bool), "column"])
    means = () if stand_ins.keys().isdisjoint(COUNTED) else means_of(scores)
    return {name: f"{name}{STAND_IN}" for name in (*means, *stand_ins)}


def curves_of(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """GLUE scores of one size by operator: a row per pre-training seed, a column per step, means over fine-tuning."""
    means = glue_scores(scores).groupby(["attention", "pretrain_seed", "step"], sort=False).mean().dropna()
    curves = means.groupby(level="attention", sort=False)
    return {attention: curve.droplevel("attention").unstack("step").sort_index(axis=1) for attention, curve in curves}


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


def mean_curves(scores: pd.DataFrame) -> tuple[dict[str, pd.Series], float]:
    """GLUE scores of one size by operator and step, means over seeds, and the line that Figure 3 draws.

    It is 95 % of the highest final score among the operators compared; NaN where nothing counts.
    """
    means = {attention: seeds.mean().dropna() for attention, seeds in curves_of(scores).items()}
    last = scores["step"].max()
    return means, TARGET * max([mean[last] for mean in means.values() if last in mean], default=math.nan)


@dataclass(frozen=True)
class Crossing:
    """The first pair of neighbouring checkpoints between which a curve reaches the line."""

    before: int | None  # last step below the line; None when the first checkpoint is on or above it
    after: int | None  # first step on or above the line; None when no checkpoint is
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
    must be more than 2 % of the loss there, or it is noise. An evaluation that alone is so much above the ones before
    and after it is a spike, and left out.
    """
    loss = np.asarray(losses, dtype=float)
    if len(loss) < 3:
        return None
    above_neighbours = loss[1:-1] - np.maximum(loss[:-2], loss[2:])
    is_kept = np.r_[True, above_neighbours <= PLATEAU_HEIGHT * loss[1:-1], True]
    steps, loss = np.asarray(steps)[is_kept].tolist(), loss[is_kept]
    position = np.log(np.asarray(steps, dtype=float))
    distance, above = (position[-1] - position)[:-1], (loss - loss[-1])[:-1]
    lowest = np.minimum.accumulate(above / distance)  # slope of the line that an evaluation stands highest above
    height = above - lowest * distance
    last = int(height.argmax())
    return steps[last + 1] if height[last] > PLATEAU_HEIGHT * loss[last] else None
