"""The lines of Table 3: of each model and its seeds, of the paper, and of the majority baseline."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pandas as pd

from symbert.report import published
from symbert.report.captions import model_name
from symbert.report.scores import majority_of
from symbert.report.statistics import SEEDS, Spread, seed_scores, spread

Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """A row of Table 3, and what is said of it beside its cells."""

    row: Row
    size: str | None = None  # of the models that it is compared with; None: with none
    collapsed: frozenset[str] = frozenset()  # score columns in which a run predicts one class throughout


def model_lines(final: pd.DataFrame, columns: list[str], with_paper: bool) -> list[Line]:
    """Lines of each model: of its seeds and their mean, the paper's beneath, and that of no pre-training.

    `final` is a table of `symbert.report.scores` with the final step and perhaps step 0; `columns` are
    the score columns to show.
    """
    several = final["pretrain_seed"].nunique() > 1
    lines: list[Line] = []
    for (size, attention, step), scores in final.groupby(["size", "attention", "step"], sort=False):
        *seeds, mean = _seed_lines(model_name(size, attention, step), scores, columns, several)
        lines += [*seeds, replace(mean, size=size)] if step else [mean]
        if step and with_paper and (size, attention) in published.SCORES:
            lines.append(Line(_paper_row(size, attention, columns)))
    return lines


def _seed_lines(model: str, scores: pd.DataFrame, columns: list[str], several: bool) -> list[Line]:
    """A line per pre-training seed, and one of their mean with the standard deviation of their scores.

    There is but one line where no model has several.
    """
    if not several:
        return [_line(model, scores, columns)]
    parts = scores.groupby("pretrain_seed", sort=False)
    lines = [_line(f"{model}, seed {seed}", part, columns) for seed, part in parts]
    rows, collapsed = [line.row for line in lines], frozenset().union(*(line.collapsed for line in lines))
    score = _spread(row["glue_score"] for row in rows)
    means = {key: _mean(row[key] for row in rows) for key in rows[0] if key not in ("model", "std")}
    name = f"{model}, mean of {len(rows)} seed{'s' if len(rows) > 1 else ''}"
    row = {"model": name, "glue_score": score and score.mean, "std": score and score.deviation}
    return [*lines, Line(row | means, collapsed=collapsed)]


def _line(name: str, scores: pd.DataFrame, columns: list[str]) -> Line:
    """The line of one pre-trained model; only fine-tuning seeds with all columns count for its means of columns."""
    seeds = seed_scores(scores).reindex(columns=["glue_score", "mean_of_tasks", *columns])
    complete = seeds.dropna(subset=columns)
    score = _spread(complete["glue_score"])
    row = {
        "model": name,
        "glue_score": score and score.mean,
        "std": score and score.deviation,
        **{column: _mean(seeds[column]) for column in columns},
        "mean_of_tasks": _mean(complete["mean_of_tasks"]),
        "finetune_seeds": len(complete),
    }
    return Line(row, collapsed=frozenset(scores.loc[scores["constant_prediction"].eq(True), "column"]))


def _paper_row(size: str, attention: str, columns: list[str]) -> Row:
    printed = printed_row(size, attention)
    whole = set(columns) >= set(published.COLUMNS)  # the paper's mean is of all its columns
    return {
        "model": f"{size}-{attention}, the paper",
        **{key: printed[key] if whole else None for key in ("glue_score", "std")},
        **{column: printed.get(column) for column in columns},
        "mean_of_tasks": None,
        "finetune_seeds": published.FINETUNE_SEEDS,
    }


def majority_lines(final: pd.DataFrame, columns: list[str]) -> list[Line]:
    """The line of the majority baseline, as if it were a seed's; none for imported scores."""
    if not majority_of(final):
        return []
    cell = final.iloc[0][SEEDS].to_dict()
    baseline = final.drop_duplicates("column").assign(**cell, constant_prediction=False)
    line = _line("majority baseline", baseline.assign(score=baseline["majority"]), columns)
    return [Line(line.row | {"finetune_seeds": None})]


def best_of(lines: list[Line], columns: Iterable[str], lowest: Collection[str] = ()) -> frozenset[tuple[int, str]]:
    """The cells with the best value of their column among several models of one size.

    The best value is the highest; in the columns `lowest` it is the lowest.
    """
    best: set[tuple[int, str]] = set()
    for size, column in product({line.size for line in lines} - {None}, columns):
        values = {at: line.row[column] for at, line in enumerate(lines) if line.size == size}
        there = {at: value for at, value in values.items() if value is not None}
        if len(there) > 1:
            wanted = (min if column in lowest else max)(there.values())
            best |= {(at, column) for at, value in there.items() if value == wanted}
    return frozenset(best)


def printed_row(size: str, attention: str) -> Row:
    """What the paper prints of a model, by column."""
    return dict(zip(("glue_score", "std", *published.COLUMNS), published.SCORES[size, attention], strict=True))


def _spread(values: Iterable[float | None]) -> Spread | None:
    """The spread of the values without the missing ones; None without any."""
    there = [value for value in values if pd.notna(value)]
    return spread(there) if there else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = _spread(values)
    return known and known.mean
