"""Where curves reach the line, with all runs and without each that collapsed."""

import math

import pytest

from symbert.report.claims.evidence import MissingEvidence
from symbert.report.claims.steps import crossing, ratio_of, ratios_without_collapsed
from symbert.report.scores import read_scores
from symbert.report.statistics import Crossing

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


def test_of_several_seeds_the_others_stay_when_one_collapsed(curve):
    curves = {"original": {600: 0.5, 1200: 0.8}, "pairwise": {600: 0.5, 1200: 0.8}}
    table = curve(curves, ("original", 600, 2), seeds=(1, 2))
    assert without_the_collapsed(table)[1] == ratio_of(*crossings(table))


def test_without_its_only_run_the_ratio_of_an_operator_may_be_anything(curve):
    table = curve({"original": {1800: 0.8}, "pairwise": {1800: 0.8}}, ("original", 1800, 1))
    assert without_the_collapsed(table)[1] == (0, math.inf)


def test_a_curve_without_collapsed_runs_has_no_other_ratio(curve):
    assert ratios_without_collapsed(curve({"original": {600: 0.5}}), "base", HALVED) == {}
