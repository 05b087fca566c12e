"""Intervals and tests against scipy, counts of every case, and hand-computed corrections."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from symbert.report.inference import (
    RESAMPLES,
    Interval,
    bootstrap_interval,
    holm,
    sign_flip_test,
    t_interval,
    welch_interval,
)

hundredths = st.integers(-500, 500).map(lambda value: value / 100)
differences = st.lists(hundredths, min_size=2, max_size=8).map(np.array)


def bounds(interval):
    return [interval.low, interval.high]


def drawn(count, seed=0, mean=0.5):
    return np.random.default_rng(seed).normal(mean, 1, count)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_the_t_interval_is_scipys_of_paired_samples(count):
    first, second = drawn(count), drawn(count, seed=1)
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert bounds(t_interval(first - second)) == pytest.approx(list(expected), rel=1e-12)


@pytest.mark.parametrize("counts", [(2, 2), (5, 5), (5, 3), (10, 4)])
def test_the_unpaired_interval_is_scipys_of_unequal_variances(counts):
    first, second = drawn(counts[0]), 3 * drawn(counts[1], seed=1)
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert bounds(welch_interval(first, second)) == pytest.approx(list(expected), rel=1e-10)


def test_against_a_constant_the_unpaired_interval_is_the_t_interval():
    values = drawn(5)
    assert bounds(welch_interval(values, np.full(5, 0.3))) == pytest.approx(bounds(t_interval(values - 0.3)))


def test_one_value_has_no_interval_and_equal_ones_have_one_without_width():
    one, equal = np.array([0.4]), np.array([0.4, 0.4, 0.4])
    assert (
        t_interval(one) is bootstrap_interval(one) is welch_interval(one, equal) is welch_interval(equal, one) is None
    )
    for interval in (t_interval(equal), bootstrap_interval(equal), welch_interval(equal, 0 * equal)):
        assert bounds(interval) == pytest.approx([0.4, 0.4], abs=1e-12)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_bootstrap_interval_is_that_of_every_resample(count):
    """All nⁿ of them, but for the chance that moves a quantile by 0.4 % among as many resamples as are drawn."""
    values = drawn(count)
    means = np.sort([np.mean(resample) for resample in itertools.product(values, repeat=count)])
    for bound, share in zip(bounds(bootstrap_interval(values)), (0.025, 0.975), strict=True):
        low, high = (
            np.quantile(means, share - 0.004, method="lower"),
            np.quantile(means, share + 0.004, method="higher"),
        )
        assert low - 1e-12 <= bound <= high + 1e-12


def test_the_bootstrap_interval_is_scipys_percentile_interval_but_for_chance():
    values = drawn(10)
    expected = stats.bootstrap((values,), np.mean, n_resamples=2 * RESAMPLES, method="percentile", rng=0)
    assert bounds(bootstrap_interval(values)) == pytest.approx(list(expected.confidence_interval), abs=0.02)


def test_with_five_values_the_bootstrap_interval_is_too_narrow_as_documented():
    widths = []
    for seed in range(20):
        values = drawn(5, seed)
        bootstrap, t = bootstrap_interval(values), t_interval(values)
        widths.append((bootstrap.high - bootstrap.low) / (t.high - t.low))
    assert np.mean(widths) == pytest.approx(1.96 * math.sqrt(4 / 5) / 2.776, abs=0.02) == pytest.approx(0.63, abs=0.02)


@given(differences, hundredths, st.randoms())
@settings(max_examples=25, deadline=None)
def test_intervals_move_and_turn_with_the_differences_and_know_no_order(values, shift, order):
    shuffled = np.array(order.sample(values.tolist(), len(values)))
    for interval in (t_interval, bootstrap_interval):
        low, high = bounds(interval(values))
        assert bounds(interval(values + shift)) == pytest.approx([low + shift, high + shift], abs=1e-9)
        assert bounds(interval(-values)) == pytest.approx([-high, -low], abs=1e-9)
        assert bounds(interval(shuffled)) == pytest.approx([low, high], abs=1e-9)


def test_an_interval_includes_a_bound_that_is_off_by_floating_point_noise():
    assert Interval(1e-15, 1.0).includes(0) and Interval(-1.0, -1e-15).includes(0)
    assert not Interval(1e-6, 1.0).includes(0) and not Interval(-1.0, -1e-6).includes(0)


def counted(values):
    """The p value by counting sums of whole hundredths."""
    whole = [round(100 * value) for value in values]
    sums = [sum(patterns) for patterns in itertools.product(*((value, -value) for value in whole))]
    return sum(abs(other) >= abs(sum(whole)) for other in sums) / len(sums)


@given(differences)
@settings(max_examples=60, deadline=None)
def test_the_p_value_counts_ties_and_zeros_as_whole_numbers_do(values):
    found = sign_flip_test(values)
    assert found.p_value == counted(values)
    assert found.p_value >= found.smallest == min(1, 2 / 2 ** int((values != 0).sum()))


@pytest.mark.parametrize("count", [2, 5, 8])
def test_the_p_value_is_scipys_of_paired_samples(count):
    first, second = drawn(count), drawn(count, seed=1)
    expected = stats.permutation_test(
        (first, second),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip_test(first - second).p_value == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize(("count", "smallest"), [(1, 1.0), (2, 0.5), (5, 0.0625), (6, 0.03125), (10, 2 / 1024)])
def test_differences_of_one_sign_have_the_smallest_p_value_of_their_number(count, smallest):
    found = sign_flip_test(np.abs(drawn(count)))
    assert (found.p_value, found.smallest) == (smallest, smallest)


def test_models_that_do_not_differ_have_p_one_even_if_their_scores_were_summed_in_another_order():
    found = sign_flip_test(np.array([0.1 + 0.2, 80.1, 0.0]) - np.array([0.3, 80.1 + 1e-13, 0.0]))
    assert (found.p_value, found.smallest) == (1, 1)


@given(differences, st.randoms())
@settings(max_examples=25, deadline=None)
def test_the_p_value_knows_neither_order_nor_direction(values, order):
    found = sign_flip_test(values)
    assert sign_flip_test(-values) == found == sign_flip_test(np.array(order.sample(values.tolist(), len(values))))


def test_above_fourteen_differences_patterns_are_drawn_and_the_observed_one_is_among_them():
    assert sign_flip_test(np.ones(15)).smallest == 1 / (1 + RESAMPLES)
    assert 1 / (1 + RESAMPLES) <= sign_flip_test(np.ones(15)).p_value <= 5 / (1 + RESAMPLES)
    values = drawn(15, mean=0.4)
    signs = 1 - 2 * (np.arange(2**15)[:, None] >> np.arange(15) & 1)
    exact = np.mean(np.abs(signs @ values) >= abs(values.sum()))
    assert 0.02 < exact < 0.98 and sign_flip_test(values).p_value == pytest.approx(exact, abs=0.015)


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
