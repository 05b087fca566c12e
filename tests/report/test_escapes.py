"""Escapes from the plateau: what they may not hang on, and their comparison, against scipy's test by hand, all
resamples, and curves whose escapes are known."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from report.written import collected
from symbert.report.statistics import (
    Escape,
    EscapeComparison,
    Escapes,
    compare_escapes,
    escape_contrasts,
    escapes_of,
    median_escape,
    shared_escapes,
)
from symbert.report.summary import summary

LEVEL = 3.0
EVERY = 50  # steps from one evaluation to the next
losses_of_a_run = st.lists(st.floats(1, 6), min_size=1, max_size=30)


def evaluated(*runs, every=EVERY):
    """The losses of runs, a row each, at equal steps from each other."""
    return pd.DataFrame([*runs], columns=[every * (at + 1) for at in range(len(runs[0]))])


def cells(escapes):
    """The evaluations before and at the escape of each run."""
    return [*zip(escapes.before.tolist(), escapes.at.tolist(), strict=True)]


def naive_escape(losses, level=LEVEL):
    """By going through a run: the step of the evaluation before, and of the first one at or below the level."""
    before = 0
    for step, loss in losses.items():
        if loss <= level:
            return before, step
        before = step
    return before, math.inf


@given(
    st.lists(losses_of_a_run, min_size=1, max_size=3).map(lambda runs: [run[: len(min(runs, key=len))] for run in runs])
)
def test_an_escape_is_the_first_evaluation_at_or_below_the_level(runs):
    losses = evaluated(*runs)
    escapes = escapes_of(losses, LEVEL)
    assert cells(escapes) == [naive_escape(run) for _, run in losses.iterrows()]
    assert escapes.escaped.tolist() == [min(run) <= LEVEL for run in runs]
    assert escapes.diverged.tolist() == [min(run) <= LEVEL < run[-1] for run in runs]


@given(losses_of_a_run, st.data())
def test_an_escape_does_not_change_when_the_run_goes_on(losses, data):
    """The exit of the demo was at 280, at 320 when the same losses went on, and nowhere when they were cut."""
    kept = data.draw(st.integers(1, len(losses)))
    ((before, at),), (of_cut,) = (cells(escapes_of(evaluated(run), LEVEL)) for run in (losses, losses[:kept]))
    last = EVERY * kept
    assert of_cut == ((before, at) if at <= last else (last, math.inf))


@given(st.lists(st.floats(3.01, 6), max_size=40), st.lists(st.floats(1, 3), max_size=40), st.integers(1, 12))
def test_a_coarser_grid_moves_an_escape_by_at_most_one_of_its_intervals(above, below, coarser):
    losses = evaluated(above + below) if above + below else evaluated([LEVEL])
    kept = losses.iloc[:, coarser - 1 :: coarser]
    (fine,), (coarse,) = cells(escapes_of(losses, LEVEL)), cells(escapes_of(kept, LEVEL))
    assert coarse[0] <= fine[0] < fine[1] <= coarse[1]
    assert coarse[1] - fine[1] < coarser * EVERY or coarse[1] == math.inf


def falling(escape, until=6000, every=50, rises=None):
    """A plateau of 5 until a step, and a fall beneath the level after it; after the step `rises` 7."""
    steps = range(every, until + 1, every)
    return pd.Series({step: 5.0 if step < escape else 7.0 if rises and step > rises else 2.0 for step in steps})


def seeds_of(escapes, **options):
    """The losses of a run for each of these escapes."""
    return pd.DataFrame([falling(escape, **options) for escape in escapes])


def compared(first, second, level=LEVEL):
    """The comparison of two models by their losses."""
    (result,) = compare_escapes([shared_escapes((first, level), (second, level))])
    return result


EARLY, LATE = (1820, 1840, 1960, 1910, 1870), (2840, 2980, 2910, 2870, 2950)


def test_models_are_compared_on_the_evaluations_that_both_have():
    """The same runs, one evaluated every 100 and one every 2,000 steps, differed "significantly"."""
    often, seldom = seeds_of(EARLY, every=100), seeds_of(EARLY, every=2000)
    first, second = shared_escapes((often, LEVEL), (seldom, LEVEL))
    assert cells(first) == cells(second) == [(0, 2000)] * 5
    assert compared(often, seldom).verdict == compared(seldom, often).verdict == "undecided"
    nothing = compared(often, seldom.rename(columns=lambda step: step + 1))
    assert (nothing.low, nothing.high, nothing.p_value, nothing.verdict) == (0, math.inf, 1, "undecided")


@pytest.mark.parametrize(
    ("every", "verdict"), [(10, "shorter"), (100, "shorter"), (1500, "undecided"), (3000, "undecided")]
)
def test_no_verdict_is_finer_than_the_grid(every, verdict):
    """Of evaluations so rare that both models escape between the same two, they were "within 25 %"."""
    pair = seeds_of(EARLY, every=every), seeds_of(LATE, every=every)
    assert compared(*pair).verdict == verdict
    opposite = {"shorter": "longer", "undecided": "undecided"}
    assert compared(*pair[::-1]).verdict == opposite[verdict]


times = st.lists(st.integers(100, 3000), min_size=5, max_size=5)


@given(times, times, st.integers(2, 40))
@settings(max_examples=25, deadline=None)
def test_the_bounds_on_a_coarser_grid_hold_those_on_a_finer_one(first, second, coarser):
    fine = compared(*(seeds_of(escapes, every=10, until=3000) for escapes in (first, second)))
    coarse = compared(*(seeds_of(escapes, every=10 * coarser, until=3000) for escapes in (first, second)))
    assert coarse.low <= fine.low <= fine.high <= coarse.high
    assert coarse.narrow_low <= fine.narrow_low <= fine.narrow_high <= coarse.narrow_high
    assert {fine.verdict, coarse.verdict} != {"shorter", "longer"}


def test_a_run_that_escapes_before_its_first_evaluation_is_far_ahead_and_not_never():
    ahead, behind = seeds_of([1] * 5), seeds_of(LATE)
    assert cells(escapes_of(ahead, LEVEL)) == [(0, 50)] * 5
    assert (compared(ahead, behind).verdict, compared(behind, ahead).verdict) == ("shorter", "longer")


def test_escapes_before_the_first_and_after_the_last_evaluation_are_said_as_such():
    known, first, none = Escape(800, 825), Escape(0, 500), Escape(1800, math.inf)
    assert [each.step for each in (known, first, none)] == [825, 500, None]
    assert [each.in_words for each in (known, first, none)] == ["825", "≤ 500", "> 1,800"]
    assert "at or before step 500" in first.in_a_sentence and "not within 1,800 steps" in none.in_a_sentence
    several = Escapes(np.array([0.0, 800, 1800]), np.array([500, 825, math.inf]), np.zeros(3, bool))
    assert several.in_words == "825 (≤ 500 to > 1,800)"


def test_a_run_that_rises_above_the_level_for_good_keeps_its_escape_and_has_diverged(report_settings, runs_of):
    """Escapes at 2,500 and explodes at 10,000: the exit was at 10,500."""
    models = {"original": None, "pairwise": 10_000}
    losses = {name: [falling(2500, until=20_000, every=500, rises=rises)] * 5 for name, rises in models.items()}
    kept, diverged = (escapes_of(pd.DataFrame(runs), LEVEL) for runs in losses.values())
    assert cells(kept) == cells(diverged) == [(2000, 2500)] * 5
    assert diverged.diverged.all() and not kept.diverged.any()
    runs = [
        ("tiny", name, seed, run.index, run)
        for name, of_name in losses.items()
        for seed, run in enumerate(of_name, start=1)
    ]
    _, _, supported, *_ = summary(collected(report_settings(escape_loss=LEVEL), runs=runs_of(*runs)))
    assert "Of pairwise 5 of 5 runs diverged" in supported and "Of original" not in supported
    assert "at step 2,500" in supported and "10,500" not in supported and "later escape" not in supported


ESCAPES = st.lists(st.one_of(st.integers(1, 40), st.none()), min_size=2, max_size=12)
LAST = 50


def seen_to_the_end(steps: list[int | None], last: int = LAST, every: int = 0) -> Escapes:
    """Escapes of runs that were all seen until the last step, each known to so many steps."""
    at = np.array([math.inf if step is None else step for step in steps], float)
    return Escapes(np.where(np.isfinite(at), at - every, last), at, np.zeros(len(at), bool))


def compare(first: Escapes, second: Escapes) -> EscapeComparison:
    """One comparison."""
    (result,) = compare_escapes([(first, second)])
    return result


def shares_by_hand(escapes: list[int | None]) -> dict[int, float]:
    """Kaplan and Meier's product over the steps at which runs escape."""
    share, shares = 1.0, {}
    for step in sorted({step for step in escapes if step is not None}):
        at_risk = sum(other is None or other >= step for other in escapes)
        share *= 1 - sum(other == step for other in escapes) / at_risk
        shares[step] = share
    return shares


def log_rank_by_hand(first: list[int | None], second: list[int | None]) -> float:
    """Mantel's chi-square: escapes of the first group less those expected, squared, by the hypergeometric variance."""
    observed = expected = variance = 0.0
    for step in sorted({step for step in first + second if step is not None}):
        risk = [sum(other is None or other >= step for other in group) for group in (first, second)]
        leave = sum(other == step for other in first + second)
        n = sum(risk)
        observed += sum(other == step for other in first)
        expected += leave * risk[0] / n
        if n > 1:
            variance += leave * risk[0] / n * risk[1] / n * (n - leave) / (n - 1)
    return float(stats.chi2.sf((observed - expected) ** 2 / variance, 1)) if variance else 1.0


@given(ESCAPES)
def test_the_median_is_where_the_curve_first_reaches_one_half(escapes):
    below = [step for step, share in shares_by_hand(escapes).items() if share <= 0.5 + 1e-12]
    assert median_escape(seen_to_the_end(escapes).at) == (below[0] if below else math.inf)


@given(ESCAPES, ESCAPES)
def test_the_test_is_mantels(first, second):
    count = min(len(first), len(second))  # runs of the same seeds
    first, second = first[:count], second[:count]
    p_value = compare(seen_to_the_end(first), seen_to_the_end(second)).p_value
    assert p_value == pytest.approx(log_rank_by_hand(first, second), abs=1e-9)


def test_the_bounds_are_those_of_all_resamples():
    """Six seeds have 46,656, and no share of a bound is near that of a step of their distribution."""
    first, second = np.array([50, 80, 110, 30, 20, 40]), np.array([60, 20, 30, 110, 70, 50])
    draws, every = np.array([*itertools.product(range(6), repeat=6)]), 10
    for ours, theirs, ratio in ((first, second, 40 / 50), (second, first, 50 / 40)):
        medians = [np.sort(steps[draws])[:, 2] for steps in (ours - every, ours, theirs - every, theirs)]
        low, high = medians[0] / medians[3], medians[1] / medians[2]
        result = compare(*(seen_to_the_end(steps.tolist(), 120, every) for steps in (ours, theirs)))
        assert [result.low, result.narrow_low] == np.quantile(low, [0.025, 0.05], method="inverted_cdf").tolist()
        assert [result.high, result.narrow_high] == np.quantile(high, [0.975, 0.95], method="inverted_cdf").tolist()
        assert result.ratio == ratio


def test_of_models_that_do_not_escape_nothing_is_known():
    none = seen_to_the_end([None] * 5)
    result = compare(none, none)
    assert (result.low, result.high, result.narrow_low, result.narrow_high) == (0, math.inf, 0, math.inf)
    assert (result.p_value, result.verdict) == (1, "undecided") and math.isnan(result.ratio)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([200] * 5, [400] * 5, "ratio of medians 0.50, 95 % interval 0.25 to 0.67"),
        ([200] * 5, [None] * 5, "ratio of medians, 95 % interval below 0.67"),  # 300 steps: it was 0.00
        ([None] * 5, [200] * 5, "ratio of medians, 95 % interval above 1.50"),
        ([50] * 5, [400] * 5, "ratio of medians, 95 % interval below 0.33"),  # escaped before the first evaluation
    ],
)
def test_the_ratio_of_medians_is_a_number_where_both_lie_between_two_evaluations(first, second, words):
    last = 300 if None in (*first, *second) else 500
    grid = range(100, last + 1, 100)

    def seeds(escapes):
        runs = [[6.0 if step is None or at < step else 2.0 for at in grid] for step in escapes]
        return escapes_of(pd.DataFrame(runs, columns=grid), LEVEL)

    result = compare(seeds(first), seeds(second))
    assert result.in_words == words and math.isnan(result.ratio) == ("medians," in words)


def test_escapes_are_corrected_within_a_size():
    models = {"original": seeds_of(LATE), "pairwise": seeds_of(EARLY), "shared": seeds_of(EARLY)}
    of_sizes = {(size, name): models[name] for size in ("tiny", "small") for name in models}
    found = escape_contrasts(of_sizes, LEVEL, None)
    assert [one.holm_p_value / one.p_value for one in found.values()] == [2] * 4


def test_runs_of_a_seed_are_drawn_together():
    """Escapes that are twice those of the other cell, seed by seed, have that ratio in every resample."""
    first, second = [20, 24, 40, 30, 28], [10, 12, 20, 15, 14]
    result = compare(seen_to_the_end(first), seen_to_the_end(second))
    assert (result.ratio, result.low, result.high) == (2, 2, 2)


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
    assert EscapeComparison(5, *bounds, p_value, p_value).verdict == verdict


def test_three_seeds_that_agree_show_no_equality():
    """Believed of the demo: that equal exits of three seeds make two operators equal."""
    same = seen_to_the_end([500] * 3, last=1600)
    assert compare(same, same).verdict == "undecided"
    more = seen_to_the_end([500] * 5, last=1600)
    assert compare(more, more).verdict == "within 25 %"


def test_a_demo_that_is_shorter_by_a_tenth_has_the_same_escapes(root):
    """Cut at 300 of its 340 steps, the demo had no exit of `original`. Its page says what its own seeds give."""
    lines = (root / "docs/findings/demo-search.md").read_text(encoding="utf-8").splitlines()
    cells = {line.split(" | ")[0]: line.strip("| ").split(" | ") for line in lines if line.count(" | ") == 6}
    by_seed = {name.strip("| `"): row[1:6] for name, row in cells.items() if "`" in name}
    of_seeds = {name: [*map(int, steps)] for name, steps in by_seed.items() if all(map(str.isdigit, steps))}
    assert [*of_seeds] == ["original", "symmetric", "pairwise", "original-wide"]
    demo = yaml.safe_load((root / "workflow/scales/demo.yaml").read_text(encoding="utf-8"))
    assert (
        demo["sweep"]["escape_loss"] == 3.0
        and max(max(steps) for steps in of_seeds.values()) <= 0.9 * demo["pretrain"]["steps"]
    )
    escapes = {
        name: seen_to_the_end(steps, every=demo["pretrain"]["evaluate_every"]) for name, steps in of_seeds.items()
    }
    for name in of_seeds.keys() - {"original"}:
        found = compare(escapes[name], escapes["original"])
        assert (
            cells[f"| `{name}`"][6] == f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]"
            and found.verdict == "shorter"
        )


def test_the_detectable_ratio_is_that_of_paired_logarithms_at_the_corrected_level():
    """Found in four of five simulated studies of six seeds and two comparisons, by scipy's paired t test."""
    first, second = [20, 26, 31, 24, 35, 29], [22, 24, 36, 30, 33, 31]
    pair = seen_to_the_end(first, every=1), seen_to_the_end(second, every=1)
    one, other = compare_escapes([pair, pair])
    spread = np.log(np.divide(first, second)).std(ddof=1)
    logs = np.random.default_rng(1).normal(math.log(one.detectable_ratio), spread, size=(20_000, 6))
    assert (stats.ttest_1samp(logs, 0, axis=1).pvalue <= 0.05 / 2).mean() == pytest.approx(0.8, abs=0.01)
    assert one == other and one.detectable_ratio < compare(*pair).detectable_ratio < 1
    for unknown in (seen_to_the_end([None, *first[1:]], every=1), seen_to_the_end(second, every=1)):
        assert math.isnan(compare(unknown, pair[1]).detectable_ratio), "not escaped, or no spread"
