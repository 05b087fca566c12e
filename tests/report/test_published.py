"""The restated numbers agree with each other and with what the authors published."""

import math

import pytest

from symbert.report import published


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
