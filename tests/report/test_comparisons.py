"""What is compared with what, over which units, and in which families p values are corrected."""

import itertools
import random
import statistics
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from symbert.report.comparisons import comparisons
from symbert.report.inference import holm
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
