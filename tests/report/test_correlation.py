"""Rank correlation over operators, against scipy, every order by hand, and draws with a known answer."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from symbert.report.correlation import ENUMERATED, ORDERS, correlations, rank_correlation

KINDS = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}
few = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=6)


def table(**measures):
    """Measures by name: lists over operators, of numbers for one seed or lists for several."""
    rows = {}
    for name, operators in measures.items():
        for number, seeds in enumerate(operators):
            for seed, value in enumerate(seeds if isinstance(seeds, list) else [seeds], start=1):
                rows.setdefault((f"operator-{number}", seed), {})[name] = value
    index = pd.MultiIndex.from_tuples(rows, names=["attention", "seed"])
    return pd.DataFrame(list(rows.values()), index=index, columns=list(measures), dtype=float)


@pytest.mark.parametrize("kind", KINDS)
@given(few)
@settings(max_examples=50)
def test_the_correlation_is_scipys_with_ties(kind, pairs):
    ours, theirs = np.array(pairs, dtype=float).T
    expected = KINDS[kind](ours, theirs).statistic if len(set(ours)) > 1 and len(set(theirs)) > 1 else math.nan
    found = rank_correlation(table(probe=ours, exit=theirs), "probe", "exit", kind)
    assert found.n == len(pairs)
    assert found.value == (None if math.isnan(expected) else pytest.approx(expected, abs=1e-12))


@pytest.mark.parametrize("kind", KINDS)
@given(few.filter(lambda pairs: len(pairs) < 6))
@settings(max_examples=10)
def test_the_p_value_counts_every_order(kind, pairs):
    ours, theirs = np.array(pairs, dtype=float).T
    found = rank_correlation(table(probe=ours, exit=theirs), "probe", "exit", kind)
    if found.value is None:
        assert found.p_value is found.smallest_p_value is found.interval is None
        return
    values = [abs(KINDS[kind](ours, order).statistic) for order in itertools.permutations(theirs)]
    assert found.p_value == pytest.approx(np.mean([value >= abs(found.value) - 1e-9 for value in values]))
    assert found.smallest_p_value == pytest.approx(np.mean([value >= max(values) - 1e-9 for value in values]))


def test_the_p_values_are_scipys_exact_ones_where_nothing_is_tied():
    source = np.random.default_rng(4)
    ours, theirs = source.normal(size=(2, 6))
    found = rank_correlation(table(probe=ours, exit=theirs), "probe", "exit", "kendall")
    assert found.p_value == pytest.approx(stats.kendalltau(ours, theirs, method="exact").pvalue)

    def spearman(order):
        return stats.spearmanr(order, theirs).statistic

    expected = stats.permutation_test((ours,), spearman, permutation_type="pairings", n_resamples=math.inf)
    assert rank_correlation(table(probe=ours, exit=theirs), "probe", "exit").p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize(("operators", "smallest"), [(3, 2 / 6), (4, 2 / 24), (5, 2 / 120)])
def test_a_perfect_order_of_few_operators_has_the_smallest_p_value(operators, smallest):
    """Of four operators no correlation is significant at 0.05, however perfect: 2 of 24 orders."""
    found = rank_correlation(table(probe=range(operators), exit=range(operators)), "probe", "exit")
    assert (found.value, found.p_value, found.smallest_p_value) == (1, pytest.approx(smallest), pytest.approx(smallest))


def test_above_eight_operators_orders_are_drawn_and_the_observed_one_is_among_them():
    source = np.random.default_rng(1)
    ours, noise = source.normal(size=(2, ENUMERATED + 4))
    found = rank_correlation(table(probe=ours, exit=ours), "probe", "exit")
    assert found.p_value == found.smallest_p_value == 1 / (1 + ORDERS)
    found = rank_correlation(table(probe=ours, exit=ours + 2 * noise), "probe", "exit", "kendall")
    exact = stats.kendalltau(ours, ours + 2 * noise, method="exact").pvalue
    assert 0.02 < exact < 0.5 and found.p_value == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("operators", [0, 1, 2])
def test_of_fewer_than_three_operators_nothing_is_inferred(operators):
    found = rank_correlation(table(probe=range(operators), exit=range(operators)), "probe", "exit")
    assert (found.n, found.value) == (operators, 1 if operators == 2 else None)
    assert found.interval is found.p_value is found.smallest_p_value is None


def test_an_operators_value_is_the_median_of_its_seeds_and_may_be_never():
    """Means over seeds would be infinite for two operators, and their order lost."""
    exits = [[700, 800, math.inf], [900, 950, math.inf], [math.inf, math.inf, 990], [600, 650, 620]]
    found = rank_correlation(table(probe=[2, 3, 4, 1], exit=exits), "probe", "exit")
    assert (found.n, found.value) == (4, 1)


def test_operators_that_lack_a_measure_are_left_out_and_seeds_may_differ_in_number():
    measures = table(probe=[[0.1, 0.2], [0.5], [0.9, 0.7], 0.3], exit=[[3, 4, 5], [6, 7, 8], [9, 9, 10], math.nan])
    found = rank_correlation(measures, "probe", "exit")
    assert (found.n, found.value) == (3, 1)


def test_the_interval_is_that_of_every_draw_of_operators_where_each_has_one_seed():
    """All 5⁵ of them; those with one operator five times have no correlation."""
    ours, theirs = np.array([1, 2, 3, 4, 5.0]), np.array([2, 1, 4, 3, 5.0])
    drawn = np.array(list(itertools.product(range(5), repeat=5)))
    for kind in KINDS:
        every = correlations(ours[drawn], theirs[drawn], kind)
        low, high = np.nanquantile(every, [0.025, 0.975])
        found = rank_correlation(table(probe=ours, exit=theirs), "probe", "exit", kind)
        assert np.isnan(every).sum() == 5 and found.interval == pytest.approx((low, high), abs=0.05)


def test_seeds_that_disagree_widen_the_interval():
    """Five operators in a perfect order of medians: without noise over seeds the interval is [1, 1] and p the same."""
    still = table(probe=range(5), exit=range(5))
    noisy = table(probe=range(5), exit=[[value - 4, value, value + 4] for value in range(5)])
    one, other = (rank_correlation(measures, "probe", "exit") for measures in (still, noisy))
    assert one.interval == pytest.approx((1, 1)) and other.value == 1
    assert other.interval.low < 0.5 and one.p_value == other.p_value


def test_seeds_that_both_measures_have_are_drawn_together():
    """With measures that agree in every run, each draw agrees; drawn apart, few would."""
    runs = [[1, 5, 9], [2, 6, 7], [3, 4, 8]]
    assert rank_correlation(table(loss=runs, exit=runs), "loss", "exit").interval == pytest.approx((1, 1))
    apart = table(loss=runs, exit=[[*seeds, seeds[1]] for seeds in runs])
    assert rank_correlation(apart, "loss", "exit").interval.low < 0


def test_turning_one_measure_turns_the_interval():
    measures = table(probe=[[3, 1], [4, 6], [2, 9], [7, 5]], exit=[[1, 2], [6, 3], [5, 7], [4, 8]])
    found, turned = (rank_correlation(measures * [1, sign], "probe", "exit") for sign in (1, -1))
    assert turned.value == -found.value and turned.p_value == found.p_value
    assert turned.interval == pytest.approx((-found.interval.high, -found.interval.low), abs=0.02)
