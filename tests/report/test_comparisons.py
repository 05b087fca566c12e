"""What is compared with what, over which units, which scores are tested, and what is corrected together."""

import itertools
import random
import statistics
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from symbert.report.comparisons import comparisons
from symbert.report.inference import holm
from symbert.report.scores import read_scores
from symbert.report.statistics import final_scores

ALL_TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
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
    expected = stats.ttest_ind(list(ours.values()), list(theirs.values()), equal_var=False).confidence_interval(0.95)
    assert one.welch == pytest.approx(list(expected))
    assert [score for _, _, score in found] == SCORES


def test_pairs_are_made_by_seed_and_not_by_position(compared, record):
    """In the order of the files seed 3 of one model would meet seed 1 of the other."""
    scores = {1: 0.5, 2: 0.6, 3: 0.7}
    records = [record("tiny", "original", 9, "rte", seed, score) for seed, score in scores.items()]
    records += [record("tiny", "pairwise", 9, "rte", seed, scores[seed] + 0.02) for seed in (3, 1, 2)]
    one = compared(records, ["rte"])["pairwise", "original", "rte"]
    assert (one.difference, one.std) == (pytest.approx(2), pytest.approx(0, abs=1e-9))
    assert one.welch.includes(0)


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
    assert one.p is None, "single columns are described"
    assert compared(records)["pairwise", "original", "glue_score"].p.smallest == 0.1


def test_seeds_that_one_model_lacks_are_dropped_before_fine_tuning_seeds_are_averaged(compared, record):
    """Fine-tuning seeds were averaged first, over other seeds of one model than of the other.

    Seed 2 scores 10 points higher than seed 1 in both models, which differ by 1 point throughout.
    """
    cells = itertools.product(("original", "pairwise"), (1, 2, 3), (1, 2), TASKS)
    records = [
        record("tiny", name, 9, task, seed, 0.5 + 0.1 * (seed == 2) + 0.01 * (name != "original"), pretrain_seed=first)
        for name, first, seed, task in cells
        if (name, first, seed, task) != ("original", 1, 2, "rte")
    ]
    found = compared([entry | {"settings_hash": None} for entry in records])
    for score in SCORES:
        one = found["pairwise", "original", score]
        assert (one.n, one.difference) == (3, pytest.approx(1)), score


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
    assert found["pairwise", "no pre-training", "glue_score"].p
    assert found["pairwise", "majority baseline", "glue_score"].p is None, "nor seeds to be split with ours"


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
        assert (one.welch, one.p) == (None, None)
        assert not one.is_significant


def test_a_difference_without_a_p_value_is_no_question_of_its_family(compared, noisy):
    """Two pairs of symmetric and six of pairwise: Holm corrects the one p value as one."""
    records = noisy(("original", "pairwise", "symmetric"), seeds=range(1, 7))
    records = [entry for entry in records if entry["attention"] != "symmetric" or entry["finetune_seed"] < 3]
    found = compared(records, allow_missing=True)
    pairwise, symmetric = (found[name, "original", "glue_score"] for name in ("pairwise", "symmetric"))
    assert (pairwise.n, symmetric.n, symmetric.p) == (6, 2, None)
    assert pairwise.p.holm == pairwise.p.permutation


def test_only_glue_scores_are_tested_and_corrected_by_size_and_reference(compared, noisy):
    """Of two operators there are 2 questions, not 2 × 5: that other scores were looked at costs these nothing."""
    found = compared(noisy(attention=("original", "symmetric", "pairwise"), steps=(0, 9), seeds=range(1, 7)))
    assert {score for (_, _, score), one in found.items() if one.p} == {"glue_score"}
    families = defaultdict(list)
    for (_, reference, _), one in found.items():
        if one.p:
            families[reference].append(one.p)
    assert {reference: len(family) for reference, family in families.items()} == {"original": 2, "no pre-training": 3}
    for family in families.values():
        assert [p.holm for p in family] == holm([p.permutation for p in family]).tolist()
    assert any(p.holm > p.permutation for family in families.values() for p in family)


def test_a_difference_is_significant_by_its_corrected_p_value(compared, noisy):
    """Five seeds, all higher: 2 of 252 splits, twice that for two operators; one operator and 3 seeds: 2 of 20."""
    better = [
        entry | {"metrics": {key: value + 0.3 for key, value in entry["metrics"].items()}}
        for entry in noisy(attention=("pairwise", "symmetric"), seeds=range(1, 6))
    ]
    five = compared([*noisy(attention=("original",), seeds=range(1, 6)), *better])["pairwise", "original", "glue_score"]
    assert (five.p.permutation, five.p.holm) == (pytest.approx(2 / 252), pytest.approx(4 / 252))
    assert five.is_significant
    three = [entry for entry in better if entry["finetune_seed"] < 4 and entry["attention"] == "pairwise"]
    few = compared([*noisy(attention=("original",)), *three])["pairwise", "original", "glue_score"]
    assert few.p.holm == 0.1 and not few.is_significant and not few.welch.includes(0)


def test_sizes_are_compared_and_corrected_apart(noisy, write_scores):
    records = noisy(attention=("original", "symmetric", "pairwise"), seeds=range(1, 6))
    both = [*records, *({**entry, "size": "small"} for entry in records)]
    alone, found = (
        comparisons(final_scores(read_scores(write_scores(chosen), TASKS, [1, 2, 3, 4, 5]), 9))
        for chosen in (records, both)
    )
    assert [one for one in found if one.size == "tiny"] == alone
    assert [replace(one, size="tiny") for one in found if one.size == "small"] == alone


def test_the_authors_scores_show_that_pairwise_is_better_in_small_but_not_in_base(authors_models, compared):
    """Base, 79.36 against 78.74: Welch's interval [−0.16, 1.41]. Small, 73.38 and 72.72: all runs above all."""
    found = {}
    for size in ("base", "small"):
        records = [entry for entry in authors_models if entry["size"] == size]
        for name in ("pairwise", "symmetric"):
            found[size, name] = compared(records, ALL_TASKS, 200_000)[name, "original", "glue_score"]
    base = found["base", "pairwise"]
    assert (base.n, round(base.difference, 3), round(base.std, 3)) == (5, 0.625, 0.46)
    assert np.round(base.welch, 2).tolist() == [-0.16, 1.41]
    assert base.p.smallest == 2 / 252
    assert round(base.p.permutation * 252) == 22 and base.p.holm == base.p.permutation
    assert {model for model, one in found.items() if one.is_significant} == found.keys() - {("base", "pairwise")}
    for model in (("base", "symmetric"), ("small", "symmetric"), ("small", "pairwise")):
        assert found[model].p.permutation == pytest.approx(2 / 252)
    assert found["base", "symmetric"].welch.high < -3 and found["small", "pairwise"].welch.low > 0.2


def test_the_documentation_has_what_the_authors_files_give(authors_models, compared):
    documented = (Path(__file__).parents[2] / "docs/glue.md").read_text(encoding="utf-8").replace("−", "-")
    for size in ("base", "small"):
        records = [entry for entry in authors_models if entry["size"] == size]
        found = compared(records, ALL_TASKS, 200_000)
        for name in ("pairwise", "symmetric"):
            one = found[name, "original", "glue_score"]
            welch = "{:.2f} to {:.2f}".format(*one.welch)
            cells = f"{one.difference:.2f} | {welch} | {one.p.permutation:.4f} | {one.p.holm:.4f} |"
            row = f"| {size}, {name} - original | {cells}"
            assert row in documented, row


def test_a_seed_that_lacks_a_task_does_not_count_for_the_test(compared, noisy):
    whole = noisy(seeds=(1, 2, 3))
    extra = [entry for entry in noisy(seeds=(4,)) if (entry["attention"], entry["task"]) != ("pairwise", "mnli")]
    expected, found = (
        compared(records, allow_missing=True)["pairwise", "original", "glue_score"]
        for records in (whole, whole + extra)
    )
    assert found == expected and found.n == 3
