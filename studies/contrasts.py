"""The contrasts that studies declare, and how far their runs decide them.

The effect of a contrast is, per seed, the logarithm of the ratio of two outcomes (outcomes.py): its mean has Student's
95 % interval and an exact sign-flip test, with Holm's correction over a grid.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

from studies.collected import Point, grids_of
from studies.exits import compare_exits
from studies.outcomes import NEARBY, cell, interval
from symbert.report.statistics import holm, sign_flip_test

# Contrasts that are tested one after the other, uncorrected: the amendment in start-and-symmetry.md.
SEQUENCES = {("start-and-symmetry", "documentation"): ("start-of-original", "start-of-pairwise")}


def complete(runs: pd.DataFrame, points: list[Point], seeds: list[int]) -> list[int]:
    """The seeds of which every cell of a grid is there."""
    present = [set(cell(runs, point, seeds).index) for point in points]
    return [seed for seed in seeds if all(seed in found for found in present)]


def effect(*cells: pd.DataFrame) -> dict[str, Any]:
    """The ratio of outcomes of two cells with the same seeds, first to second; of four the ratio of two such ratios, of
    eight that of two of these."""
    signs = [1, -1, -1, 1, -1, 1, 1, -1][: len(cells)]
    for first, second in zip(cells[::2], cells[1::2], strict=True):  # pairs are runs of a seed on one text
        pd.testing.assert_series_equal(first["corpus_hash"], second["corpus_hash"])
    assert all(cells[0].index.equals(cell.index) for cell in cells)

    def logarithms(outcome: str) -> np.ndarray:
        return sum(sign * np.log(runs[outcome].to_numpy()) for sign, runs in zip(signs, cells, strict=True))

    values = logarithms("step")
    bounds = np.exp([values.mean(), *interval(values), *interval(values, 0.90)])
    row = dict(zip(("ratio", "low", "high", "low_90", "high_90"), bounds.tolist(), strict=True))
    row |= {"seeds": len(values), "below_one": int((values < 0).sum()), "p": sign_flip_test(values)}
    row["student_p"] = float(ttest_1samp(values, 0).pvalue)
    row["not_escaped"] = "/".join(str(runs["not_escaped"].sum()) for runs in cells)
    for name in ("step", *(f"step {shift:+}" for shift in NEARBY), "rule", "rule, two thirds"):
        row[f"by {name}"] = float(np.exp(logarithms(name).mean()))
    if len(cells) == 2:
        for name, outcome in (("saved", "distance"), ("saved_steps", "step")):
            saved = (cells[1][outcome] - cells[0][outcome]).to_numpy()
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), (saved.mean(), *interval(saved)), strict=True))
    return row


def verdict_of(row: dict[str, Any]) -> str:
    """As preregistered: by the corrected p, or by the 90 % interval."""
    if row["holm_p"] < 0.05:
        return "shorter" if row["ratio"] < 1 else "longer"
    return "within 25 %" if row["low_90"] > 0.8 and row["high_90"] < 1.25 else "undecided"


def declared(runs: pd.DataFrame, study: str) -> Iterator[dict[str, Any]]:
    """The contrasts that a study named before its runs, over the seeds of which every cell of the grid is there.

    In a fixed sequence a contrast needs its own two cells alone.
    """
    for grid, points, seeds, contrasts in grids_of(study):
        sequence = SEQUENCES.get((study, grid))
        rows, exits = [], []
        for name, contrast in contrasts.items():
            axis = next(iter(contrast["first"]))  # that the contrast compares; all others are as in a point
            sides = [contrast[side][axis] for side in ("first", "second")]
            for point in (point for point in points if point[axis] == sides[0]):
                pair = [{**point, axis: side} for side in sides]
                there = complete(runs, pair if sequence else points, seeds)
                if len(there) < 2:
                    continue
                cells = [cell(runs, place, there) for place in pair]
                row = {"study": study, "grid": grid, "contrast": name, **point, axis: ""}
                row |= {"expected": contrast["expected"], "first": sides[0], "second": sides[1], "planned": len(seeds)}
                rows.append(row | effect(*cells))
                exits.append(tuple((runs["rule"].to_numpy(), runs["rule escaped"].to_numpy()) for runs in cells))
        values = [row["p"] for row in rows]
        corrected = values if sequence else holm(values)
        for row, p, unpaired in zip(rows, corrected, compare_exits(exits), strict=True):
            row |= {"holm_p": p, "median_ratio": unpaired.ratio, "median_low": unpaired.low}
            row |= {"median_high": unpaired.high, "logrank_holm_p": unpaired.holm_p_value}
            row |= {"logrank_verdict": unpaired.verdict}
            row["verdict"] = verdict_of(row) if row["seeds"] == row["planned"] else "seeds are missing"
        yield from in_sequence(rows, sequence) if sequence else rows


def in_sequence(rows: list[dict[str, Any]], sequence: tuple[str, ...]) -> list[dict[str, Any]]:
    """Contrasts of which each in the sequence has a verdict while those before it are significant, and no other has."""
    by_name = {row["contrast"]: row for row in rows}
    is_tested = True
    for name in sequence:
        if name in by_name and not is_tested:
            by_name[name]["verdict"] = "not tested"
        is_tested &= name in by_name and by_name[name]["verdict"] in ("shorter", "longer")
    return [row if row["contrast"] in sequence else row | {"verdict": "none declared"} for row in rows]


def in_words(row: pd.Series) -> str:
    """A ratio with its interval."""
    middle, low, high = (f"{row[key]:,.2f}".replace("inf", "∞") for key in ("ratio", "low", "high"))
    return f"{middle} [{low}, {high}]"
