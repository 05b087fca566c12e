"""The restated numbers agree with each other and with what the authors published."""

import math
import statistics

import pytest

from symbert.report import published
from symbert.report.statistics import plateau_exit


def test_the_printed_shares_saved_follow_from_the_printed_counts():
    for (size, attention), share in published.PARAMETERS_SAVED.items():
        original = published.PARAMETERS[size, "original"]
        assert round(100 * (1 - published.PARAMETERS[size, attention] / original), 2) == share


def test_pairwise_has_one_factor_matrix_per_head_and_layer_more_than_symmetric():
    assert published.PARAMETERS["base", "pairwise"] - published.PARAMETERS["base", "symmetric"] == 12 * 12 * 64 * 64
    assert published.PARAMETERS["small", "pairwise"] - published.PARAMETERS["small", "symmetric"] == 4 * 8 * 64 * 64


def test_the_printed_attention_saving_is_the_exact_one_cut_off():
    hidden = 768
    saved = 100 * (1 - (hidden**2 + 4 * hidden) / (3 * (hidden**2 + hidden)))
    assert list(published.ATTENTION_SAVED) == [("base", "shared")]
    assert math.floor(100 * saved) == 100 * published.ATTENTION_SAVED["base", "shared"]


@pytest.mark.parametrize("model", published.SCORES)
def test_the_printed_glue_score_is_the_mean_of_the_nine_printed_columns(model):
    score, _, *columns = published.SCORES[model]
    assert len(columns) == len(published.COLUMNS) == 9
    assert score == pytest.approx(sum(columns) / 9, abs=0.0101)


def test_the_loss_table_is_the_authors_curve(authors_losses):
    assert authors_losses.keys() == published.LOSSES.keys()
    for model, losses in authors_losses.items():
        for step, printed in zip(published.LOSS_STEPS, published.LOSSES[model], strict=True):
            assert losses[step // 250 - 1] == pytest.approx(printed, abs=0.0051)


def means_of(records):
    """GLUE score in percent by model and the rest of the cell, without this project's statistics."""
    cells = {}
    for entry in records:
        cell = (entry["size"], entry["attention"]), entry["step"], entry["finetune_seed"]
        cells.setdefault(cell, []).extend(entry["metrics"].values())
    return {cell: 100 * statistics.fmean(values) for cell, values in cells.items()}


def test_the_raw_scores_are_those_of_the_authors_files(authors_models):
    means = means_of(authors_models)
    assert published.RAW_SCORES.keys() == published.SCORES.keys()
    for model, (mean, deviation) in published.RAW_SCORES.items():
        seeds = [value for (name, *_), value in means.items() if name == model]
        assert len(seeds) == 5
        assert (round(statistics.fmean(seeds), 4), round(statistics.stdev(seeds), 4)) == (mean, deviation)


def test_the_raw_crossings_are_those_of_the_authors_checkpoints(authors_curve):
    means, curves = means_of(authors_curve), {}
    for (model, step, _), score in sorted(means.items()):
        curves.setdefault(model, []).append((step, score))
    target = 0.95 * max(curve[-1][1] for curve in curves.values())
    assert round(target, 4) == 75.0995
    for model, crossing in published.RAW_CROSSINGS.items():
        curve = curves[model]
        at = next(index for index, (_, score) in enumerate(curve) if score >= target)
        (before, low), (after, high) = curve[at - 1], curve[at]
        assert crossing == (before, after, round(before + (after - before) * (target - low) / (high - low)))


def test_the_raw_losses_and_plateau_exits_are_those_of_the_authors_curve(authors_losses):
    steps = range(250, 200_001, 250)
    assert authors_losses.keys() == published.RAW_FINAL_LOSSES.keys() == published.RAW_PLATEAU_EXITS.keys()
    for model, losses in authors_losses.items():
        assert round(losses[-1], 4) == published.RAW_FINAL_LOSSES[model]
        assert plateau_exit(list(steps), losses) == published.RAW_PLATEAU_EXITS[model]
