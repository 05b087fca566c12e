"""Whether one measure of operators predicts another: rank correlation, its interval, and an exact test.

A probe, the exit from the plateau and a GLUE score have other units and other seeds; what they can share is the order
in which they put the operators.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from symbert.report.inference import CONFIDENCE, FEWEST, RESAMPLES, SEED, Interval

Values = NDArray[np.float64]
Kind = Literal["spearman", "kendall"]

ENUMERATED = 8  # operators of which all n! orders are counted
ORDERS = math.factorial(ENUMERATED)  # that are drawn of more operators


@dataclass(frozen=True)
class RankCorrelation:
    """The rank correlation of two measures over operators, from −1 to 1.

    `value` is None where a measure is the same for all operators, `interval` and p values also where there are fewer
    than three. `smallest_p_value` is the least that so many operators, with these ties, can give.
    """

    kind: Kind
    n: int  # operators that have both measures
    value: float | None
    interval: Interval | None = None
    p_value: float | None = None
    smallest_p_value: float | None = None


def rank_correlation(measures: pd.DataFrame, first: str, second: str, kind: Kind = "spearman") -> RankCorrelation:
    """How far two columns of `measures` put the operators in the same order.

    Rows are `attention, seed` (the levels of the index), columns are measures; a seed that does not have a measure is
    NaN, and a run that never ends its plateau may be infinite. The value of an operator is the median over its seeds.
    `spearman` is Spearman's ρ, `kendall` Kendall's τ-b, both with ties.

    The interval (95 %) is a percentile bootstrap of two stages: operators are drawn with replacement, then for each of
    them its seeds, those of the two measures together where they are the same (Davison and Hinkley, "Bootstrap methods
    and their application", 1997, section 3.8). Draws in which a measure is the same for all operators have no
    correlation, and are left out. p is two-sided and exact: the share of all orders of the operators whose correlation
    is at least as far from zero (Kendall, "Rank correlation methods", 1948); above eight operators orders are drawn,
    and the observed one is counted among them. It takes operators for exchangeable, and their medians for known.
    """
    seeds = [
        (rows[first].dropna().sort_index(), rows[second].dropna().sort_index())
        for _, rows in measures.droplevel("attention").groupby(measures.index.get_level_values("attention"), sort=False)
    ]
    seeds = [pair for pair in seeds if all(map(len, pair))]
    ours, theirs = (np.array([pair[at].median() for pair in seeds]) for at in (0, 1))
    count, value = len(seeds), float(correlations(ours, theirs, kind)) if len(seeds) > 1 else np.nan
    if np.isnan(value):
        return RankCorrelation(kind, count, None)
    if count < FEWEST:
        return RankCorrelation(kind, count, value)
    return RankCorrelation(kind, count, value, _interval(seeds, kind), *_p_values(ours, theirs, kind))


def correlations(ours: Values, theirs: Values, kind: Kind) -> Values:
    """The rank correlation along the last axis; NaN where all values of either are equal.

    Both kinds are Γ = Σaᵢⱼbᵢⱼ / √(Σaᵢⱼ²·Σbᵢⱼ²) over all pairs: Spearman's of differences between ranks, Kendall's of
    their signs (Daniels, "The relation between measures of correlation in the universe of sample permutations", 1944).
    """
    a, b = _pairs(ours, kind), _pairs(theirs, kind)
    with np.errstate(invalid="ignore"):
        return (a * b).sum((-2, -1)) / np.sqrt((a**2).sum((-2, -1)) * (b**2).sum((-2, -1)))


def _pairs(values: Values, kind: Kind) -> Values:
    """`… operator operator`: differences between the ranks of two operators, or their signs."""
    rows = pd.DataFrame(values.reshape(-1, values.shape[-1]))
    ranks = rows.rank(axis=1).to_numpy().reshape(values.shape)  # those of scipy, which is slow to load
    differences = ranks[..., :, None] - ranks[..., None, :]
    return differences if kind == "spearman" else np.sign(differences)


def _interval(seeds: list[tuple[pd.Series, pd.Series]], kind: Kind) -> Interval:
    source = np.random.default_rng(SEED)
    drawn = source.integers(len(seeds), size=(RESAMPLES, len(seeds)))
    ours, theirs = np.empty(drawn.shape), np.empty(drawn.shape)
    for operator, (one, other) in enumerate(seeds):
        places = drawn == operator
        at = also = source.integers(len(one), size=(places.sum(), len(one)))
        if not one.index.equals(other.index):
            also = source.integers(len(other), size=(places.sum(), len(other)))
        ours[places] = np.median(one.to_numpy()[at], axis=1)
        theirs[places] = np.median(other.to_numpy()[also], axis=1)
    shares = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    return Interval(*np.nanquantile(correlations(ours, theirs, kind), shares).tolist())


def _p_values(ours: Values, theirs: Values, kind: Kind) -> tuple[float, float]:
    """p, and the smallest that orders of these values have."""
    count = len(ours)
    if count <= ENUMERATED:
        orders = np.array(list(itertools.permutations(range(count))))
    else:
        rest = np.random.default_rng(SEED).permuted(np.tile(np.arange(count), (ORDERS, 1)), axis=1)
        orders = np.vstack([np.arange(count), rest])
    distances = np.abs(correlations(ours, theirs[orders], kind)).round(9)  # of equal ones the sums are in other orders
    return float((distances >= distances[:1]).mean()), float((distances == distances.max()).mean())
