"""The numbers behind claims, against hand calculations and scipy; and what is said where there are none."""

import json
import math
import statistics

import pandas as pd
import pytest
from scipy import stats

from symbert.report.evidence import Absent, Evidence
from symbert.report.robustness import read_robustness
from symbert.report.runs import models_of, read_runs
from symbert.report.scores import read_scores
from symbert.report.statistics import Crossing
from symbert.report.timings import read_timings
from symbert.settings import ReportSettings, read_settings

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
ORIGINAL, PAIRWISE = (0.50, 0.52, 0.57), (0.53, 0.56, 0.58)  # scores of fine-tuning seeds 1, 2, 3
FALL = [5.6] * 9 + [4.0, 3.0, 2.6]


@pytest.fixture
def counted(parameters_file):
    """Evidence without runs and scores."""
    return json.loads(parameters_file(("small", "base"), ("original", "symmetric", "pairwise", "shared")).read_text())


@pytest.fixture
def evidence(settings_file, counted):
    """Makes evidence of counts and whatever else is given."""
    settings = read_settings(settings_file(), ReportSettings)
    return lambda **more: Evidence(settings, counted, **more)


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


@pytest.fixture
def runs(write_run):
    """Runs of base with these losses by operator, and their done.json."""

    def make(losses):
        files = [
            write_run("base", name, list(zip(range(50, 650, 50), values, strict=True)))
            for name, values in losses.items()
        ]
        done, metrics = zip(*files, strict=True)
        return read_runs(list(done), list(metrics), 1800), list(done)

    return make


def test_shares_saved_are_those_of_the_papers(evidence):
    found = evidence()
    assert found.saved("base", "pairwise") == pytest.approx(100 * (1 - 103_017_018 / 109_514_298))
    assert found.saved("base", "symmetric", "attention_parameters") == pytest.approx(100 / 3)
    assert found.saved("base", "shared", "attention_parameters") == pytest.approx(66.5366, abs=5e-5)
    assert found.heads("small") == 8


def test_a_difference_spans_the_paired_and_the_unpaired_interval(evidence, table):
    found = evidence(scores=table({("base", "original", 1): ORIGINAL, ("base", "pairwise", 1): PAIRWISE}))
    difference = found.difference("base", "pairwise")
    ours, theirs = ([100 * score for score in scores] for scores in (PAIRWISE, ORIGINAL))
    paired = stats.ttest_rel(ours, theirs).confidence_interval()
    unpaired = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    assert difference.mean == pytest.approx(statistics.mean(ours) - statistics.mean(theirs))
    assert difference.interval.low == pytest.approx(min(paired.low, unpaired.low))
    assert difference.interval.high == pytest.approx(max(paired.high, unpaired.high))


def test_a_difference_over_two_seeds_has_no_interval(evidence, table):
    """It decided claims: 3 and 3.1 points apart, with t of 12.7 still above 0."""
    found = evidence(scores=table({("base", "original", 1): (0.5, 0.5), ("base", "pairwise", 1): (0.53, 0.531)}))
    difference = found.difference("base", "pairwise")
    assert difference.mean == pytest.approx(3.05) and difference.interval is None


def test_a_difference_may_be_of_some_columns(evidence, record, write_scores):
    scores = {("original", "rte"): 0.5, ("original", "sst2"): 0.9, ("shared", "rte"): 0.6, ("shared", "sst2"): 0.8}
    records = [record("base", name, 1800, task, 1, score) for (name, task), score in scores.items()]
    found = evidence(scores=read_scores(write_scores(records), ["rte", "sst2"], [1]))
    assert found.difference("base", "shared", ("rte",)).mean == pytest.approx(10)
    assert found.difference("base", "shared", ("rte", "sst2")).mean == pytest.approx(0)
    assert found.difference("base", "shared", ("rte",)).interval is None, "one seed has no interval"


def test_several_pretraining_seeds_are_the_units_of_a_difference(evidence, table):
    models = {("base", "original", 1): (0.5, 0.52), ("base", "original", 2): (0.54, 0.56)}
    models |= {("base", "original", 3): (0.5, 0.5)}
    models |= {("base", "pairwise", seed): (score, score) for seed, score in ((1, 0.53), (2, 0.56), (3, 0.51))}
    difference = evidence(scores=table(models)).difference("base", "pairwise")
    assert difference.mean == pytest.approx((53 - 51 + 56 - 55 + 51 - 50) / 3)
    paired = stats.ttest_rel([53, 56, 51], [51, 55, 50]).confidence_interval()
    unpaired = stats.ttest_ind([53, 56, 51], [51, 55, 50], equal_var=False).confidence_interval()
    assert difference.interval.low == pytest.approx(min(paired.low, unpaired.low))
    assert difference.interval.high == pytest.approx(max(paired.high, unpaired.high))


def test_deviations_over_finetuning_seeds_are_pooled_over_pretraining_seeds(evidence, table):
    one = evidence(scores=table({("base", "original", 1): ORIGINAL}))
    assert one.glue_score("base", "original") == pytest.approx(53)
    assert one.deviation("base", "original").value == pytest.approx(100 * statistics.stdev(ORIGINAL))
    assert one.deviation("base", "original").freedom == 2
    two = evidence(scores=table({("base", "original", 1): ORIGINAL, ("base", "original", 2): (0.7, 0.71, 0.72)}))
    variances = [statistics.variance(ORIGINAL), statistics.variance([0.7, 0.71, 0.72])]
    assert two.deviation("base", "original").value == pytest.approx(100 * math.sqrt(statistics.mean(variances)))
    assert two.deviation("base", "original").freedom == 4


def test_losses_and_exits_are_those_of_the_runs(evidence, runs):
    found = evidence(models=models_of(runs({"original": FALL, "symmetric": [*FALL[:-1], 2.7]})[0]))
    assert found.loss("base", "symmetric") - found.loss("base", "original") == pytest.approx(0.1)
    assert found.plateau_exit("base", "original") == 500
    assert found.plateau_exit("base", "symmetric") == 500
    assert found.sizes == ["base"]


def test_a_crossing_is_of_the_line_of_the_highest_final_score(evidence, record, write_scores):
    curves = {"original": {600: 0.5, 1200: 0.7, 1800: 0.78}, "pairwise": {600: 0.7, 1200: 0.78, 1800: 0.8}}
    records = [
        record("base", name, step, "rte", 1, score) for name, curve in curves.items() for step, score in curve.items()
    ]
    found = evidence(curve=read_scores(write_scores(records), ["rte"], [1]))
    assert vars(found.crossing("base", "pairwise")) == {"before": 600, "after": 1200, "step": pytest.approx(1050)}
    assert found.crossing("base", "original").step == pytest.approx(1650)


def test_a_curve_below_the_line_crosses_it_after_its_last_checkpoint_if_ever(evidence, record, write_scores):
    curves = {"original": {600: 0.5, 1200: 0.6}, "pairwise": {600: 0.7, 1200: 0.8}}
    records = [
        record("base", name, step, "rte", 1, score) for name, curve in curves.items() for step, score in curve.items()
    ]
    found = evidence(curve=read_scores(write_scores(records), ["rte"], [1]))
    assert found.crossing("base", "original") == Crossing(1200, None, math.inf)


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


def test_a_crossing_without_a_collapsed_run_has_the_checkpoints_around_it(evidence, curve):
    """The line is 0.95 × 0.8 = 0.76: original is at it between 1,200 and 1,800, and without the former from 600 on."""
    curves = {"original": {600: 0.5, 1200: 0.3, 1800: 0.78}, "pairwise": {600: 0.7, 1200: 0.78, 1800: 0.8}}
    found = evidence(curve=curve(curves, ("original", 1200, 1)))
    (run,) = found.collapsed("base")
    assert str(run) == "the collapsed run of original at step 1,200 (pre-training seed 1, fine-tuning seed 1)"
    assert (found.crossing("base", "original").before, found.crossing("base", "original").after) == (1200, 1800)
    without = found.crossing("base", "original", without=run)
    assert (without.before, without.after, without.step) == (600, 1800, pytest.approx(600 + 1200 * 26 / 28))
    assert found.crossing("base", "pairwise", without=run) == found.crossing("base", "pairwise")


def test_a_collapsed_run_at_the_last_step_leaves_the_line_to_the_others(evidence, curve):
    """Without pairwise's the line is 0.95 × 0.7 = 0.665, which original reaches between 600 and 1,200."""
    curves = {"original": {600: 0.5, 1200: 0.68, 1800: 0.7}, "pairwise": {600: 0.6, 1200: 0.72, 1800: 0.74}}
    found = evidence(curve=curve(curves, ("pairwise", 1800, 1)))
    (run,) = found.collapsed("base")
    assert found.crossing("base", "original").after is None, "of 0.703 with it, which original ends below"
    assert found.crossing("base", "original", without=run).after == 1200
    assert (found.crossing("base", "pairwise", without=run).before, found.collapsed("small")) == (600, [])


def test_of_several_seeds_the_others_stay_when_one_collapsed(evidence, curve):
    curves = {"original": {600: 0.5, 1200: 0.8}}
    found = evidence(curve=curve(curves, ("original", 600, 2), seeds=(1, 2)))
    (run,) = found.collapsed("base")
    assert found.crossing("base", "original", without=run) == found.crossing("base", "original")


def test_step_times_are_shares_of_those_of_original(evidence, runs, write_timing):
    found, done = runs({"original": FALL, "shared": FALL})
    timing = [write_timing(file, step_seconds=seconds) for file, seconds in zip(done, (0.02, 0.018), strict=True)]
    times = read_timings(timing, found, 32)
    assert evidence(timings=times).step_time("base", "shared") == pytest.approx(90)
    with pytest.raises(Absent, match="no step times of base-shared"):
        evidence(timings=times[:1]).step_time("base", "shared")


def test_differences_on_noise_and_out_of_domain_are_means_over_all_of_them(evidence, robustness_records, write_scores):
    models = [("base", "original", 0.7), ("base", "shared", 0.8)]
    scores, measured = robustness_records(models, shares=(0.1, 0.4), sets=("hans", "adv_mnli", "adv_sst2"))
    clean = read_scores(write_scores(scores), TASKS, [1, 2])
    found = evidence(scores=clean, robustness=read_robustness(write_scores(measured, "robustness"), clean, None))
    # The lead over 0.5 is 10 points larger, and noise leaves 90 % and 60 % of it; the sets follow the clean score.
    assert found.noise_difference("base", "shared").mean == pytest.approx(10 * (0.9 + 0.6) / 2)
    assert found.domain_difference("base", "shared").mean == pytest.approx(10)


def test_a_run_that_never_leaves_the_plateau_has_no_exit(evidence, runs):
    found = evidence(models=models_of(runs({"original": [5.6] * 12})[0]))
    assert found.plateau_exit("base", "original") is None


@pytest.mark.parametrize(
    ("measured", "question", "reason"),
    [
        ({"shares": ()}, Evidence.noise_difference, "no noise was measured"),
        ({"sets": ()}, Evidence.domain_difference, "no out-of-domain set was measured"),
    ],
)
def test_noise_and_other_domains_may_be_measured_alone(
    evidence, robustness_records, write_scores, measured, question, reason
):
    models = [("base", "original", 0.7), ("base", "shared", 0.8)]
    scores, records = robustness_records(models, **measured)
    clean = read_scores(write_scores(scores), TASKS, [1, 2])
    found = evidence(scores=clean, robustness=read_robustness(write_scores(records, "robustness"), clean, None))
    with pytest.raises(Absent, match=f"^{reason}$"):
        question(found, "base", "shared")


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (lambda found: found.saved("base", "original-gain"), "no base-original-gain in this experiment"),
        (lambda found: found.glue_score("tiny", "original"), "no tiny-original in this experiment"),
        (lambda found: found.difference("base", "shared"), "no base-shared in this experiment"),
        (lambda found: found.difference("base", "pairwise", ("wnli",)), "wnli is not among the tasks"),
        (lambda found: found.deviation("base", "original"), "one fine-tuning seed has no spread"),
        (lambda found: found.loss("base", "pairwise"), "no losses of base-pairwise"),
        (lambda found: found.crossing("tiny", "original"), "no checkpoints of tiny-original were scored"),
        (lambda found: found.noise_difference("base", "pairwise"), "robustness was not measured"),
    ],
)
def test_what_is_missing_is_named(evidence, table, question, reason):
    scores = table({("base", "original", 1): (0.5,), ("base", "pairwise", 1): (0.6,)})
    with pytest.raises(Absent, match=f"^{reason}$"):
        question(evidence(scores=scores, curve=scores))


def test_without_scores_there_is_nothing_to_tell(evidence):
    with pytest.raises(Absent, match="^no scores$"):
        evidence().glue_score("base", "original")
    assert evidence().sizes == []
