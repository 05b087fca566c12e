"""The figure of minimal pairs over checkpoints: what it shows, and that its texts can be read."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from report.conftest import write
from report.judgements import judgement
from report.written import collected
from symbert.operators import OPERATORS
from symbert.report.figures.scores import blimp_figure
from symbert.report.style import house_style, looks_of

MIRROR = {"glue_source": "mirror", "corpus_source": "mirror", "suites": {"blimp": "b11a"}}
LOOKS = looks_of(OPERATORS)


@pytest.fixture
def options_of(tmp_path, report_settings):
    """The options of the figure for such records."""

    def make(*records):
        files = [write(tmp_path / f"judged/{at}.json", one) for at, one in enumerate(records)]
        return {"settings": report_settings(**MIRROR), "blimp": files}

    return make


@pytest.fixture
def plot_of(options_of):
    """The plot of such records."""

    def make(*records):
        with house_style():
            return blimp_figure(collected(**options_of(*records)))

    return make


def curves_of(panel):
    """The curves of a panel by colour, without the line of chance."""
    drawn = {line.get_color(): np.asarray(line.get_xydata()) for line in panel.lines}
    return {name: drawn[look.color] for name, look in LOOKS.items() if look.color in drawn}


def test_a_curve_is_the_mean_of_the_seeds_that_judged_at_every_step(plot_of):
    """A seed that is not fine-tuned judges at the last step alone: its curve would be a point."""
    records = [judgement(seed=seed, step=step, right=step // 300 + seed) for seed in (1, 2) for step in (300, 1800)]
    plot = plot_of(*records, judgement(seed=3, right=1), judgement("pairwise", step=1800, right=8))
    (panel,) = (axes for axes in plot.figure.axes if axes.axison)
    curves = curves_of(panel)
    expected = [(65 * percent + 200) / 67 for percent in (25, 75)]  # of 2 and 3, and of 7 and 8 of 10
    np.testing.assert_allclose(curves["original"], [[300, expected[0]], [1800, expected[1]]])
    np.testing.assert_allclose(curves["pairwise"], [[1800, (65 * 80 + 200) / 67]])
    assert len([band for band in panel.collections if isinstance(band, PolyCollection)]) == 1, "of two seeds"
    assert any(np.allclose(line.get_ydata(), 50) for line in panel.lines), "chance"
    words = [text.get_text() for text in plot.figure.legends[0].get_texts()]
    assert words == ["original", "pairwise", "lowest to highest seed", "chance"]


def test_a_decoder_has_a_panel_of_its_own(plot_of):
    steps = (300, 1800)
    plot = plot_of(
        *(judgement(step=step, right=5) for step in steps),
        *(judgement(step=step, right=8, host="decoder") for step in steps),
    )
    encoder, decoder = (axes for axes in plot.figure.axes if axes.axison)
    assert (encoder.get_title("left"), decoder.get_title("left")) == ("BERT-tiny", "decoder, tiny")
    np.testing.assert_allclose(curves_of(decoder)["original"][:, 1], (65 * 80 + 200) / 67)
