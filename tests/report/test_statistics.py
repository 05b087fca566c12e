"""Means over seeds, tests and crossings, against formulas, scipy, every case counted, and the authors' data."""

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
from symbert.experiment.power import POWER, detectable_effect
from symbert.report import published
from symbert.report.collect import read_scores
from symbert.report.statistics import (
    ARRANGEMENTS,
    Interval,
    comparisons,
    final_scores,
    first_crossing,
    glue_scores,
    holm,
    loss_contrasts,
    p_in_words,
    paired_interval,
    permutation_test,
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


def found(ours, theirs, level, paired):
    """The share of rows in which a two-sided t test, of scipy, finds a difference."""
    test = stats.ttest_rel(ours, theirs, axis=1) if paired else stats.ttest_ind(ours, theirs, axis=1, equal_var=False)
    return (test.pvalue <= level).mean()


@pytest.mark.parametrize("level", [0.05, 0.05 / 6])
@pytest.mark.parametrize("count", [4, 5, 10])
def test_the_detectable_difference_is_found_in_four_of_five_simulated_experiments(count, level):
    """By simulation: paired differences with a deviation of √5, and groups with deviations of 1 and 2."""
    source, rows = np.random.default_rng(1), 40_000
    noise = source.normal(size=(2, rows, count)) * np.array([1, 2])[:, None, None]
    shift = detectable_effect(math.sqrt(5 / count), count - 1, level)
    assert found(noise[0] + shift, noise[1], level, paired=True) == pytest.approx(POWER, abs=0.01)
    freedom = (1 + 4) ** 2 / (1 + 16) * (count - 1)
    shift = detectable_effect(math.sqrt(5 / count), freedom, level)
    assert found(noise[0] + shift, noise[1], level, paired=False) == pytest.approx(POWER, abs=0.06)


def test_what_a_test_could_find_is_of_the_corrected_level_and_none_where_no_p_can_reach_it(compared, noisy):
    """Of two operators the level is 0.025, of 5 and 5 units the smallest p is 2/252, of 3 and 3 it is 0.1."""
    records = noisy(attention=("original", "symmetric", "pairwise"), seeds=(1, 2, 3, 4, 5))
    one = compared(records)["pairwise", "original", "glue_score"]
    ((size, freedom),), interval = one.errors, one.interval
    assert interval.high - interval.low == pytest.approx(2 * stats.t.ppf(0.975, freedom) * size)
    assert one.detectable == detectable_effect(size, freedom, 0.025)
    few = compared(noisy(attention=("original", "pairwise"), seeds=(1, 2, 3)))["pairwise", "original", "glue_score"]
    assert few.errors and few.detectable is None


@pytest.mark.parametrize("effects", [np.zeros(3), np.array([3, -2, -1])])
def test_sign_flips_over_seeds_and_tasks_hold_their_level_where_differences_cancel_out_too(effects):
    """3 seeds of 3 tasks with spreads of their own: p is at most 0.1 in a tenth of the cases without any difference,
    and in fewer where tasks differ and their mean does not."""
    source, spreads = np.random.default_rng(2), np.geomspace(0.2, 2, 3)
    noise = spreads[:, None] * source.normal(size=(250, 3, 3))
    p_values = np.array([sign_flip_test((effects[:, None] + each).ravel()) for each in noise])
    share = (p_values <= 0.1).mean()
    assert share < 0.05 if effects.any() else 0.06 < share < 0.14


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


def test_the_authors_scores_of_a_seed_on_several_tasks_are_no_more_alike_than_independent_ones(authors_csv):
    """Which the sign flips of fine-tunings take for granted: a seed's mean difference varies 0.66 times as much."""
    final, _ = parted(read_csv_of_scores(authors_csv[0]), 200_000)
    columns = [column for column in published.COLUMNS if column != "mnli_mismatched"]  # of the fine-tuning of the other
    scores = final[final["column"].isin(columns)].pivot(
        index=["size", "attention", "finetune_seed"], columns="column", values="score"
    )
    ratios = []
    for size, (ours, theirs) in itertools.product(
        ("small", "base"), itertools.combinations(("original", "symmetric", "pairwise"), 2)
    ):
        differences = scores.loc[size, ours] - scores.loc[size, theirs]
        ratios.append(differences.mean(axis=1).var() * len(columns) ** 2 / differences.var().sum())
    assert [round(value, 2) for value in (np.mean(ratios), min(ratios), max(ratios))] == [0.66, 0.27, 1.39]
