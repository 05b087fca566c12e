"""Tables of pre-training: exits from the plateau, last losses, the points of a sweep, and hosts but the encoder."""

import math
from typing import Any

from symbert.configuration import SWEPT
from symbert.experiment.sweep import Grid
from symbert.hosts import HOSTS
from symbert.report.collect import FEWEST_SEEDS, Collection, losses_of
from symbert.report.formats import Table, frame_of, table_of
from symbert.report.statistics import (
    FEWEST,
    FEWEST_EXITS,
    Exits,
    compare_exits,
    exit_contrasts,
    exits_of,
    loss_contrasts,
    median_exit,
    spread,
)

Row = dict[str, Any]

P_VALUES = {"p": 4, "p_value": 4, "holm_p": 4, "holm_p_value": 4}  # decimals
JUDGED = ("reference", "ratio", "ratio_low", "ratio_high", "p_value", "holm_p_value", "verdict")


def exits_table(data: Collection) -> Table | None:
    """Left: how many runs, one per pre-training seed, leave the plateau. A dash or never: later than the last step.
    Ratio: the median exit by that of the reference, with a bootstrap interval over seeds. p: log-rank test, with Holm’s
    correction over the comparisons of a size.
    """
    if data.runs["pretrain_seed"].nunique() < FEWEST_SEEDS:
        return None
    models = losses_of(data.runs)
    contrasts = exit_contrasts(models, data.facts.contrasts)
    rows: list[Row] = []  # one per contrast of a model; one without numbers of a model that is compared with none
    for (size, name), losses in models.items():
        described = {"size": size, "attention": name, **_numbers(exits_of(losses))}
        judged = [
            {
                "reference": reference,
                "ratio": _finite(result.ratio),
                "ratio_low": _finite(result.low),
                "ratio_high": _finite(result.high),
                "p_value": result.p_value,
                "holm_p_value": result.holm_p_value,
                "verdict": result.verdict,
            }
            for (*model, reference), result in contrasts.items()
            if model == [size, name]
        ]
        rows += [described | row for row in judged or [dict.fromkeys(JUDGED)]]
    is_tested = any(result.seeds >= FEWEST_EXITS for result in contrasts.values())
    shown = frame_of(rows).drop(columns=list(JUDGED)).drop_duplicates()
    return table_of(rows, readable=None if is_tested else shown, decimals=P_VALUES)


def _numbers(exits: Exits) -> Row:
    numbers = {"runs": len(exits.steps), "left": int(exits.left.sum()), "median_exit": exits.median}
    return numbers | dict(zip(("earliest_exit", "latest_exit"), exits.range, strict=True))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def losses_table(data: Collection) -> Table | None:
    """Last validation loss, model less reference, in nats per masked token, paired by pre-training seed: runs of a seed
    start from equal shared parameters, and see the same batches and masks. Low and high: Student’s 95 % interval. p:
    two-sided sign-flip test over all choices of signs, of which five seeds cannot have less than 0.0625, and six
    0.03125; Holm: corrected for the comparisons of a size.
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
        }
        for result in loss_contrasts(losses_of(data.runs), data.facts.contrasts)
    ]
    return table_of(rows, decimals=P_VALUES | dict.fromkeys(("difference", "low", "high"), 3)) if rows else None


def grid_exits_table(data: Collection) -> Table | None:
    """Median exit from the plateau over pre-training seeds, the earliest and the latest; a dash: later than the last
    step.
    """
    rows = [
        {"grid": grid.name, **_axes(data, point), **_numbers(exits_of(losses))}
        for grid, of_points in data.grids
        for point, losses in zip(grid.points, of_points, strict=True)
    ]
    return table_of(rows) if rows else None


def contrasts_table(data: Collection) -> Table | None:
    """The exits of two values of an axis compared, at every point of the other axes; of three seeds or more. Ratio of
    the medians, the first by the second, with bootstrap intervals over seeds (narrow: 90 %). p: log-rank test, with
    Holm’s correction over the contrasts of a grid.
    """
    rows = []
    for grid, of_points in data.grids:
        cells = [(point, exits_of(losses)) for point, losses in zip(grid.points, of_points, strict=True)]
        compared = [
            (contrast, {axis: value for axis, value in point.items() if axis not in contrast.first}, first, second)
            for contrast in (grid.contrasts if len(grid.seeds) >= FEWEST else ())
            for point, first in cells
            if contrast.first.items() <= point.items()
            for other, second in cells
            if other == {**point, **contrast.second}
        ]
        results = compare_exits((first, second) for *_, first, second in compared)
        for (contrast, place, first, second), result in zip(compared, results, strict=True):
            medians = (float(median_exit(exits.steps, exits.left)) for exits in (first, second))
            row = dict(zip(("first_median_exit", "second_median_exit"), medians, strict=True))
            row |= {**vars(result), "expected": contrast.expected, "verdict": result.verdict}
            rows.append({"contrast": contrast.name, **_axes(data, place), **row})
    return table_of(rows, decimals=P_VALUES) if rows else None


def place_of(grid: Grid, point: Row) -> str:
    """Where a point lies beside its operator, in words, by the axes that have several values; a text, a host and a size
    need no name of their axis."""
    axes = [axis for axis, values in grid.axes.items() if len(values) > 1 and axis != "attention"]
    return ", ".join(
        f"{axis.replace('_', ' ')} {point[axis]}" if axis in SWEPT and axis != "text" else str(point[axis])
        for axis in axes or [next(iter(grid.axes))]
    )


def _axes(data: Collection, point: Row) -> Row:
    """The values of a point by every axis that a grid has; None where this one has it not."""
    axes = dict.fromkeys(axis for grid, _ in data.grids for axis in grid.axes)
    return {axis: str(point[axis]) if axis in point else None for axis in axes}  # a rate has more than two decimals


def hosts_table(data: Collection) -> Table | None:
    """Validation loss: nats per target at the last step; std over pre-training seeds, all else a mean."""
    if data.hosts is None:
        return None
    runs = data.hosts
    hosts = [HOSTS[host] for host in dict.fromkeys(runs["host"])]
    measures = list(dict.fromkeys(name for host in hosts for name in (host.measure, *host.further_measures)))
    several = runs["pretrain_seed"].nunique() > 1
    rows = []
    for (host, size, attention), seeds in runs.groupby(["host", "size", "attention"], sort=False):
        loss = spread(seeds["validation_loss"])
        row = {"host": host, "size": size, "attention": attention}
        row |= {name: int(seeds[name].iloc[0]) for name in ("parameters", "steps")}
        row |= {"pretrain_seeds": loss.count} if several else {}
        row |= {"validation_loss": loss.mean}
        row |= {"std": loss.deviation} if several else {}
        for name in measures:
            values = [of_run[name] for of_run in seeds["measures"] if name in of_run]
            row[name] = spread(values).mean if values else None
        rows.append(row)
    return table_of(rows, decimals=dict.fromkeys(("validation_loss", "std", *measures), 3))
