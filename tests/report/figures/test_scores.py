"""Figures of scores over checkpoints, and of minimal pairs: lines, crossings and means, and that texts can be read."""

import itertools
import math

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from legibility import assert_legible
from report.conftest import write
from report.judgements import judgement
from report.written import collected, write_exhibit
from symbert.operators import OPERATORS
from symbert.report.collect import read_scores
from symbert.report.figures.scores import blimp_figure, checkpoints_figure
from symbert.report.statistics import curves_of
from symbert.report.style import house_style, looks_of

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]


@pytest.fixture
def score_inputs(record, write_scores, report_settings):
    """Arguments of draw_checkpoints: each operator rises to a higher score than the one before."""

    def make(attention, sizes=("tiny",), steps=(300, 900, 1800), pretrain_seeds=(1,), **changes):
        records = []
        for size, (position, name), step, task, seed in itertools.product(
            sizes, enumerate(attention), steps, TASKS, pretrain_seeds
        ):
            score = 0.5 + (0.2 + 0.02 * position) * (1 - math.exp(-3 * step / steps[-1])) + 0.005 * seed
            stand_in = changes.get("glue_source", "embedded") == "embedded"
            records.append(record(size, name, step, task, 1, score, pretrain_seed=seed, stand_in=stand_in))
        return write_scores(records), report_settings(steps=steps[-1], **changes)

    return make


def checkpoints_of(inputs):
    files, settings = inputs
    return checkpoints_figure(collected(curve=files, curve_seeds=[1], settings=settings)).figure


def test_figure_3_has_line_crossings_and_baseline(score_inputs):
    with house_style():
        figure = checkpoints_of(score_inputs(["original", "pairwise"], steps=(300, 1200, 1800)))
        found = assert_legible(figure)
    assert "stand-in task score (%)" in found
    last = [100 * (0.505 + share * (1 - math.exp(-3))) for share in (0.20, 0.22)]
    line = 0.95 * last[1]
    first, second = (100 * (0.505 + 0.22 * (1 - math.exp(-3 * step / 1800))) for step in (300, 1200))
    assert first < line < second
    crossing = 300 + 900 * (line - first) / (second - first)
    assert f"pairwise: {crossing:,.0f} (300–1,200); {last[1]:.2f}" in found and "majority baseline: 50.00" in found
    assert any(text.startswith("original: ") and text.endswith(f"; {last[0]:.2f}") for text in found)
    assert any(list(mark.get_xdata()) == [pytest.approx(crossing)] for mark in figure.axes[0].lines)


def test_a_curve_is_the_mean_over_seeds(record, write_scores):
    records = [
        record("tiny", "original", step, task, seed, 0.1 * seed + step / 10_000)
        for step, task, seed in itertools.product((300, 1800), TASKS, (1, 2))
    ]
    curves = curves_of(read_scores(write_scores(records), TASKS, [1, 2]))
    assert curves["original"].loc[1].to_dict() == pytest.approx({300: 18.0, 1800: 33.0})


def test_the_figure_has_the_same_bytes_whatever_the_order_of_the_inputs(score_inputs, tmp_path):
    first, second = ([tmp_path / f"{name}.{suffix}" for suffix in ("png", "pdf")] for name in ("first", "second"))
    files, settings = score_inputs(("original", "symmetric", "pairwise"))
    write_exhibit("figure-figure3_checkpoints", first, curve=files, settings=settings, curve_seeds=[1])
    write_exhibit("figure-figure3_checkpoints", second, curve=files[::-1], settings=settings, curve_seeds=[1])
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[0].read_bytes().startswith(b"\x89PNG") and first[1].read_bytes().startswith(b"%PDF")
    assert b"CreationDate" not in first[1].read_bytes()


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


def drawn_curves(panel):
    """The curves of a panel by colour, without the line of chance."""
    drawn = {line.get_color(): np.asarray(line.get_xydata()) for line in panel.lines}
    return {name: drawn[look.color] for name, look in LOOKS.items() if look.color in drawn}


def test_a_curve_is_the_mean_of_the_seeds_that_judged_at_every_step(plot_of):
    """A seed that is not fine-tuned judges at the last step alone: its curve would be a point."""
    records = [judgement(seed=seed, step=step, right=step // 300 + seed) for seed in (1, 2) for step in (300, 1800)]
    plot = plot_of(*records, judgement(seed=3, right=1), judgement("pairwise", step=1800, right=8))
    (panel,) = (axes for axes in plot.figure.axes if axes.axison)
    curves = drawn_curves(panel)
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
    np.testing.assert_allclose(drawn_curves(decoder)["original"][:, 1], (65 * 80 + 200) / 67)
