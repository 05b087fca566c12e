"""Tables of pre-training: milestones, escapes, last losses, the points of a sweep, and architectures but the
encoder."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from symbert.architectures import ARCHITECTURES
from symbert.configuration import SWEPT
from symbert.experiment.sweep import Contrast, Grid
from symbert.report.collect import FEWEST_SEEDS, Collection, losses_of
from symbert.report.formats import Table, frame_of, table_of
from symbert.report.statistics import (
    FEWEST,
    FEWEST_ESCAPES,
    compare_escapes,
    crossing_of,
    escape_contrasts,
    escapes_of,
    loss_contrasts,
    loss_differences,
    mean_curves,
    shared_escapes,
    spread,
)

Row = dict[str, Any]

P_VALUES = {"p": 4, "p_value": 4, "holm_p": 4, "holm_p_value": 4}  # decimals
IN_NATS = dict.fromkeys(("difference", "low", "high", "detectable"), 3)
OF_CONTRAST = ("reference", "ratio", "ratio_low", "ratio_high", "p_value", "holm_p_value", "verdict")
OF_CONTRAST += ("detectable_ratio",)


def milestones_table(data: Collection) -> Table | None:
    """Where the curves of Figure 3 first reach 95 % of the highest final score of their size: after the checkpoint of
    one step, at or before that of the next; the crossing is on the straight line between the two. A dash before: the
    first checkpoint is there already; after: no checkpoint gets there. Scores are means over as many fine-tuning seeds;
    with none, no checkpoint of the operator was scored.
    """
    rows: list[Row] = []
    scores = data.curves.get("glue")
    for size, of_size in () if scores is None else scores.groupby("size", sort=False):
        means, line = mean_curves(of_size)
        compared = () if data.trained is None else data.trained.loc[data.trained["size"] == size, "attention"]
        for name in data.known.attentions([*means, *compared]):
            row: Row = {"size": size, "attention": name, "final_score": None, "target_score": line}
            row |= {"before": None, "crossing": None, "after": None, "finetune_seeds": 0}
            if name in means:
                found = crossing_of(means[name], line)
                row |= {"before": found.before, "crossing": _finite(found.step), "after": found.after}
                row |= {"final_score": means[name].get(of_size["step"].max())}
                row |= {"finetune_seeds": of_size.loc[of_size["attention"] == name, "finetune_seed"].nunique()}
            rows.append(row)
    return table_of(rows, decimals={"crossing": 0}) if rows else None


def escapes_table(data: Collection) -> Table | None:
    """Escaped: how many runs do, one per pre-training seed. Ratio: the median escape by that of the reference, on the
    evaluations that both have; its interval is a bootstrap over seeds, between the evaluations before and at each
    escape. p: log-rank test, with Holm’s correction over the comparisons of a size.
    """
    level = data.escape_loss
    if level is None or data.runs["pretrain_seed"].nunique() < FEWEST_SEEDS:
        return None
    models = losses_of(data.runs)
    contrasts = escape_contrasts(models, level, data.experiment.contrasts)
    rows: list[Row] = []  # one per contrast of a model; one without numbers of a model that is compared with none
    for (size, name), losses in models.items():
        described = {"size": size, "attention": name, **_numbers(losses, level)}
        judged = [
            {
                "reference": reference,
                "ratio": _finite(result.ratio),
                "ratio_low": _finite(result.low),
                "ratio_high": _finite(result.high),
                "p_value": result.p_value,
                "holm_p_value": result.holm_p_value,
                "verdict": result.verdict,
                "detectable_ratio": _finite(result.detectable_ratio),
            }
            for (*model, reference), result in contrasts.items()
            if model == [size, name]
        ]
        rows += [described | row for row in judged or [dict.fromkeys(OF_CONTRAST)]]
    is_tested = any(result.seeds >= FEWEST_ESCAPES for result in contrasts.values())
    shown = frame_of(rows).drop(columns=list(OF_CONTRAST)).drop_duplicates()
    return table_of(rows, readable=None if is_tested else shown, decimals=P_VALUES)


def _numbers(losses: pd.DataFrame, level: float | None) -> Row:
    """The escapes of the seeds of a model in numbers; none where the level is not known."""
    numbers: Row = {"escape_loss": level, "runs": len(losses)}
    if level is None:
        return numbers | dict.fromkeys(("escaped", "diverged", "median_escape", "earliest_escape", "latest_escape"))
    escapes = escapes_of(losses, level)
    numbers |= {"escaped": int(escapes.escaped.sum()), "diverged": int(escapes.diverged.sum())}
    earliest, latest = escapes.range
    steps = {"median_escape": escapes.median, "earliest_escape": earliest, "latest_escape": latest}
    return numbers | {name: escape.step for name, escape in steps.items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def losses_table(data: Collection) -> Table | None:
    """Last validation loss, model less reference, in nats per masked token, paired by pre-training seed: runs of a seed
    start from equal shared parameters, and see the same batches and masks (of imported runs that is not known).
    Low and high: Student’s 95 % interval. p:
    two-sided sign-flip test over all choices of signs, of which five seeds cannot have less than 0.0625, and six
    0.03125; Holm: corrected for the comparisons of a size. Detectable: the difference that so many seeds of this spread
    find with 80 % power (two-sided paired t at the corrected level): smaller ones are not ruled out where none is
    significant; a dash: so many seeds cannot reach that level.
    """
    rows = [
        {
            **{key: getattr(result, key) for key in ("size", "model", "reference")},
            "seeds": result.n,
            "difference": result.difference,
            "low": result.interval.low,
            "high": result.interval.high,
            "p": result.p,
            "holm_p": result.holm_p,
            "detectable": result.detectable,
        }
        for result in loss_contrasts(losses_of(data.runs), data.experiment.contrasts)
    ]
    return table_of(rows, decimals=P_VALUES | IN_NATS) if rows else None


def grid_escapes_table(data: Collection) -> Table | None:
    """Median escape from the plateau over pre-training seeds, the earliest and the latest."""
    rows = [
        {"grid": grid.name, **_axes(data, point), **_numbers(losses, level)}
        | ({"last_loss": spread(losses.iloc[:, -1]).mean} if data.tuned else {})
        for grid, of_points in data.grids
        for point, losses, level in zip(_at_rates(grid), of_points, data.escape_losses[grid.name], strict=True)
    ]
    return table_of(rows, decimals={"last_loss": 3}) if rows else None


def _at_rates(grid: Grid) -> list[Row]:
    """The points of a grid, with the learning rate that was chosen for each."""
    rates: list[Row] = [{"learning_rate": rate} for rate in grid.chosen] or [{} for _ in grid.points]
    return [{**point, **rate} for point, rate in zip(grid.points, rates, strict=True)]


def contrasts_table(data: Collection) -> Table | None:
    """The escapes of two values of an axis compared, at every point of the other axes, on the evaluations that both
    have; of three seeds or more. Ratio of the medians, the first by the second, with bootstrap intervals over seeds
    (narrow: 90 %), between the evaluations before and at each escape. p: log-rank test, with Holm’s correction over the
    contrasts of a grid.
    """
    rows = []
    for grid, of_points in data.grids:
        cells = [*zip(of_points, data.escape_losses[grid.name], strict=True)]
        compared = [pair for pair in _pairs(grid) if all(cells[at][1] is not None for at in pair[2:])]
        pairs = [shared_escapes(cells[first], cells[second]) for *_, first, second in compared]
        for pair, (first, second), result in zip(compared, pairs, compare_escapes(pairs), strict=True):
            row = {"first_median_escape": first.median.step, "second_median_escape": second.median.step}
            row |= {**vars(result), "expected": pair[0].expected, "verdict": result.verdict}
            row["detectable_ratio"] = _finite(result.detectable_ratio)
            rows.append({**_sides(data, grid, *pair), **row})
    return table_of(rows, decimals=P_VALUES) if rows else None


def grid_losses_table(data: Collection) -> Table | None:
    """The last validation losses of the same contrasts, but for those of texts: the first less the second, in nats per
    masked token, paired by pre-training seed. Low and high: Student’s 95 % interval. p: two-sided sign-flip test over
    all choices of signs; Holm: corrected for the contrasts of a grid. Verdict: lower or higher where p (Holm) is at
    most 0.05, else undecided. Detectable: the difference that so many seeds of this spread find with 80 % power
    (two-sided paired t at the corrected level); a dash: so many seeds cannot reach that level.
    """
    rows = []
    for grid, of_points in data.grids:
        compared = [pair for pair in _pairs(grid) if "text" not in pair[0].first]
        results = loss_differences([(of_points[first], of_points[second]) for *_, first, second in compared])
        for pair, result in zip(compared, results, strict=True):
            row = {"seeds": result.n, "difference": result.difference}
            row |= {"low": result.interval.low, "high": result.interval.high, "p": result.p, "holm_p": result.holm_p}
            direction = "lower" if result.difference < 0 else "higher"
            row |= {"verdict": direction if result.is_significant else "undecided", "detectable": result.detectable}
            rows.append({**_sides(data, grid, *pair), **row})
    return table_of(rows, decimals=P_VALUES | IN_NATS) if rows else None


def _pairs(grid: Grid) -> list[tuple[Contrast, Row, int, int]]:
    """What is compared in a grid, of enough seeds."""
    return list(grid.pairs()) if len(grid.seeds) >= FEWEST else []


def _sides(data: Collection, grid: Grid, contrast: Contrast, place: Row, first: int, second: int) -> Row:
    """What is compared, and where; of a tuned grid also at which rates."""
    row = {"contrast": contrast.name, **_axes(data, place, without=["learning_rate"] if data.tuned else ())}
    if data.tuned:
        rates = [f"{grid.chosen[at]:g}" if grid.chosen else place.get("learning_rate") for at in (first, second)]
        row |= {"at": grid.name.rpartition(", ")[2] if grid.chosen else None}
        row |= {"first_rate": rates[0], "second_rate": rates[1]}
    return row


def grid_rates_table(data: Collection) -> Table | None:
    """The learning rate that was chosen at each point of a tuned grid: best, the one of the lowest mean outcome over
    tuning seeds, none of which is reported in another table; common, the best one of the grid’s first operator, at
    which all others are compared with it, too. Edge: the best one is the lowest or highest of those tried, so a better
    one may lie beyond. By rate the mean outcome: the last validation loss (nats), or the steps to the escape from the
    plateau, of a run that does not escape, or diverges, those of the whole run; not finite: the loss of a seed. The csv
    has both outcomes of every tuning seed.
    """
    rates = sorted({rate for grid, _ in data.tuned for rate in grid.rates})
    rows: list[Row] = []
    shown: list[Row] = []
    for grid, choices in data.tuned:
        assert grid.tune
        seeds, digits = sorted(grid.tune.seeds), 3 if grid.tune.by == "final_loss" else 0
        for point, choice in zip(grid.points, choices, strict=True):
            cell = {"grid": grid.name, **_axes(data, point, without=["learning_rate"])}
            cell |= {"by": grid.tune.by, "best": f"{choice.best:g}", "edge": choice.edge or None}
            cell |= {"common": f"{choice.common:g}"}
            tried = choice.tried
            means = {one.rate: "not finite" if one.mean is None else f"{one.mean:,.{digits}f}" for one in tried}
            shown.append(cell | {f"{rate:g}": means.get(rate) for rate in rates})
            rows += [
                {**cell, "rate": f"{one.rate:g}", "mean": one.mean, "tuning_seed": seed}
                | {"last_loss": one.losses[at], "escape": one.escapes[at], "diverged": one.diverged[at]}
                for one in tried
                for at, seed in enumerate(seeds)
            ]
    return table_of(rows, readable=frame_of(shown)) if rows else None


def place_of(grid: Grid, point: Row) -> str:
    """Where a point lies beside its operator, in words, by the axes that have several values; a text, an architecture
    and a size need no name of their axis."""
    axes = [axis for axis, values in grid.axes.items() if len(values) > 1 and axis != "attention"]
    return ", ".join(
        f"{axis.replace('_', ' ')} {point[axis]}" if axis in SWEPT and axis != "text" else str(point[axis])
        for axis in axes or [next(iter(grid.axes))]
    )


def _axes(data: Collection, point: Row, without: Sequence[str] = ()) -> Row:
    """The values of a point by every axis that a grid has, with learning rates that were chosen; None where this one
    has it not."""
    named = [[*grid.axes, *["learning_rate"] * bool(grid.chosen)] for grid, _ in data.grids]
    axes = dict.fromkeys(axis for of_grid in named for axis in of_grid if axis not in without)
    return {axis: str(point[axis]) if axis in point else None for axis in axes}  # a rate has more than two decimals


def architectures_table(data: Collection) -> Table | None:
    """Validation loss: nats per target at the last step; std over pre-training seeds, all else a mean."""
    if data.architectures is None:
        return None
    runs = data.architectures
    measures = list(dict.fromkeys(ARCHITECTURES[architecture].measure for architecture in runs["architecture"]))
    several = runs["pretrain_seed"].nunique() > 1
    rows = []
    for (architecture, size, attention), seeds in runs.groupby(["architecture", "size", "attention"], sort=False):
        loss = spread(seeds["validation_loss"])
        row = {"architecture": architecture, "size": size, "attention": attention}
        row |= {name: int(seeds[name].iloc[0]) for name in ("parameters", "steps")}
        row |= {"pretrain_seeds": loss.count} if several else {}
        row |= {"validation_loss": loss.mean}
        row |= {"std": loss.deviation} if several else {}
        row |= dict.fromkeys(measures) | {ARCHITECTURES[architecture].measure: spread(seeds["measure"]).mean}
        rows.append(row)
    return table_of(rows, decimals=dict.fromkeys(("validation_loss", "std", *measures), 3))
