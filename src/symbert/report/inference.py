"""Intervals and tests of numbers from a few independent units, and the one place of what they share.

A unit is a run of a model, or the mean of several. The primary test is `permutation_test`; docs/glue.md says why.
Whatever can be counted is: splits, signs and resamples of few units are all enumerated, and only those of more drawn.
"""

import itertools
import math
import warnings
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

LEVEL = 0.05  # at or below which a p value, corrected where there are several, is called significant
CONFIDENCE = 1 - LEVEL
FEWEST = 3  # units of which anything is inferred: an interval of two spans 12.7 standard errors, whatever they are
ARRANGEMENTS = 2**14  # splits or signs: with as many or fewer all are counted, of more so many are drawn
ENUMERATED = 6  # units of each model of which all resamples are counted
RESAMPLES = 10_000  # that are drawn of more
SEED = 1  # of all that is drawn; any would do, but the same table must come out of the same scores
DECIMALS = 9  # of percentage points: sums of floating-point numbers that agree in so many are equal
NOISE = 10**-DECIMALS


class Interval(NamedTuple):
    """From the lower to the upper bound."""

    low: float
    high: float

    def includes(self, value: float) -> bool:
        """Whether the value lies inside or, but for floating-point noise, on a bound."""
        return self.low - NOISE <= value <= self.high + NOISE


def welch_test(ours: Values, theirs: Values) -> tuple[Interval, float | None]:
    """95 % interval of the difference of two means, and the two-sided p that it is zero; no p where nothing varies.

    Both take the units of each model for normally distributed, with a variance of its own (Welch, "The generalization
    of Student's problem when several different population variances are involved", 1947).
    """
    from scipy.stats import ttest_ind  # slow to load, and most tables need no test

    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # values that are all equal
        test = ttest_ind(ours, theirs, equal_var=False)
        interval = Interval(*map(float, test.confidence_interval(CONFIDENCE)))
    varies = max(np.ptp(ours), np.ptp(theirs)) > NOISE
    return interval, float(test.pvalue) if varies else None


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


def sign_flip_test(differences: Values) -> float:
    """p of a two-sided test that paired differences are symmetric around zero.

    Swapping a pair flips a sign. p is the share of all 2ⁿ patterns of signs whose sum is at least as far from zero as
    the observed one (Fisher, "The design of experiments", 1935, section 21); ties count. It cannot be below 2/2ⁿ. Above
    n = 14 patterns are drawn, as splits are.
    """
    from scipy.stats import permutation_test

    def distance(values: Values, axis: int) -> Values:
        return np.abs(values.sum(axis=axis)).round(DECIMALS)

    options = {"permutation_type": "samples", "alternative": "greater", "n_resamples": ARRANGEMENTS, "rng": SEED}
    return float(permutation_test((np.sort(differences),), distance, vectorized=True, **options).pvalue)


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


class Resamples(NamedTuple):
    """How often each unit is drawn, with replacement, by resample."""

    ours: NDArray[np.int64]  # resample unit
    theirs: NDArray[np.int64]  # resample unit
    weights: Values  # resample; they sum to one


@cache
def resamples(ours: int, theirs: int) -> Resamples:
    """Resamples of the units of two models, each drawn for itself (Efron, "Bootstrap methods", 1979).

    Up to six units of each all that differ are there, 126² for 5 and 5, with their multinomial probabilities (Fisher
    and Hall, "Bootstrap algorithms for small samples", 1991); of more, 10,000 are drawn.
    """
    if max(ours, theirs) > ENUMERATED:
        source = np.random.default_rng(SEED)
        drawn = [source.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) for count in (ours, theirs)]
        return Resamples(*drawn, np.full(RESAMPLES, 1 / RESAMPLES))
    (one, one_weights), (other, other_weights) = map(_multisets, (ours, theirs))
    return Resamples(
        np.repeat(one, len(other), axis=0), np.tile(other, (len(one), 1)), np.outer(one_weights, other_weights).ravel()
    )


def _multisets(count: int) -> tuple[NDArray[np.int64], Values]:
    """`multiset unit`, how often each of so many units is drawn, and the probability of each multiset."""
    drawn = [
        np.bincount(units, minlength=count) for units in itertools.combinations_with_replacement(range(count), count)
    ]
    orders = [math.factorial(count) // math.prod(map(math.factorial, counts.tolist())) for counts in drawn]
    return np.array(drawn), np.array(orders) / count**count


def bootstrap_interval(ours: Values, theirs: Values) -> Interval:
    """95 % percentile bootstrap interval of the difference of two means, exact for up to six units of each.

    The corrected one (BCa) would estimate two more numbers from the same few values. With few of them the percentile
    interval is too narrow, about z·√((n−1)/n)/t of Welch's: three quarters for 5 and 5 (Hesterberg, "What teachers
    should know about the bootstrap", 2015).
    """
    drawn = resamples(len(ours), len(theirs))
    differences = drawn.ours @ np.sort(ours) / len(ours) - drawn.theirs @ np.sort(theirs) / len(theirs)
    return _percentile_interval(differences.round(DECIMALS), drawn.weights)


def _percentile_interval(values: Values, weights: Values) -> Interval:
    shares = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    return Interval(*np.quantile(values, shares, weights=weights, method="inverted_cdf").tolist())


class Improvement(NamedTuple):
    """The probability that a unit of one model scores higher than a unit of another, on a task drawn at random."""

    probability: float
    interval: Interval


def probability_of_improvement(ours: Values, theirs: Values) -> Improvement:
    """From scores, `unit task` of each model; ties count half (Agarwal et al., "Deep reinforcement learning at the edge
    of the statistical precipice", 2021, section 4.3).

    The interval (95 %) is that of their stratified bootstrap, in which the units of each model are resampled for each
    task apart; the tasks are not. Because tasks are independent there, the distribution of their mean is a convolution:
    for up to six units of each model it is exact.
    """
    pairs = len(ours) * len(theirs)
    # unit unit task: twice what our unit scores against theirs, 2 for higher and 1 for a tie.
    wins = 1 + np.sign((ours[:, None] - theirs[None]).round(DECIMALS)).astype(int)
    drawn, total = resamples(len(ours), len(theirs)), np.ones(1)
    for task in np.moveaxis(wins, -1, 0):
        won = ((drawn.ours @ task) * drawn.theirs).sum(axis=1)
        total = np.convolve(total, np.bincount(won, weights=drawn.weights, minlength=2 * pairs + 1))
    values = np.arange(len(total)) / (len(total) - 1)
    return Improvement(float(wins.mean() / 2), _percentile_interval(values, total))
