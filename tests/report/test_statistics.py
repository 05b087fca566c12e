"""Means over seeds, tests, crossings and exits, against formulas, scipy, every case counted, and the authors' data."""

import itertools
import math
import operator
import random
import statistics
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from report.written import unchecked
from symbert.errors import MissingInputError
from symbert.report import published
from symbert.report.collect import read_scores
from symbert.report.statistics import (
    ARRANGEMENTS,
    ExitComparison,
    Exits,
    Interval,
    compare_exits,
    comparisons,
    exit_contrasts,
    exits_of,
    final_scores,
    first_crossing,
    glue_scores,
    holm,
    loss_contrasts,
    median_exit,
    p_in_words,
    paired_interval,
    permutation_test,
    plateau_exit,
    sign_flip_test,
    welch_interval,
)
from symbert.report.tidy import parted
from symbert.report.tidy import read_scores as read_csv_of_scores

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
finite = st.floats(-1, 1, allow_nan=False)


def test_the_glue_score_counts_mnli_twice(record, write_scores):
    values = dict(zip(published.COLUMNS, [0.1, 0.2, 0.9, 0.7, 0.3, 0.4, 0.5, 0.6, 0.8], strict=True))
    records = []
    for task in TASKS:
        columns = record("tiny", "original", 1, task, 1)["metrics"]
        records.append(record("tiny", "original", 1, task, 1, metrics={key: values[key] for key in columns}))
    table = read_scores(write_scores(records), TASKS, [1])
    assert glue_scores(table).tolist() == pytest.approx([100 * sum(values.values()) / 9])


@given(st.lists(finite, min_size=1, max_size=8), finite)
def test_a_crossing_lies_between_its_checkpoints_and_everything_before_is_below(scores, line):
    steps = [10 * number for number in range(1, len(scores) + 1)]
    found = first_crossing(steps, scores, line)
    reached = [step for step, score in zip(steps, scores, strict=True) if score >= line]
    assert (found.after if found else None) == (reached[0] if reached else None)
    if found and found.before is not None:
        assert found.before <= found.step <= found.after == found.before + 10


def demo_curve(leaves, end, noise=0.01, seed=0):
    """A curve like the demo's: 6.9, a plateau near 5.6, a fall from step `leaves` to `end` at step 1,800."""
    source = random.Random(seed)
    steps = list(range(50, 1801, 50))
    losses = []
    for step in steps:
        fallen = 1 - math.exp(-max(0, step - leaves) / 900)
        share = fallen / (1 - math.exp(-(1800 - leaves) / 900))
        losses.append(5.6 + 1.3 * math.exp(-step / 60) - (5.6 - end) * share + source.gauss(0, noise))
    return steps, losses


@pytest.mark.parametrize("leaves", [500, 600, 800, 1000, 1400])
@pytest.mark.parametrize("end", [4.7, 4.8, 4.9])
def test_a_demo_curve_leaves_the_plateau_within_two_evaluations_of_where_it_was_made_to(leaves, end):
    for seed in range(5):
        assert abs(plateau_exit(*demo_curve(leaves, end, seed=seed)) - leaves) <= 100


@pytest.mark.parametrize("plateau", [[5.0] * 6, [5.6, 5.3, 5.1, 5.05, 5.02, 5.0]])
def test_a_lone_spike_is_no_exit(plateau):
    """One evaluation of 9.0 stood above every line, so that the run "left its plateau" after it."""
    steps = list(range(50, 1850, 50))
    flat = [*plateau, *[5.0] * 14, *[4.9] * 16]
    assert plateau_exit(steps, flat) is None
    for at in range(1, len(flat) - 1):
        assert plateau_exit(steps, [*flat[:at], 9.0, *flat[at + 1 :]]) is None, at
    assert plateau_exit(steps[:3], [5.0, 9.0, 4.9]) is None


def naive_exit(steps: list[int], losses: list[float]) -> int | None:
    """The evaluation after the highest bulge above a line over log steps, from any evaluation to the last one; None
    where the bulge has at most 2 % of the loss."""
    heights = []
    for at in range(len(steps) - 1):
        lines = [
            np.interp(np.log(steps[at]), np.log([steps[first], steps[-1]]), [losses[first], losses[-1]])
            for first in range(at + 1)
        ]
        heights.append(losses[at] - min(lines))
    last = int(np.argmax(heights))
    return steps[last + 1] if heights[last] > 0.02 * losses[last] else None


def test_the_exit_of_falling_and_of_noisy_curves_is_that_of_a_search_over_all_lines():
    for seed in range(5):
        curve = demo_curve(700, 4.8, noise=0.05, seed=seed)
        assert plateau_exit(*curve) == naive_exit(*curve)
    draw, exits = np.random.default_rng(0), []
    for _ in range(300):
        steps = sorted(draw.choice(np.arange(1, 200), draw.integers(3, 12), replace=False).tolist())
        losses = sorted(draw.uniform(2, 2.0 + draw.choice([0.1, 1, 5]), len(steps)).tolist(), reverse=True)
        exits.append(naive_exit(steps, losses))
        assert plateau_exit(steps, losses) == exits[-1], (steps, losses)
    assert None in exits and len(set(exits)) > 50


def test_a_run_that_never_leaves_was_last_seen_on_the_plateau_at_its_last_step():
    leaving, staying = [5.0, 5.0, 5.0, 3.0, 2.0], [5.0] * 5
    exits = exits_of(pd.DataFrame([leaving, staying], index=[1, 2], columns=[10, 20, 30, 40, 50]))
    assert exits.steps.tolist() == [plateau_exit([10, 20, 30, 40, 50], leaving), 50] and exits.steps[0] < 50
    assert exits.left.tolist() == [True, False]


def test_without_any_score_the_last_step_is_said_to_be_missing():
    with pytest.raises(MissingInputError, match="the last step is 0, expected 20"):
        final_scores(pd.DataFrame({"step": []}), 20)


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


def test_an_interval_includes_its_bounds_but_for_noise():
    included = [Interval(-1, 2).includes(value) for value in (-1.001, -1 - 1e-12, 0, 2 + 1e-12, 2.001)]
    assert included == [False, True, True, True, False]


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


@given(st.lists(hundredths, min_size=2, max_size=7).map(np.array))
@settings(max_examples=60)
def test_the_paired_p_value_counts_every_choice_of_signs_with_ties(differences):
    whole = [round(100 * value) for value in differences]
    sums = [abs(sum(map(operator.mul, signs, whole))) for signs in itertools.product((1, -1), repeat=len(whole))]
    assert sign_flip_test(differences) == sum(total >= sums[0] for total in sums) / len(sums)


def test_last_losses_are_paired_by_seed_and_corrected_within_a_size():
    """Runs of a seed differ by 0.1 give or take 0.02, seeds by one: unpaired nothing would show."""
    start = np.arange(6.0)
    ends = {"original": start, "pairwise": start - 0.1 + 0.02 * drawn(6, mean=0), "shared": start + drawn(6)}
    losses = {("tiny", name): pd.DataFrame({5: 9.0, 9: 8.0, 10: end}, index=range(1, 7)) for name, end in ends.items()}
    pairwise, shared = loss_contrasts(losses, None)
    assert (pairwise.model, shared.model, shared.reference) == ("pairwise", "shared", "original")
    difference = ends["pairwise"] - ends["original"]
    assert (pairwise.n, pairwise.p) == (6, 2 / 64) and pairwise.holm_p == holm([pairwise.p, shared.p])[0]
    assert (pairwise.score, pairwise.difference) == ("validation_loss", pytest.approx(difference.mean()))
    assert pairwise.std == pytest.approx(difference.std(ddof=1))
    assert pairwise.interval == pytest.approx(stats.ttest_1samp(difference, 0).confidence_interval(0.95))
    assert loss_contrasts(losses, [["pairwise", "original"]])[0].is_significant
    few = {model: table.loc[:2] for model, table in losses.items()}
    other = losses | {("tiny", "original"): losses["tiny", "original"].rename({6: 7})}
    assert loss_contrasts(few, None) == loss_contrasts(other, None) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_his_procedure_rejects(given):
    """From the smallest on, as long as each is at most the level over the number of those left."""
    for level in (0.01, 0.05, 0.5):
        order = sorted(range(len(given)), key=given.__getitem__)
        passes = [given[at] * (len(given) - rank) <= level for rank, at in enumerate(order)]
        rejected = set(order[: passes.index(False) if False in passes else len(order)])
        assert {at for at, value in enumerate(holm(given)) if value <= level} == rejected


def test_no_p_value_is_written_as_zero():
    assert [p_in_words(p_value) for p_value in (9e-5, 1e-4, 0.00794)] == ["< 0.0001", "0.0001", "0.0079"]


TWO_TASKS = ["rte", "mnli"]
SCORES = ["glue_score", "rte", "mnli_matched", "mnli_mismatched"]


@pytest.fixture
def compared(record, write_scores):
    """Comparisons of the final scores of the given records, by model, reference and score."""

    def compare(records, tasks=TWO_TASKS, steps=9):
        seeds = sorted({entry["finetune_seed"] for entry in records})
        with unchecked():
            found = comparisons(final_scores(read_scores(write_scores(records), tasks, seeds), steps))
        named = {(one.model, one.reference, one.score): one for one in found}
        assert len(named) == len(found)
        return named

    return compare


@pytest.fixture
def noisy(record):
    """Records with scores around 0.6 of every combination of operators, steps and seeds."""

    def make(attention=("original", "pairwise"), steps=(9,), pretrain_seeds=(1,), seeds=(1, 2, 3), **changes):
        source = random.Random(0)
        return [
            record("tiny", name, step, task, seed, source.uniform(0.55, 0.65), pretrain_seed=pretrain_seed, **changes)
            for name, step, task, pretrain_seed, seed in itertools.product(
                attention, steps, TWO_TASKS, pretrain_seeds, seeds
            )
        ]

    return make


def percents(records, attention, task="rte", **cell):
    """The scores of a task by its seeds."""
    chosen = [entry for entry in records if entry["attention"] == attention and entry["task"] == task]
    chosen = [entry for entry in chosen if cell.items() <= entry.items()]
    keys = ("pretrain_seed", "finetune_seed")
    return {tuple(entry[key] for key in keys): 100 * next(iter(entry["metrics"].values())) for entry in chosen}


def test_seeds_that_one_model_lacks_are_dropped_before_fine_tuning_seeds_are_averaged(compared, record):
    """Fine-tuning seeds were averaged first, over other seeds of one model than of the other.

    Seed 2 scores 10 points higher than seed 1 in both models, which differ by 1 point throughout.
    """
    cells = itertools.product(("original", "pairwise"), (1, 2, 3), (1, 2), TWO_TASKS)
    records = [
        record("tiny", name, 9, task, seed, 0.5 + 0.1 * (seed == 2) + 0.01 * (name != "original"), pretrain_seed=first)
        for name, first, seed, task in cells
        if (name, first, seed, task) != ("original", 1, 2, "rte")
    ]
    found = compared(records)
    for score in SCORES:
        one = found["pairwise", "original", score]
        assert (one.n, one.difference) == (3, pytest.approx(1)), score


def test_models_without_pre_training_are_a_reference(compared, noisy):
    records = noisy(steps=(0, 9))
    found = compared(records)
    names = ["original", "pairwise"]
    pairs = [("pairwise", "original"), *((name, "no pre-training") for name in names)]
    assert list(dict.fromkeys((model, reference) for model, reference, _ in found)) == pairs
    before, after = (percents(records, "pairwise", step=step) for step in (0, 9))
    gain = found["pairwise", "no pre-training", "rte"]
    assert gain.difference == pytest.approx(statistics.mean(after[seed] - before[seed] for seed in after))
    assert found["pairwise", "no pre-training", "glue_score"].p


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_fewer_than_three_seeds_have_a_difference_but_neither_interval_nor_p_value(compared, noisy, seeds):
    """Of two, an interval of 12.7 standard errors and a p of 0.5 or 1 were printed."""
    records = noisy(seeds=seeds)
    ours, theirs = percents(records, "pairwise"), percents(records, "original")
    differences = [ours[seed] - theirs[seed] for seed in ours]
    found = compared(records)
    one = found["pairwise", "original", "rte"]
    assert (one.n, one.difference) == (len(seeds), pytest.approx(statistics.mean(differences)))
    assert one.std == (pytest.approx(statistics.stdev(differences)) if len(seeds) > 1 else None)
    for one in found.values():
        assert (one.interval, one.p) == (None, None)
        assert not one.is_significant


def test_only_glue_scores_are_tested_and_corrected_by_size_and_reference(compared, noisy):
    """Of two operators there are 2 questions, not 2 × 5: that other scores were looked at costs these nothing."""
    found = compared(noisy(attention=("original", "symmetric", "pairwise"), steps=(0, 9), seeds=range(1, 7)))
    assert {score for (_, _, score), one in found.items() if one.p} == {"glue_score"}
    families = defaultdict(list)
    for (_, reference, _), one in found.items():
        if one.p:
            families[reference].append(one)
    assert {reference: len(family) for reference, family in families.items()} == {"original": 2, "no pre-training": 3}
    for family in families.values():
        assert [one.holm_p for one in family] == holm([one.p for one in family])
    assert any(one.holm_p > one.p for family in families.values() for one in family)


@pytest.fixture
def of_authors(authors_csv):
    """Comparisons of the authors' final GLUE scores with `original`, by size and model."""
    final, _ = parted(read_csv_of_scores(authors_csv[0]), 200_000)
    found = comparisons(final[final["column"].isin(published.COLUMNS)])
    return {(one.size, one.model): one for one in found if one.score == "glue_score"}


def test_the_authors_scores_show_that_pairwise_is_better_in_small_but_not_in_base(of_authors):
    """Base, 79.36 against 78.74: Welch's interval [−0.16, 1.41]. Small, 73.38 and 72.72: all runs above all."""
    base = of_authors["base", "pairwise"]
    assert (base.n, round(base.difference, 3), round(base.std, 3)) == (5, 0.625, 0.46)
    assert np.round(base.interval, 2).tolist() == [-0.16, 1.41] and base.smallest_p == 2 / 252
    assert round(base.p * 252) == 22 and base.holm_p == base.p
    others = {model: one for model, one in of_authors.items() if model != ("base", "pairwise")}
    assert len(others) == 3 and all(one.is_significant and one.p == pytest.approx(2 / 252) for one in others.values())
    assert others["base", "symmetric"].interval.high < -3 and others["small", "pairwise"].interval.low > 0.2


EXITS = st.lists(st.one_of(st.integers(1, 40), st.none()), min_size=2, max_size=12)
LAST = 50


def seen_to_the_end(exits: list[int | None], last: int = LAST) -> Exits:
    """Exits of runs that were all seen until the last step."""
    return Exits(np.array([step or last for step in exits], float), np.array([step is not None for step in exits]))


def compare(first: Exits, second: Exits) -> ExitComparison:
    """One comparison."""
    (result,) = compare_exits([(first, second)])
    return result


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
    return float(stats.chi2.sf((observed - expected) ** 2 / variance, 1)) if variance else 1.0


@given(EXITS)
def test_the_median_is_where_the_curve_first_reaches_one_half(exits):
    below = [step for step, share in shares_by_hand(exits).items() if share <= 0.5 + 1e-12]
    many = seen_to_the_end(exits)
    assert median_exit(many.steps, many.left) == (below[0] if below else math.inf)


@given(EXITS, EXITS)
def test_the_test_is_mantels(first, second):
    count = min(len(first), len(second))  # runs of the same seeds
    first, second = first[:count], second[:count]
    p_value = compare(seen_to_the_end(first), seen_to_the_end(second)).p_value
    assert p_value == pytest.approx(log_rank_by_hand(first, second), abs=1e-9)


def test_the_bounds_are_those_of_all_resamples():
    """Six seeds have 46,656, and no share of a bound is near that of a step of their distribution."""
    first, second = np.array([50, 80, 110, 30, 20, 40]), np.array([60, 20, 30, 110, 70, 50])
    draws = np.array([*itertools.product(range(6), repeat=6)])
    for ours, theirs, ratio in ((first, second, 40 / 50), (second, first, 50 / 40)):
        ratios = np.sort(ours[draws])[:, 2] / np.sort(theirs[draws])[:, 2]
        result = compare(seen_to_the_end(ours.tolist(), 120), seen_to_the_end(theirs.tolist(), 120))
        bounds = [result.low, result.high, result.narrow_low, result.narrow_high]
        assert bounds == np.quantile(ratios, [0.025, 0.975, 0.05, 0.95], method="inverted_cdf").tolist()
        assert result.ratio == ratio


def test_of_models_that_never_leave_nothing_is_known():
    never = seen_to_the_end([None] * 5)
    result = compare(never, never)
    assert (result.low, result.high, result.narrow_low, result.narrow_high) == (0, math.inf, 0, math.inf)
    assert (result.p_value, result.verdict) == (1, "undecided")


def test_exits_are_corrected_within_a_size():
    early, late = (
        pd.DataFrame([demo_curve(leaves, 4.8, seed=seed)[1] for seed in range(5)], columns=range(50, 1801, 50))
        for leaves in (500, 1000)
    )
    models = {"original": late, "pairwise": early, "shared": early}
    found = exit_contrasts({(size, name): models[name] for size in ("tiny", "small") for name in models}, None)
    assert [one.holm_p_value / one.p_value for one in found.values()] == [2] * 4


def test_runs_of_a_seed_are_drawn_together():
    """Exits that are twice those of the other cell, seed by seed, have that ratio in every resample."""
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
    assert ExitComparison(5, *bounds, p_value, p_value).verdict == verdict


def test_three_seeds_that_agree_show_no_equality():
    """Believed of the demo: that equal exits of three seeds make two operators equal."""
    same = seen_to_the_end([500] * 3, last=1600)
    assert compare(same, same).verdict == "undecided"
    more = seen_to_the_end([500] * 5, last=1600)
    assert compare(more, more).verdict == "within 25 %"
