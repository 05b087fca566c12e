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
    ENUMERATED,
    RESAMPLES,
    Interval,
    bootstrap_interval,
    holm,
    p_in_words,
    paired_interval,
    permutation_test,
    probability_of_improvement,
    resamples,
    sign_flip_test,
    welch_test,
)

hundredths = st.integers(-500, 500).map(lambda value: value / 100)
few = st.lists(hundredths, min_size=2, max_size=5).map(np.array)
differences = st.lists(hundredths, min_size=2, max_size=8).map(np.array)


def drawn(count, seed=0, mean=0.5):
    return np.random.default_rng(seed).normal(mean, 1, count)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_the_intervals_and_p_are_those_of_student_and_welch(count):
    """By their formulas: mean ± t·s/√n, and with √(a+b) and (a+b)²/(a²/(n−1) + b²/(n−1)) degrees of freedom."""
    first, second = drawn(count), 3 * drawn(count, seed=1)
    mean, error = (first - second).mean(), (first - second).std(ddof=1) / math.sqrt(count)
    reach = stats.t.ppf(0.975, count - 1) * error
    assert paired_interval(first - second) == pytest.approx((mean - reach, mean + reach), rel=1e-10)
    a, b = (values.var(ddof=1) / count for values in (first, second))
    freedom, error = (a + b) ** 2 / (a**2 + b**2) * (count - 1), math.sqrt(a + b)
    reach = stats.t.ppf(0.975, freedom) * error
    interval, p_value = welch_test(first, second)
    assert interval == pytest.approx((mean - reach, mean + reach), rel=1e-10)
    assert p_value == pytest.approx(2 * stats.t.sf(abs(mean) / error, freedom), rel=1e-10)


def test_against_a_constant_welchs_interval_is_that_of_one_sample():
    values, constant = drawn(5), np.full(5, 0.3)
    assert welch_test(values, constant)[0] == pytest.approx(paired_interval(values - constant))


def test_equal_values_have_intervals_without_width_and_no_welch_p(recwarn):
    equal, others = np.array([0.4, 0.4, 0.4]), np.zeros(3)
    interval, p_value = welch_test(equal, others)
    assert p_value is None
    for each in (interval, paired_interval(equal), bootstrap_interval(equal, others)):
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


@given(few, few, hundredths, st.randoms())
@settings(max_examples=25)
def test_the_p_value_knows_neither_order_nor_direction_nor_origin(ours, theirs, shift, order):
    p_values = permutation_test(ours, theirs)
    shuffled = np.array(order.sample(ours.tolist(), len(ours)))
    for pair in ((theirs, ours), (-ours, -theirs), (ours + shift, theirs + shift), (shuffled, theirs)):
        assert permutation_test(*pair) == pytest.approx(p_values, abs=1e-12)


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


def test_the_permutation_test_holds_its_level_where_the_seeds_are_not_pairs_and_where_they_are():
    """Of 100 pairs of models that do not differ, at most as many are called different as the level allows."""
    source = np.random.default_rng(3)
    for shared in (0.0, 1.0):  # noise that equal seeds have in common
        found = 0
        for _ in range(100):
            common = shared * source.normal(size=5)
            found += permutation_test(common + source.normal(size=5), common + source.normal(size=5))[0] <= 0.05
        assert found <= 100 * 0.05 + 3 * math.sqrt(100 * 0.05 * 0.95)


def counted(values):
    """The p value by counting sums of whole hundredths."""
    whole = [round(100 * value) for value in values]
    sums = [sum(patterns) for patterns in itertools.product(*((value, -value) for value in whole))]
    return sum(abs(other) >= abs(sum(whole)) for other in sums) / len(sums)


@given(differences)
@settings(max_examples=60)
def test_the_sign_flip_p_value_counts_ties_and_zeros_as_whole_numbers_do(values):
    assert sign_flip_test(values) == counted(values) >= 2 / 2 ** len(values)


@pytest.mark.parametrize("count", [2, 5, 8])
def test_the_sign_flip_p_value_is_that_of_scipys_swapped_pairs(count):
    first, second = drawn(count), drawn(count, seed=1)
    expected = stats.permutation_test(
        (first, second),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip_test(first - second) == pytest.approx(expected.pvalue, abs=1e-12)


def test_five_pairs_cannot_have_a_sign_flip_p_value_at_the_level():
    assert sign_flip_test(np.abs(drawn(5))) == 0.0625


def test_models_that_do_not_differ_have_p_one_even_if_their_scores_were_summed_in_another_order():
    one, other = np.array([0.1 + 0.2, 80.1, 0.0]), np.array([0.3, 80.1 + 1e-13, 0.0])
    assert (sign_flip_test(one - other), permutation_test(one, other)[0]) == (1, 1)


def test_above_fourteen_differences_patterns_are_drawn():
    values = drawn(15, mean=0.4)
    signs = 1 - 2 * (np.arange(2**15)[:, None] >> np.arange(15) & 1)
    exact = np.mean(np.abs(signs @ values) >= abs(values.sum()))
    assert 0.02 < exact < 0.98 and sign_flip_test(values) == pytest.approx(exact, abs=0.015)


@pytest.mark.parametrize("counts", [(2, 2), (3, 3), (2, 4)])
def test_the_resamples_are_all_that_can_be_drawn_with_their_probabilities(counts):
    """Against all nⁿ·mᵐ ordered draws."""
    ours, theirs = counts
    expected = {}
    for one in itertools.product(range(ours), repeat=ours):
        for other in itertools.product(range(theirs), repeat=theirs):
            key = tuple(map(one.count, range(ours))) + tuple(map(other.count, range(theirs)))
            expected[key] = expected.get(key, 0) + 1 / (ours**ours * theirs**theirs)
    drawn_counts = resamples(ours, theirs)
    keys = map(tuple, np.hstack([drawn_counts.ours, drawn_counts.theirs]).tolist())
    assert dict(zip(keys, drawn_counts.weights, strict=True)) == pytest.approx(expected)


def test_five_units_of_each_model_have_126_resamples_each():
    assert resamples(5, 5).weights.shape == (126**2,) and resamples(5, 5).weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("count", [2, 3])
def test_the_bootstrap_interval_is_that_of_every_pair_of_resamples(count):
    values, others = drawn(count), drawn(count, seed=1)
    means, less = ([np.mean(each) for each in itertools.product(side, repeat=count)] for side in (values, others))
    expected = np.quantile(np.subtract.outer(means, less).round(9), [0.025, 0.975], method="inverted_cdf")
    assert bootstrap_interval(values, others) == pytest.approx(expected.tolist(), abs=1e-9)


@pytest.mark.parametrize("count", [5, ENUMERATED + 1, 12])
def test_the_bootstrap_interval_is_scipys_percentile_interval_but_for_chance(count):
    values, others = drawn(count), drawn(count, seed=1)
    expected = stats.bootstrap(
        (values, others),
        lambda one, other, axis: np.mean(one, axis=axis) - np.mean(other, axis=axis),
        n_resamples=2 * RESAMPLES,
        method="percentile",
        rng=0,
    )
    assert bootstrap_interval(values, others) == pytest.approx(list(expected.confidence_interval), abs=0.04)


def test_with_five_units_the_bootstrap_interval_is_too_narrow_as_documented():
    widths = []
    for seed in range(40):
        values, others = drawn(5, seed), drawn(5, seed + 100)
        bootstrap, (welch, _) = bootstrap_interval(values, others), welch_test(values, others)
        widths.append((bootstrap.high - bootstrap.low) / (welch.high - welch.low))
    assert np.mean(widths) == pytest.approx(0.75, abs=0.04)


@given(few, few, hundredths, st.randoms())
@settings(max_examples=25)
def test_intervals_move_and_turn_with_the_values_and_know_no_order(ours, theirs, shift, order):
    shuffled = np.array(order.sample(ours.tolist(), len(ours)))
    for interval in (lambda *values: welch_test(*values)[0], bootstrap_interval):
        low, high = interval(ours, theirs)
        assert interval(ours + shift, theirs) == pytest.approx([low + shift, high + shift], abs=1e-9)
        assert interval(theirs, ours) == pytest.approx([-high, -low], abs=1e-9)
        assert interval(shuffled, theirs) == pytest.approx([low, high], abs=1e-9)


def test_an_interval_includes_a_bound_that_is_off_by_floating_point_noise():
    assert Interval(1e-15, 1.0).includes(0) and Interval(-1.0, -1e-15).includes(0)
    assert not Interval(1e-6, 1.0).includes(0) and not Interval(-1.0, -1e-6).includes(0)


def test_the_probability_of_improvement_is_mann_and_whitneys_share_mean_over_tasks():
    """rliable computes it so: U / (n·m) of each task, and their mean."""
    ours, theirs = drawn(20).reshape(5, 4).round(1), drawn(12, seed=1).reshape(3, 4).round(1)
    expected = np.mean([stats.mannwhitneyu(*task).statistic / 15 for task in zip(ours.T, theirs.T, strict=True)])
    assert probability_of_improvement(ours, theirs).probability == pytest.approx(expected)


def test_the_interval_of_the_probability_is_that_of_every_stratified_resample():
    """Two tasks and two units: 16 equally likely draws of each task, and 256 of both."""
    ours, theirs = np.array([[1.0, 5.0], [3.0, 2.0]]), np.array([[2.0, 2.0], [2.5, 4.0]])
    shares = []
    for task in range(2):
        pairs = itertools.product(*(itertools.product(side[:, task], repeat=2) for side in (ours, theirs)))
        shares.append([np.mean([(a > b) + (a == b) / 2 for a in one for b in other]) for one, other in pairs])
    every = [np.mean(pair) for pair in itertools.product(*shares)]
    found = probability_of_improvement(ours, theirs)
    assert found.interval == pytest.approx(np.quantile(every, [0.025, 0.975], method="inverted_cdf").tolist())


def test_the_interval_of_the_probability_is_that_of_drawn_resamples_but_for_chance():
    """Agarwal et al.: units of each model are resampled for each task apart."""
    source = np.random.default_rng(2)
    for count in (5, 9):
        ours, theirs = source.normal(0.3, 1, (count, 8)), source.normal(0, 1, (count, 8))
        drawn_shares = []
        for _ in range(3_000):
            at, other = source.integers(count, size=(2, count, 8))
            one, two = np.take_along_axis(ours, at, 0), np.take_along_axis(theirs, other, 0)
            drawn_shares.append((one[:, None] > two[None]).mean())
        expected = np.quantile(drawn_shares, [0.025, 0.975])
        assert probability_of_improvement(ours, theirs).interval == pytest.approx(expected.tolist(), abs=0.015)


def test_a_model_that_always_wins_improves_for_certain_and_equal_ones_with_one_half():
    ours = drawn(40).reshape(5, 8)
    assert probability_of_improvement(ours + 99, ours) == (1, (1, 1))
    level = probability_of_improvement(np.zeros((5, 8)), np.zeros((5, 8)))
    assert level == (0.5, (0.5, 0.5))


def test_turning_the_comparison_turns_the_probability_and_its_interval():
    ours, theirs = drawn(40).reshape(5, 8), drawn(40, seed=1).reshape(5, 8)
    one, other = probability_of_improvement(ours, theirs), probability_of_improvement(theirs, ours)
    assert one.probability == pytest.approx(1 - other.probability)
    assert one.interval == pytest.approx((1 - other.interval.high, 1 - other.interval.low))


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
