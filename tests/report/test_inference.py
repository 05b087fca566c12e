"""Intervals and tests of few numbers, against formulas, scipy, and counts of every case by itertools."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from symbert.report.inference import (
    ARRANGEMENTS,
    Interval,
    holm,
    p_in_words,
    paired_interval,
    permutation_test,
    welch_interval,
)

hundredths = st.integers(-500, 500).map(lambda value: value / 100)
few = st.lists(hundredths, min_size=2, max_size=5).map(np.array)


def drawn(count, seed=0, mean=0.5):
    return np.random.default_rng(seed).normal(mean, 1, count)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_the_intervals_are_those_of_student_and_welch(count):
    """By their formulas: mean ± t·s/√n, and with √(a+b) and (a+b)²/(a²/(n−1) + b²/(n−1)) degrees of freedom."""
    first, second = drawn(count), 3 * drawn(count, seed=1)
    mean, error = (first - second).mean(), (first - second).std(ddof=1) / math.sqrt(count)
    reach = stats.t.ppf(0.975, count - 1) * error
    assert paired_interval(first - second) == pytest.approx((mean - reach, mean + reach), rel=1e-10)
    a, b = (values.var(ddof=1) / count for values in (first, second))
    freedom, error = (a + b) ** 2 / (a**2 + b**2) * (count - 1), math.sqrt(a + b)
    reach = stats.t.ppf(0.975, freedom) * error
    assert welch_interval(first, second) == pytest.approx((mean - reach, mean + reach), rel=1e-10)


def test_equal_values_have_intervals_without_width(recwarn):
    equal, others = np.array([0.4, 0.4, 0.4]), np.zeros(3)
    for each in (welch_interval(equal, others), paired_interval(equal)):
        assert each == pytest.approx([0.4, 0.4], abs=1e-12)
    assert not recwarn.list, "scipy warns of a loss of precision"


def splits(ours, theirs):
    """The p value and the smallest by going through every split, in whole hundredths and fractions."""
    pooled = [round(100 * value) for value in (*ours, *theirs)]
    distances = []
    for chosen in itertools.combinations(range(len(pooled)), len(ours)):
        one = sum(pooled[at] for at in chosen)
        distances.append(abs(Fraction(one, len(ours)) - Fraction(sum(pooled) - one, len(theirs))))
    observed = distances[0]  # the first combination is that of our own units
    return [sum(each >= bound for each in distances) / len(distances) for bound in (observed, max(distances))]


@given(few, few)
@settings(max_examples=60)
def test_the_p_value_counts_every_split_with_ties(ours, theirs):
    assert permutation_test(ours, theirs) == pytest.approx(splits(ours, theirs), abs=1e-12)


def test_five_and_five_have_252_splits_of_which_two_are_farthest_apart():
    assert permutation_test(drawn(5) + 9, drawn(5, seed=1)) == (2 / 252, 2 / 252)
    assert permutation_test(drawn(3) + 9, drawn(3, seed=1)) == (2 / 20, 2 / 20)


def test_above_16384_splits_so_many_are_drawn_and_the_observed_one_is_among_them():
    apart = permutation_test(drawn(9) + 99, drawn(9, seed=1))
    assert apart == (pytest.approx(1 / (1 + ARRANGEMENTS), abs=2 / ARRANGEMENTS), 1 / (1 + ARRANGEMENTS))
    ours, theirs = drawn(9), drawn(9, seed=1, mean=0)
    exact = stats.permutation_test(
        (ours, theirs),
        lambda one, other, axis: np.mean(one, axis=axis) - np.mean(other, axis=axis),
        n_resamples=np.inf,
        vectorized=True,
    ).pvalue
    assert 0.02 < exact < 0.9 and permutation_test(ours, theirs)[0] == pytest.approx(exact, abs=0.015)


def test_models_that_do_not_differ_have_p_one_even_if_their_scores_were_summed_in_another_order():
    one, other = np.array([0.1 + 0.2, 80.1, 0.0]), np.array([0.3, 80.1 + 1e-13, 0.0])
    assert permutation_test(one, other)[0] == 1


def test_an_interval_includes_a_bound_that_is_off_by_floating_point_noise():
    assert Interval(1e-15, 1.0).includes(0) and Interval(-1.0, -1e-15).includes(0)
    assert not Interval(1e-6, 1.0).includes(0) and not Interval(-1.0, -1e-6).includes(0)


@pytest.mark.parametrize(
    ("given", "corrected"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # 4 × 0.005, 3 × 0.01, 2 × 0.03, and 0.04 follows 0.06
        ([0.0625, 0.0625], [0.125, 0.125]),
        ([0.9, 0.6], [1, 1]),
        ([0.2], [0.2]),
        ([], []),
    ],
)
def test_holms_correction_by_hand(given, corrected):
    assert holm(given).tolist() == pytest.approx(corrected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_his_procedure_rejects(given):
    """From the smallest on, as long as each is at most the level over the number of those left."""
    for level in (0.01, 0.05, 0.5):
        order = sorted(range(len(given)), key=given.__getitem__)
        passes = [given[at] * (len(given) - rank) <= level for rank, at in enumerate(order)]
        rejected = set(order[: passes.index(False) if False in passes else len(order)])
        assert {at for at, value in enumerate(holm(given)) if value <= level} == rejected


@pytest.mark.parametrize(
    ("p_value", "decimals", "words"), [(2 / 252, 4, "0.0079"), (6e-5, 4, "< 0.0001"), (1, 3, "1.000")]
)
def test_no_p_value_is_zero(p_value, decimals, words):
    assert p_in_words(p_value, decimals) == words
