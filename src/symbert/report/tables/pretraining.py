"""Tables of pre-training: milestones, escapes, last losses, the points of a sweep, and architectures but the
encoder."""

import math
from typing import Any

import pandas as pd

from symbert.architectures import ARCHITECTURES
from symbert.configuration import SWEPT
from symbert.experiment.sweep import Grid
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
    mean_curves,
    shared_escapes,
    spread,
)

Row = dict[str, Any]

P_VALUES = {"p": 4, "p_value": 4, "holm_p": 4, "holm_p_value": 4}  # decimals
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
    return (
        table_of(rows, decimals=P_VALUES | dict.fromkeys(("difference", "low", "high", "detectable"), 3))
        if rows
        else None
    )


def grid_escapes_table(data: Collection) -> Table | None:
    """Median escape from the plateau over pre-training seeds, the earliest and the latest."""
    rows = [
        {"grid": grid.name, **_axes(data, point), **_numbers(losses, level)}
        for grid, of_points in data.grids
        for point, losses, level in zip(grid.points, of_points, data.escape_losses[grid.name], strict=True)
    ]
    return table_of(rows) if rows else None


def contrasts_table(data: Collection) -> Table | None:
    """The escapes of two values of an axis compared, at every point of the other axes, on the evaluations that both
    have; of three seeds or more. Ratio of the medians, the first by the second, with bootstrap intervals over seeds
    (narrow: 90 %), between the evaluations before and at each escape. p: log-rank test, with Holm’s correction over the
    contrasts of a grid.
    """
    rows = []
    for grid, of_points in data.grids:
        cells = [
            (point, (losses, level))
            for point, losses, level in zip(grid.points, of_points, data.escape_losses[grid.name], strict=True)
            if level is not None
        ]
        compared = [
            (contrast, {axis: value for axis, value in point.items() if axis not in contrast.first}, first, second)
            for contrast in (grid.contrasts if len(grid.seeds) >= FEWEST else ())
            for point, first in cells
            if contrast.first.items() <= point.items()
            for other, second in cells
            if other == {**point, **contrast.second}
        ]
        pairs = [shared_escapes(first, second) for *_, first, second in compared]
        for (contrast, place, *_), (first, second), result in zip(compared, pairs, compare_escapes(pairs), strict=True):
            row = {"first_median_escape": first.median.step, "second_median_escape": second.median.step}
            row |= {**vars(result), "expected": contrast.expected, "verdict": result.verdict}
            row["detectable_ratio"] = _finite(result.detectable_ratio)
            rows.append({"contrast": contrast.name, **_axes(data, place), **row})
    return table_of(rows, decimals=P_VALUES) if rows else None


def place_of(grid: Grid, point: Row) -> str:
    """Where a point lies beside its operator, in words, by the axes that have several values; a text, an architecture
    and a size need no name of their axis."""
    axes = [axis for axis, values in grid.axes.items() if len(values) > 1 and axis != "attention"]
    return ", ".join(
        f"{axis.replace('_', ' ')} {point[axis]}" if axis in SWEPT and axis != "text" else str(point[axis])
        for axis in axes or [next(iter(grid.axes))]
    )


def _axes(data: Collection, point: Row) -> Row:
    """The values of a point by every axis that a grid has; None where this one has it not."""
    axes = dict.fromkeys(axis for grid, _ in data.grids for axis in grid.axes)
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
