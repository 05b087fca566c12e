"""Intervals and tests for the difference between two models, as pure functions of arrays.

Differences are in percentage points, one per unit: a seed that both models have.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from symbert.draws import below, mix, stream

Values = NDArray[np.float64]

CONFIDENCE = 0.95
FEWEST = 3  # units of which anything is inferred: an interval of two spans 12.7 standard errors, whatever they are
RESAMPLES = 10_000
SEED = 1  # of resamples and of patterns of signs; any would do, but the same table must come out of the same scores
EXACT = 14  # differences up to which every pattern of signs is counted
NOISE = 1e-9  # percentage points: sums of floating-point numbers that are closer are equal


@dataclass(frozen=True)
class Interval:
    """From the lower to the upper bound."""

    low: float
    high: float

    def includes(self, value: float) -> bool:
        """Whether the value lies inside or, but for floating-point noise, on a bound."""
        return self.low - NOISE <= value <= self.high + NOISE


def t_interval(differences: Values) -> Interval | None:
    """95 % interval of the mean of paired differences: mean ± t·s/√n; None for fewer than two.

    t is the 97.5 % quantile of Student's distribution with n−1 degrees of freedom, s the sample standard deviation
    (Student, "The probable error of a mean", 1908). Differences are taken for independent and normally distributed.
    """
    count = len(differences)
    if count < 2:
        return None
    return _around(differences.mean(), differences.std(ddof=1) / math.sqrt(count), count - 1)


def welch_interval(first: Values, second: Values) -> Interval | None:
    """95 % interval of the difference of two means whose values are not paired; None for fewer than two of either.

    As `t_interval`, with s/√n = √(a+b) and (a+b)² / (a²/(n₁−1) + b²/(n₂−1)) degrees of freedom, where a and b are the
    sample variances over n₁ and n₂ (Welch, "The generalization of Student's problem", 1947).
    """
    if min(len(first), len(second)) < 2:
        return None
    parts = [(values.var(ddof=1) / len(values), len(values) - 1) for values in (first, second)]
    variance = sum(part for part, _ in parts)
    spread = sum(part**2 / freedom for part, freedom in parts)
    return _around(first.mean() - second.mean(), math.sqrt(variance), variance**2 / spread if spread else 1.0)


def _around(mean: float, error: float, freedom: float) -> Interval:
    reach = error * stdtrit(freedom, (1 + CONFIDENCE) / 2)
    return Interval(float(mean - reach), float(mean + reach))


def bootstrap_interval(differences: Values) -> Interval | None:
    """95 % percentile bootstrap interval of the mean; None for fewer than two differences.

    The 2.5 % and 97.5 % quantiles of the means of resamples with replacement (Efron, "Bootstrap methods", 1979). The
    corrected one (BCa) would estimate two more numbers from the same few values. With few of them the percentile
    interval is too narrow, about z·√((n−1)/n)/t of the t interval: 63 % for n = 5 (Hesterberg, "What teachers should
    know about the bootstrap", 2015). Each resample is drawn a second time from the values in reverse order, so that
    neither the order nor the sign of the differences matters.
    """
    count = len(differences)
    if count < 2:
        return None
    ordered = np.sort(differences)
    means = np.concatenate([values[_resamples(count)].mean(axis=1) for values in (ordered, ordered[::-1])])
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(low), float(high))


@dataclass(frozen=True)
class SignFlips:
    """A permutation test's p value, and the smallest that it could have given with differences of these sizes."""

    p_value: float
    smallest: float


def sign_flip_test(differences: Values) -> SignFlips:
    """Two-sided permutation test that paired differences are symmetric around zero: swapping a pair flips a sign.

    The p value is the share of all 2ⁿ patterns of signs whose sum is at least as far from zero as the observed one
    (Fisher, "The design of experiments", 1935, section 21); ties count, and a difference of zero has two equal signs.
    The smallest is 2/2ᵐ for m differences that are not zero. Above n = 14 patterns are drawn, and the observed one is
    counted among them: (1 + b)/(1 + B) (Phipson and Smyth, "Permutation p-values should never be zero", 2010).
    """
    sizes = np.sort(np.abs(differences))
    signs, drawn = _signs(len(sizes)), len(sizes) > EXACT
    extreme = np.abs((signs * sizes).sum(axis=1)) >= abs(differences.sum()) - NOISE
    smallest = min(1.0, 2.0 ** (1 - int((sizes > NOISE).sum())))
    floor = 1 / (1 + len(signs)) if drawn else 0.0
    return SignFlips(float((extreme.sum() + drawn) / (len(signs) + drawn)), max(smallest, floor))


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


@cache
def _resamples(count: int) -> NDArray[np.int64]:
    """`resample value`: positions drawn with replacement."""
    return below(_words(count), count)


@cache
def _signs(count: int) -> NDArray[np.int64]:
    """`pattern value`: every pattern of signs, or as many as there are resamples."""
    every = np.arange(2**count)[:, None] >> np.arange(count) & 1 if count <= EXACT else below(_words(count), 2)
    return 1 - 2 * every


def _words(count: int) -> NDArray[np.uint64]:
    return stream(mix(np.arange(RESAMPLES), SEED), count)
