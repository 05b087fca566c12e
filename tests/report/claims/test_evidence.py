"""The numbers behind claims, against hand calculations and scipy; and what is said where there are none."""

import math
import statistics
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from symbert.report.claims import (
    MissingEvidence,
    crossing,
    deviation,
    final_scores_of,
    is_higher,
    is_lower,
    lead,
    ratio_of,
    ratios_without_collapsed,
    saved,
    validation_losses,
)
from symbert.report.runs import read_runs
from symbert.report.scores import read_scores
from symbert.report.statistics import Comparison, Crossing, spread

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
ORIGINAL, PAIRWISE = (0.50, 0.52, 0.57), (0.53, 0.56, 0.58)  # scores of fine-tuning seeds 1, 2, 3


@pytest.fixture
def counted(counted):
    """Counts of parameters."""
    return counted(("small", "base"), ("original", "symmetric", "pairwise", "shared"))


@pytest.fixture
def data(counted):
    """Makes the data of an experiment: counts, and whatever else is given."""
    none = {"trained": None, "runs": read_runs([], 0)}
    return lambda **more: SimpleNamespace(parameters=counted, **none | more)


@pytest.fixture
def table(record, write_scores):
    """Makes a table of scores: {(size, operator, pre-training seed): scores of fine-tuning seeds}, at these steps."""

    def make(models, steps=(1800,), tasks=TASKS) -> pd.DataFrame:
        records = [
            record(size, attention, step, task, seed, score, pretrain_seed=pretrain_seed)
            for (size, attention, pretrain_seed), scores in models.items()
            for step in steps
            for task in tasks
            for seed, score in enumerate(scores, start=1)
        ]
        return read_scores(write_scores(records), tasks, sorted({entry["finetune_seed"] for entry in records}))

    return make


def test_shares_saved_are_those_of_the_papers(data):
    found = data()
    assert saved(found, "base", "pairwise") == pytest.approx(100 * (1 - 103_017_018 / 109_514_298))
    assert saved(found, "base", "symmetric", "attention_parameters") == pytest.approx(100 / 3)
    assert saved(found, "base", "shared", "attention_parameters") == pytest.approx(66.5366, abs=5e-5)


def test_the_p_of_a_claim_is_corrected_for_all_operators_that_original_is_compared_with(data, table):
    models = {("base", name, 1): scores for name, scores in (("original", ORIGINAL), ("pairwise", PAIRWISE))}
    models |= {("base", "symmetric", 1): (0.3, 0.31, 0.32), ("small", "symmetric", 1): ORIGINAL}
    found = data(trained=table(models))
    assert lead(found, "base", "symmetric").p == 0.1 and lead(found, "base", "symmetric").holm_p == 0.2
    assert lead(found, "base", "pairwise").holm_p == 0.4


@pytest.mark.parametrize(
    ("difference", "p_value", "answer"),
    [(0.7, 0.05, (True, False)), (-0.7, 0.016, (False, True)), (0.7, 0.051, (None, None))],
)
def test_a_significant_difference_decides_and_no_other(difference, p_value, answer):
    found = Comparison("base", "pairwise", "original", "score", "fine-tuning seed", 5, difference, 0.1)
    assert (is_higher(found), is_lower(found)) == (None, None), "without a test"
    found = replace(found, p=0.01, holm_p=p_value)
    assert (is_higher(found), is_lower(found)) == answer


def test_deviations_over_finetuning_seeds_are_pooled_over_pretraining_seeds(data, table):
    def of_original(**scores):
        return final_scores_of(data(**scores), "base", "original")

    one = of_original(trained=table({("base", "original", 1): ORIGINAL}))
    assert spread(one).mean == pytest.approx(53)
    assert deviation(one).value == pytest.approx(100 * statistics.stdev(ORIGINAL))
    assert deviation(one).freedom == 2
    two = of_original(trained=table({("base", "original", 1): ORIGINAL, ("base", "original", 2): (0.7, 0.71, 0.72)}))
    variances = [statistics.variance(ORIGINAL), statistics.variance([0.7, 0.71, 0.72])]
    assert deviation(two).value == pytest.approx(100 * math.sqrt(statistics.mean(variances)))
    assert deviation(two).freedom == 4


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (lambda found: saved(found, "base", "original-gain"), "no base-original-gain in this experiment"),
        (lambda found: final_scores_of(found, "tiny", "original"), "no tiny-original in this experiment"),
        (lambda found: final_scores_of(found, "base", "original", "shared"), "no base-shared in this experiment"),
        (lambda found: final_scores_of(found, "base", "pairwise", columns=("wnli",)), "wnli is not among the tasks"),
        (lambda found: deviation(final_scores_of(found, "base", "original")), "one fine-tuning seed has no spread"),
        (lambda found: validation_losses(found, "base", "pairwise"), "no losses of base-pairwise"),
    ],
)
def test_what_is_missing_is_named(data, table, question, reason):
    scores = table({("base", "original", 1): (0.5,), ("base", "pairwise", 1): (0.6,)})
    with pytest.raises(MissingEvidence, match=f"^{reason}$"):
        question(data(trained=scores))


HALVED = ("pairwise", "original")


@pytest.fixture
def curve(record, write_scores):
    """A table of scores of rte by operator and step; one that is listed predicts one class throughout."""

    def make(curves, *constant, seeds=(1,)):
        records = [
            record("base", name, step, "rte", seed, score, constant_prediction=(name, step, seed) in constant)
            for name, scores in curves.items()
            for step, score in scores.items()
            for seed in seeds
        ]
        return read_scores(write_scores(records), ["rte"], list(seeds))

    return make


def crossings(table):
    return [crossing(table, "base", name) for name in HALVED]


def test_a_crossing_is_of_the_line_of_the_highest_final_score(curve):
    table = curve({"original": {600: 0.5, 1200: 0.7, 1800: 0.78}, "pairwise": {600: 0.7, 1200: 0.78, 1800: 0.8}})
    pairwise, original = crossings(table)
    assert vars(pairwise) == {"before": 600, "after": 1200, "step": pytest.approx(1050)}
    assert original.step == pytest.approx(1650)


def test_a_curve_below_the_line_crosses_it_after_its_last_checkpoint_if_ever(curve):
    table = curve({"original": {600: 0.5, 1200: 0.6}, "pairwise": {600: 0.7, 1200: 0.8}})
    assert crossing(table, "base", "original") == Crossing(1200, None, math.inf)


@pytest.mark.parametrize("is_scored", [True, False])
def test_an_operator_without_checkpoints_has_no_crossing(curve, is_scored):
    table = curve({"original": {600: 0.5}}) if is_scored else None
    with pytest.raises(MissingEvidence, match="^no checkpoints of base-pairwise were scored$"):
        crossing(table, "base", "pairwise")


def without_the_collapsed(table):
    """The name and the ratio of the one run that collapsed."""
    ((name, ratio),) = ratios_without_collapsed(table, "base", HALVED).items()
    return name, ratio


def test_a_crossing_without_a_collapsed_run_has_the_checkpoints_around_it(curve):
    """The line is 0.95 × 0.8 = 0.76: original is at it between 1,200 and 1,800, and without the former from 600 on."""
    curves = {"original": {600: 0.5, 1200: 0.3, 1800: 0.78}, "pairwise": {600: 0.7, 1200: 0.78, 1800: 0.8}}
    table = curve(curves, ("original", 1200, 1))
    name, ratio = without_the_collapsed(table)
    assert name == "the collapsed run of original at step 1,200 (pre-training seed 1, fine-tuning seed 1)"
    assert ratio_of(*crossings(table)) == (600 / 1800, 1200 / 1200) and ratio == (600 / 1800, 1200 / 600)


def test_a_collapsed_run_at_the_last_step_leaves_the_line_to_the_others(curve):
    """Without pairwise's the line is 0.95 × 0.7 = 0.665, which original reaches between 600 and 1,200."""
    curves = {"original": {600: 0.5, 1200: 0.68, 1800: 0.7}, "pairwise": {600: 0.6, 1200: 0.72, 1800: 0.74}}
    table = curve(curves, ("pairwise", 1800, 1))
    assert crossing(table, "base", "original").after is None, "of 0.703 with it, which original ends below"
    assert without_the_collapsed(table)[1] == (600 / 1200, 1200 / 600)
