"""The restated numbers agree with each other and with what the authors published."""

import pytest

from symbert.report import published


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
