"""Intervals and tests of numbers from a few independent units, and the one place of what they share.

A unit is a run of a model, or the mean of several. The primary test is `permutation_test`; docs/glue.md says why.
All splits of few units are counted; of more, some are drawn.
"""

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

LEVEL = 0.05  # at or below which a p value, corrected where there are several, is called significant
CONFIDENCE = 1 - LEVEL
FEWEST = 3  # units of which anything is inferred: an interval of two spans 12.7 standard errors, whatever they are
ARRANGEMENTS = 2**14  # splits: with as many or fewer all are counted, of more so many are drawn
SEED = 1  # of splits that are drawn; any would do, but the same table must come out of the same scores
DECIMALS = 9  # of percentage points: sums of floating-point numbers that agree in so many are equal
NOISE = 10**-DECIMALS


class Interval(NamedTuple):
    """From the lower to the upper bound."""

    low: float
    high: float

    def includes(self, value: float) -> bool:
        """Whether the value lies inside or, but for floating-point noise, on a bound."""
        return self.low - NOISE <= value <= self.high + NOISE


def welch_interval(ours: Values, theirs: Values) -> Interval:
    """95 % interval of the difference of two means.

    It takes the units of each model for normally distributed, with a variance of its own (Welch, "The generalization of
    Student's problem when several different population variances are involved", 1947).
    """
    from scipy.stats import ttest_ind  # slow to load, and most tables need no test

    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # values that are all equal
        return Interval(*map(float, ttest_ind(ours, theirs, equal_var=False).confidence_interval(CONFIDENCE)))


def paired_interval(differences: Values) -> Interval:
    """95 % interval of the mean of paired differences (Student, "The probable error of a mean", 1908)."""
    from scipy.stats import ttest_1samp

    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        return Interval(*map(float, ttest_1samp(differences, 0).confidence_interval(CONFIDENCE)))


def permutation_test(ours: Values, theirs: Values) -> tuple[float, float]:
    """p of a two-sided test that the units of both models come from one distribution, and its smallest p.

    p is the share of all splits of the units into two groups of these sizes, 252 for 5 and 5, whose means are at least
    as far apart (Pitman, "Significance tests which may be applied to samples from any populations", 1937); ties count.
    Above 16,384 splits so many are drawn, and the observed one is counted among them: (1 + b)/(1 + B) (Phipson and
    Smyth, "Permutation p-values should never be zero", 2010). Of two groups of one size the test holds its level for
    large numbers of units even where the variances differ (Romano, "On the behavior of randomization tests without a
    group invariance assumption", 1990).
    """
    from scipy.stats import permutation_test

    def distance(one: Values, other: Values, axis: int) -> Values:
        return np.abs(one.mean(axis=axis) - other.mean(axis=axis)).round(DECIMALS)

    # In the order of their values, so that drawn splits do not hang on the order of seeds.
    options = {"permutation_type": "independent", "alternative": "greater", "n_resamples": ARRANGEMENTS, "rng": SEED}
    test = permutation_test((np.sort(ours), np.sort(theirs)), distance, vectorized=True, **options)
    if math.comb(len(ours) + len(theirs), len(ours)) > ARRANGEMENTS:
        return float(test.pvalue), 1 / (1 + ARRANGEMENTS)
    distances = test.null_distribution
    return float(test.pvalue), float((distances == distances.max()).mean())


def holm(p_values: Sequence[float]) -> Values:
    """p values corrected for their number: of m, the i-th smallest becomes the largest of (m−j+1)·pⱼ up to j = i.

    At most one. Those at or below a level keep the chance of any false finding among the m at or below that level,
    however they depend on each other (Holm, "A simple sequentially rejective multiple test procedure", 1979).
    """
    given = np.asarray(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(1, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return corrected


def p_in_words(p_value: float, decimals: int = 4) -> str:
    """A p value as cells and sentences have it: '0.0079', or '< 0.0001', as none is zero."""
    smallest = 10**-decimals
    return f"< {smallest:.{decimals}f}" if p_value < smallest else f"{p_value:.{decimals}f}"
