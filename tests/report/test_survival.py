"""Survival statistics against formulas written out, and on cases whose answer is known."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from symbert.report.survival import ExitComparison, Exits, compare, median_exit, survival_curve

EXITS = st.lists(st.one_of(st.integers(1, 40), st.none()), min_size=2, max_size=12)
LAST = 50


def exits_of(exits: list[int | None]) -> Exits:
    """Exits of runs that were all seen until LAST."""
    return Exits.of(exits, [LAST] * len(exits))


def shares_by_hand(exits: list[int | None]) -> dict[int, float]:
    """Kaplan and Meier's product over the steps at which runs leave."""
    share, shares = 1.0, {}
    for step in sorted({step for step in exits if step is not None}):
        at_risk = sum(other is None or other >= step for other in exits)
        share *= 1 - sum(other == step for other in exits) / at_risk
        shares[step] = share
    return shares


def log_rank_by_hand(first: list[int | None], second: list[int | None]) -> float:
    """Mantel's chi-square: exits of the first group less those expected, squared, by the hypergeometric variance."""
    observed = expected = variance = 0.0
    for step in sorted({step for step in first + second if step is not None}):
        risk = [sum(other is None or other >= step for other in group) for group in (first, second)]
        leave = sum(other == step for other in first + second)
        n = sum(risk)
        observed += sum(other == step for other in first)
        expected += leave * risk[0] / n
        if n > 1:
            variance += leave * risk[0] / n * risk[1] / n * (n - leave) / (n - 1)
    return float(chi2.sf((observed - expected) ** 2 / variance, 1)) if variance else 1.0


@given(EXITS)
def test_shares_on_the_plateau_are_those_of_the_product_formula(exits):
    steps, shares = survival_curve(exits_of(exits))
    computed = dict(zip(steps.tolist(), shares.tolist(), strict=True))
    assert {step: pytest.approx(share) for step, share in shares_by_hand(exits).items()} == {
        step: share for step, share in computed.items() if step != LAST
    }


@given(EXITS)
def test_the_median_is_where_the_curve_first_reaches_one_half(exits):
    below = [step for step, share in shares_by_hand(exits).items() if share <= 0.5 + 1e-12]
    many = exits_of(exits)
    assert median_exit(many.steps, many.left) == (below[0] if below else math.inf)


@given(EXITS, EXITS)
def test_the_test_is_mantels(first, second):
    p_value = compare(*pair(first, second)).p_value
    assert p_value == pytest.approx(log_rank_by_hand(*same_length(first, second)), abs=1e-9)


def same_length(first: list, second: list) -> tuple[list, list]:
    """Runs of the same seeds."""
    count = min(len(first), len(second))
    return first[:count], second[:count]


def pair(first: list, second: list) -> tuple[Exits, Exits]:
    """The exits of two cells."""
    return tuple(exits_of(exits) for exits in same_length(first, second))


def test_the_interval_is_that_of_all_resamples_of_three_seeds():
    """With three seeds there are 27 resamples; the bootstrap's quantiles are those of their distribution."""
    first, second = [10, 20, 40], [20, 25, 30]
    ratios = sorted(
        np.median([first[seed] for seed in drawn]) / np.median([second[seed] for seed in drawn])
        for drawn in product(range(3), repeat=3)
    )
    result = compare(exits_of(first), exits_of(second))
    assert result.ratio == 20 / 25
    assert (result.low, result.high) == (ratios[0], ratios[-1])  # each has 1 of 27, more than 2.5 %


def test_runs_of_a_seed_are_drawn_together():
    """Exits that are twice those of the other cell, seed by seed, have that ratio in every resample."""
    first, second = [20, 24, 40, 30, 28], [10, 12, 20, 15, 14]
    result = compare(exits_of(first), exits_of(second))
    assert (result.ratio, result.low, result.high) == (2, 2, 2)


def test_cells_that_never_leave_are_undecided_and_not_equal():
    never = exits_of([None] * 6)
    result = compare(never, never)
    assert math.isnan(result.ratio) and result.p_value == 1
    assert result.verdict(1.0) == "undecided"


def test_a_run_that_diverged_is_censored_where_it_was_last_seen():
    """It was counted among those on the plateau until the last step of the others."""
    steps, shares = survival_curve(Exits.of([None, 30, 30, None], [10, LAST, LAST, LAST]))
    assert dict(zip(steps.tolist(), shares.tolist(), strict=True)) == {
        10: 1,
        30: pytest.approx(1 / 3),
        LAST: pytest.approx(1 / 3),
    }


def test_a_cell_that_never_leaves_takes_longer_than_one_that_does():
    result = compare(exits_of([None] * 10), exits_of([*range(10, 20)]))
    assert result.ratio == result.low == math.inf
    assert result.verdict(result.p_value) == "longer"


@pytest.mark.parametrize(
    ("bounds", "p_value", "verdict"),
    [
        ((0.5, 0.4, 0.7, 0.42, 0.68), 0.01, "shorter"),
        ((0.5, 0.4, 0.7, 0.42, 0.68), 0.06, "undecided"),  # the bounds alone do not decide
        ((1.5, 1.1, 1.9, 1.2, 1.8), 0.05, "longer"),
        ((1.5, 0.9, 1.9, 0.95, 1.8), 0.01, "undecided"),
        ((1.0, 0.7, 1.3, 0.81, 1.24), 0.9, "within 25 %"),
        ((1.0, 0.7, 1.3, 0.79, 1.24), 0.9, "undecided"),
    ],
)
def test_verdicts_need_both_the_test_and_the_interval(bounds, p_value, verdict):
    assert ExitComparison(5, *bounds, p_value).verdict(p_value) == verdict


def test_three_seeds_that_agree_show_no_equality():
    """Believed of the demo: that equal exits of three seeds make two operators equal."""
    same = Exits.of([500, 500, 500], [1600] * 3)
    assert compare(same, same).verdict(1.0) == "undecided"
    more = Exits.of([500] * 5, [1600] * 5)
    assert compare(more, more).verdict(1.0) == "within 25 %"
