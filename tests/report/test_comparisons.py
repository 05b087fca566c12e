"""Intervals and tests against formulas, scipy and counts of every case; what is compared, and corrected with what."""

import itertools
import math
import random
import statistics
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from symbert.report.comparisons import (
    PATTERNS,
    RESAMPLES,
    Interval,
    bootstrap_interval,
    comparisons,
    holm,
    sign_flip_test,
    t_intervals,
)
from symbert.report.scores import read_scores
from symbert.report.statistics import final_scores

TASKS = ["rte", "mnli"]
SCORES = ["glue_score", "mean_of_tasks", "rte", "mnli_matched", "mnli_mismatched"]


@pytest.fixture
def compared(record, write_scores):
    """Comparisons of the final scores of the given records, by model, reference and score."""

    def compare(records, tasks=TASKS, steps=9, **options):
        seeds = sorted({entry["finetune_seed"] for entry in records})
        found = comparisons(final_scores(read_scores(write_scores(records), tasks, seeds, **options), steps))
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
                attention, steps, TASKS, pretrain_seeds, seeds
            )
        ]

    return make


def percents(records, attention, task="rte", **cell):
    """The scores of a task by its seeds."""
    chosen = [entry for entry in records if entry["attention"] == attention and entry["task"] == task]
    chosen = [entry for entry in chosen if cell.items() <= entry.items()]
    keys = ("pretrain_seed", "finetune_seed")
    return {tuple(entry[key] for key in keys): 100 * next(iter(entry["metrics"].values())) for entry in chosen}


def test_with_one_pre_training_seed_fine_tuning_seeds_are_pairs(compared, noisy):
    records = noisy()
    ours, theirs = percents(records, "pairwise"), percents(records, "original")
    differences = [ours[seed] - theirs[seed] for seed in ours]
    found = compared(records)
    one = found["pairwise", "original", "rte"]
    assert (one.n, one.unit) == (3, "fine-tuning seed")
    assert one.difference == pytest.approx(statistics.mean(differences))
    assert one.std == pytest.approx(statistics.stdev(differences))
    expected = stats.ttest_rel(list(ours.values()), list(theirs.values())).confidence_interval(0.95)
    assert [one.t.low, one.t.high] == pytest.approx(list(expected))
    assert [score for _, _, score in found] == SCORES


def test_pairs_are_made_by_seed_and_not_by_position(compared, record):
    """In the order of the files seed 3 of one model would meet seed 1 of the other."""
    scores = {1: 0.5, 2: 0.6, 3: 0.7}
    records = [record("tiny", "original", 9, "rte", seed, score) for seed, score in scores.items()]
    records += [record("tiny", "pairwise", 9, "rte", seed, scores[seed] + 0.02) for seed in (3, 1, 2)]
    one = compared(records, ["rte"])["pairwise", "original", "rte"]
    assert (one.difference, one.std) == (pytest.approx(2), pytest.approx(0, abs=1e-9))
    assert one.unpaired.includes(0) and not one.t.includes(0)


def test_with_several_pre_training_seeds_these_are_the_units_and_fine_tuning_seeds_are_averaged(compared, noisy):
    records = noisy(pretrain_seeds=(1, 2, 4))
    ours, theirs = percents(records, "pairwise"), percents(records, "original")
    units = [
        statistics.mean(ours[pretrain_seed, seed] - theirs[pretrain_seed, seed] for seed in (1, 2, 3))
        for pretrain_seed in (1, 2, 4)
    ]
    one = compared(records)["pairwise", "original", "rte"]
    assert (one.n, one.unit) == (3, "pre-training seed")
    assert (one.difference, one.std) == (pytest.approx(statistics.mean(units)), pytest.approx(statistics.stdev(units)))
    assert one.smallest_p_value == 0.25


def test_only_pre_training_seeds_of_both_models_count(compared, noisy):
    records = [
        entry
        for entry in noisy(pretrain_seeds=(1, 2))
        if (entry["attention"], entry["pretrain_seed"]) != ("pairwise", 2)
    ]
    ours = percents(records, "pairwise", pretrain_seed=1)
    theirs = percents(records, "original", pretrain_seed=1)
    one = compared(records)["pairwise", "original", "rte"]
    assert (one.n, one.unit) == (3, "fine-tuning seed")
    assert one.difference == pytest.approx(statistics.mean(ours[seed] - theirs[seed] for seed in ours))
    apart = [entry for entry in records if entry["attention"] == "pairwise" or entry["pretrain_seed"] == 2]
    assert compared(apart) == {}


def test_models_without_pre_training_are_a_reference_and_so_is_the_majority_then(compared, noisy):
    records = noisy(steps=(0, 9))
    found = compared(records)
    names = ["original", "pairwise"]
    pairs = [("pairwise", "original"), *((name, "no pre-training") for name in names)]
    pairs += [(f"{name}{end}", "majority baseline") for name in names for end in (", no pre-training", "")]
    assert list(dict.fromkeys((model, reference) for model, reference, _ in found)) == pairs
    before, after = (percents(records, "pairwise", step=step) for step in (0, 9))
    gain = found["pairwise", "no pre-training", "rte"]
    assert gain.difference == pytest.approx(statistics.mean(after[seed] - before[seed] for seed in after))
    above = found["pairwise, no pre-training", "majority baseline", "rte"]
    assert above.difference == pytest.approx(statistics.mean(before.values()) - 50)
    assert above.t.low == pytest.approx(above.unpaired.low), "a baseline has no spread"


def test_without_them_operators_are_compared_with_original_only_and_alone_with_nothing(compared, noisy):
    found = compared(noisy(attention=("original", "symmetric", "pairwise")))
    assert {(model, reference) for model, reference, _ in found} == {
        ("symmetric", "original"),
        ("pairwise", "original"),
    }
    assert compared(noisy(attention=("pairwise",))) == compared(noisy(attention=("original",))) == {}


def test_a_majority_that_is_not_known_is_no_reference(compared, noisy):
    found = compared(noisy(steps=(0, 9), majority=None, settings_hash=None))
    assert {reference for _, reference, _ in found} == {"original", "no pre-training"}


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_fewer_than_three_seeds_have_a_difference_but_neither_interval_nor_p_value(compared, noisy, seeds):
    """Of two, an interval of 12.7 standard errors and a p of 0.5 or 1 were printed."""
    records = noisy(seeds=seeds)
    ours, theirs = percents(records, "pairwise"), percents(records, "original")
    differences = [ours[seed] - theirs[seed] for seed in ours]
    one = compared(records)["pairwise", "original", "rte"]
    assert (one.n, one.difference) == (len(seeds), pytest.approx(statistics.mean(differences)))
    assert one.std == (pytest.approx(statistics.stdev(differences)) if len(seeds) > 1 else None)
    assert (one.t, one.unpaired, one.bootstrap) == (None, None, None)
    assert (one.p_value, one.smallest_p_value, one.holm_p_value) == (None, None, None)


def test_two_pre_training_seeds_tell_no_more_however_often_each_is_fine_tuned(compared, noisy):
    one = compared(noisy(pretrain_seeds=(1, 2), seeds=(1, 2, 3, 4, 5)))["pairwise", "original", "rte"]
    assert (one.n, one.unit, one.t, one.p_value) == (2, "pre-training seed", None, None)


def test_a_difference_without_a_p_value_is_no_question_of_its_family(compared, noisy):
    """Two pairs of symmetric and six of pairwise: Holm corrects the one p value as one."""
    records = noisy(("original", "pairwise", "symmetric"), seeds=range(1, 7))
    records = [entry for entry in records if entry["attention"] != "symmetric" or entry["finetune_seed"] < 3]
    found = compared(records, allow_missing=True)
    pairwise, symmetric = (found[name, "original", "glue_score"] for name in ("pairwise", "symmetric"))
    assert (pairwise.n, symmetric.n, symmetric.holm_p_value) == (6, 2, None)
    assert pairwise.holm_p_value == pairwise.p_value


def test_p_values_are_corrected_by_size_reference_and_kind_of_score(compared, noisy):
    """Two operators: GLUE scores are 2 questions, means of tasks 2, single columns 2 × 3; other references apart."""
    found = compared(noisy(attention=("original", "symmetric", "pairwise"), steps=(0, 9), seeds=range(1, 7)))
    families = defaultdict(list)
    for (_, reference, score), one in found.items():
        families[reference, score if score in SCORES[:2] else "column"].append(one)
    sizes = {("original", "glue_score"): 2, ("original", "mean_of_tasks"): 2, ("original", "column"): 6}
    assert {key: len(family) for key, family in families.items() if key[0] == "original"} == sizes
    assert len(families["no pre-training", "column"]) == 9 and len(families["majority baseline", "glue_score"]) == 6
    for family in families.values():
        assert [one.holm_p_value for one in family] == holm([one.p_value for one in family]).tolist()
    assert any(one.holm_p_value > one.p_value for one in found.values())


def test_sizes_are_compared_and_corrected_apart(noisy, write_scores):
    records = noisy(attention=("original", "symmetric", "pairwise"), seeds=range(1, 6))
    both = [*records, *({**entry, "size": "small"} for entry in records)]
    alone, found = (
        comparisons(final_scores(read_scores(write_scores(chosen), TASKS, [1, 2, 3, 4, 5]), 9))
        for chosen in (records, both)
    )
    assert [one for one in found if one.size == "tiny"] == alone
    assert [replace(one, size="tiny") for one in found if one.size == "small"] == alone


def test_the_authors_scores_tell_pairwise_from_original_only_where_seeds_are_pairs(authors_final, compared):
    """79.36 against 78.74: paired, [0.05, 1.20]; unpaired, [−0.16, 1.41]; all five seeds rise, p 0.0625."""
    tasks = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
    found = compared(authors_final, tasks, 200_000)
    pairwise, symmetric = (found[name, "original", "glue_score"] for name in ("pairwise", "symmetric"))
    assert (pairwise.n, round(pairwise.difference, 3), round(pairwise.std, 3)) == (5, 0.625, 0.46)
    assert np.round([pairwise.t.low, pairwise.t.high], 2).tolist() == [0.05, 1.2]
    assert np.round([pairwise.unpaired.low, pairwise.unpaired.high], 2).tolist() == [-0.16, 1.41]
    assert (pairwise.p_value, pairwise.smallest_p_value, pairwise.holm_p_value) == (0.0625, 0.0625, 0.125)
    assert round(symmetric.difference, 2) == -3.92 and symmetric.t.high < -2.7 and symmetric.unpaired.high < -3


hundredths = st.integers(-500, 500).map(lambda value: value / 100)
differences = st.lists(hundredths, min_size=2, max_size=8).map(np.array)


def drawn(count, seed=0, mean=0.5):
    return np.random.default_rng(seed).normal(mean, 1, count)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_both_t_intervals_are_those_of_student_and_welch(count):
    """By their formulas: mean ± t·s/√n, and with √(a+b) and (a+b)²/(a²/(n−1) + b²/(n−1)) degrees of freedom."""
    first, second = drawn(count), 3 * drawn(count, seed=1)
    paired, unpaired = t_intervals(first, second)
    mean, error = (first - second).mean(), (first - second).std(ddof=1) / math.sqrt(count)
    reach = stats.t.ppf(0.975, count - 1) * error
    assert paired == pytest.approx((mean - reach, mean + reach), rel=1e-10)
    a, b = (values.var(ddof=1) / count for values in (first, second))
    reach = stats.t.ppf(0.975, (a + b) ** 2 / (a**2 + b**2) * (count - 1)) * math.sqrt(a + b)
    assert unpaired == pytest.approx((mean - reach, mean + reach), rel=1e-10)


def test_against_a_constant_the_unpaired_interval_is_the_t_interval():
    paired, unpaired = t_intervals(drawn(5), np.full(5, 0.3))
    assert unpaired == pytest.approx(paired)


def test_equal_values_have_intervals_without_width(recwarn):
    equal = np.array([0.4, 0.4, 0.4])
    for interval in (*t_intervals(equal, 0 * equal), bootstrap_interval(equal)):
        assert interval == pytest.approx([0.4, 0.4], abs=1e-12)
    assert not recwarn.list, "scipy warns of a loss of precision"


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_bootstrap_interval_is_that_of_every_resample(count):
    """All nⁿ of them, but for the chance that moves a quantile by 0.4 % among as many resamples as are drawn."""
    values = drawn(count)
    means = np.sort([np.mean(resample) for resample in itertools.product(values, repeat=count)])
    for bound, share in zip(bootstrap_interval(values), (0.025, 0.975), strict=True):
        low, high = (
            np.quantile(means, share - 0.004, method="lower"),
            np.quantile(means, share + 0.004, method="higher"),
        )
        assert low - 1e-12 <= bound <= high + 1e-12


def test_the_bootstrap_interval_is_scipys_percentile_interval_but_for_chance():
    values = drawn(10)
    expected = stats.bootstrap((values,), np.mean, n_resamples=2 * RESAMPLES, method="percentile", rng=0)
    assert bootstrap_interval(values) == pytest.approx(list(expected.confidence_interval), abs=0.02)


def test_with_five_values_the_bootstrap_interval_is_too_narrow_as_documented():
    widths = []
    for seed in range(20):
        values = drawn(5, seed)
        bootstrap, (t, _) = bootstrap_interval(values), t_intervals(values, 0 * values)
        widths.append((bootstrap.high - bootstrap.low) / (t.high - t.low))
    assert np.mean(widths) == pytest.approx(1.96 * math.sqrt(4 / 5) / 2.776, abs=0.02) == pytest.approx(0.63, abs=0.02)


@given(differences, hundredths, st.randoms())
@settings(max_examples=25, deadline=None)
def test_intervals_move_and_turn_with_the_differences_and_know_no_order(values, shift, order):
    shuffled = np.array(order.sample(values.tolist(), len(values)))
    for interval in (lambda values: t_intervals(values, 0 * values)[0], bootstrap_interval):
        low, high = interval(values)
        assert interval(values + shift) == pytest.approx([low + shift, high + shift], abs=1e-9)
        assert interval(-values) == pytest.approx([-high, -low], abs=1e-9)
        assert interval(shuffled) == pytest.approx([low, high], abs=1e-9)


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
    p_value, smallest = sign_flip_test(values)
    assert p_value == counted(values)
    assert p_value >= smallest == min(1, 2 / 2 ** int((values != 0).sum()))


@pytest.mark.parametrize("count", [2, 5, 8])
def test_the_p_value_is_that_of_scipys_swapped_pairs(count):
    first, second = drawn(count), drawn(count, seed=1)
    expected = stats.permutation_test(
        (first, second),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip_test(first - second)[0] == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize(("count", "smallest"), [(2, 0.5), (5, 0.0625), (6, 0.03125), (10, 2 / 1024)])
def test_differences_of_one_sign_have_the_smallest_p_value_of_their_number(count, smallest):
    assert sign_flip_test(np.abs(drawn(count))) == (smallest, smallest)


def test_models_that_do_not_differ_have_p_one_even_if_their_scores_were_summed_in_another_order():
    assert sign_flip_test(np.array([0.1 + 0.2, 80.1, 0.0]) - np.array([0.3, 80.1 + 1e-13, 0.0])) == (1, 1)


@given(differences, st.randoms())
@settings(max_examples=25, deadline=None)
def test_the_p_value_knows_neither_order_nor_direction(values, order):
    found = sign_flip_test(values)
    assert sign_flip_test(-values) == found == sign_flip_test(np.array(order.sample(values.tolist(), len(values))))


def test_above_fourteen_differences_patterns_are_drawn_and_the_observed_one_is_among_them():
    p_value, smallest = sign_flip_test(np.ones(15))
    assert 1 / (1 + PATTERNS) <= p_value <= 5 / (1 + PATTERNS)
    assert smallest == 2 / 2**15 and sign_flip_test(np.ones(16))[1] == 1 / (1 + PATTERNS)
    values = drawn(15, mean=0.4)
    signs = 1 - 2 * (np.arange(2**15)[:, None] >> np.arange(15) & 1)
    exact = np.mean(np.abs(signs @ values) >= abs(values.sum()))
    assert 0.02 < exact < 0.98 and sign_flip_test(values)[0] == pytest.approx(exact, abs=0.015)


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
