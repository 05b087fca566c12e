"""Figure 2: what it shows, that no text runs into another, and that the authors' losses stand where they may."""

import itertools
import math
import random

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from scipy.stats import ttest_1samp

from legibility import assert_legible
from report.written import read_runs
from symbert.operators import OPERATORS
from symbert.report import published
from symbert.report.collect import losses_of
from symbert.report.figures.pretraining import loss_figure
from symbert.report.statistics import Exits, exits_of
from symbert.report.style import draw_survival, house_style, looks_of

ATTENTION = tuple(OPERATORS)
LOOKS = looks_of(OPERATORS)
PAPER = {"scale": "paper", "experiment": "paper-hub", "corpus_source": "hub", "glue_source": "hub"}
PAPER |= {"steps": 200_000, "batch_size": 256, "sequence_length": 512}


def demo_points(leaves, end, seed=0):
    source = random.Random(seed)
    points = []
    for step in range(50, 1801, 50):
        fallen = (5.6 - end) * (1 - math.exp(-max(0, step - leaves) / 900)) / (1 - math.exp(-(1800 - leaves) / 900))
        points.append((step, 5.6 + 1.3 * math.exp(-step / 60) - fallen + source.gauss(0, 0.01)))
    return points


@pytest.fixture
def loss_inputs(write_run, report_settings):
    """Files of figure 2 for some operators and pre-training seeds."""

    def make(attention, seeds=(1,), **changes):
        runs = [
            write_run("tiny", name, demo_points(500 + 80 * position + 40 * seed, 4.8, seed), seed=seed)
            for (position, name), seed in itertools.product(enumerate(attention), seeds)
        ]
        return runs, report_settings(**changes)

    return make


def loss_plot(inputs):
    runs, settings = inputs
    return loss_figure(read_runs(runs, settings.steps), "tiny", settings)


def loss_of(inputs):
    return loss_plot(inputs).figure


def test_several_seeds_are_one_curve_with_a_confidence_band_and_a_range_of_exits(loss_inputs):
    folders, settings = loss_inputs(["original", "pairwise"], (1, 2, 3))
    runs = read_runs(folders, 1800)
    with house_style():
        figure = loss_of((folders, settings))
        found = assert_legible(figure)
    panel, rows, shares = figure.axes
    for name, at in (("original", 0), ("pairwise", 1)):
        seeds = losses_of(runs)["tiny", name]
        losses = seeds.to_numpy()
        assert panel.lines[at].get_ydata().tolist() == losses.mean(axis=0).tolist()
        interval = ttest_1samp(losses, 0).confidence_interval(0.95)
        edges = pd.DataFrame(bands(panel)[at].get_paths()[0].vertices, columns=["step", "loss"]).groupby("step")["loss"]
        assert edges.min().tolist() == pytest.approx(interval.low.tolist())
        assert edges.max().tolist() == pytest.approx(interval.high.tolist())
        exits = exits_of(seeds)
        assert len(set(exits.steps)) > 1 and any(f"{name}: {exits.in_words}; " in text for text in found)
        ticks, mark = rows.lines[2 * at : 2 * at + 2]
        assert ticks.get_xdata().tolist() == sorted(exits.steps) and ticks.get_color() == mark.get_color()
        assert list(mark.get_xdata()) == [exits.median] and mark.get_color() == LOOKS[name].color
        assert shares.lines[2 * at].get_xdata().tolist() == [50, *sorted(set(exits.steps)), 1800]
    assert len(bands(panel)) == 2 and len(panel.lines) == 2
    assert "95 % confidence of the mean" in found and "on the plateau" in found
    assert not any("may be chance" in text for text in found)


def test_two_seeds_have_their_range_as_band_and_no_panel_of_shares(loss_inputs):
    """A t interval of two values spans 12.7 standard errors."""
    inputs = loss_inputs(["original"], (1, 2))
    with house_style():
        figure = loss_of(inputs)
        found = assert_legible(figure)
    losses = losses_of(read_runs(inputs[0], 1800))["tiny", "original"].to_numpy()
    heights = bands(figure.axes[0])[0].get_paths()[0].vertices[:, 1]
    assert [heights.min(), heights.max()] == [losses.min(), losses.max()]
    assert len(figure.axes) == 2 and "lowest to highest seed" in found and "on the plateau" not in found


def test_shares_on_the_plateau_are_drawn_from_one_down_with_a_cross_for_a_run_that_was_last_seen_on_it():
    """Of three runs one leaves at 100 and one at 400; the third diverges at 200, which leaves one of two at 400."""
    panel = Figure().subplots()
    draw_survival(panel, Exits(np.array([100.0, 200, 400]), np.array([True, False, True])), 50, 500, LOOKS["original"])
    curve, cross = panel.lines
    steps = dict(zip(curve.get_xdata(), curve.get_ydata(), strict=True))
    assert steps == pytest.approx({50: 1, 100: 2 / 3, 200: 2 / 3, 400: 0, 500: 0})
    assert (list(cross.get_xdata()), list(cross.get_ydata())) == ([200], pytest.approx([2 / 3]))


def bands(panel):
    return [artist for artist in panel.collections if isinstance(artist, PolyCollection)]


def test_a_model_of_which_most_seeds_stay_on_the_plateau_has_no_mark(write_run, report_settings):
    stays = [(step, 5.6) for step in range(50, 1801, 50)]
    runs = [
        write_run("tiny", "original", points, seed=seed)
        for seed, points in enumerate([demo_points(500, 4.8), stays, stays])
    ]
    with house_style():
        figure = loss_of((runs, report_settings()))
        found = assert_legible(figure)
    (left,) = (text for text in found if "–never)" in text)
    assert 500 <= int(left.split("never (")[1].split("–never)")[0]) <= 700
    curves, exits, *_ = figure.axes
    assert len(curves.lines) == 1 and not any(isinstance(each, LineCollection) for each in curves.collections)
    (tick,) = exits.lines
    assert tick.get_marker() == "|" and len(tick.get_xdata()) == 1


@pytest.mark.parametrize(
    ("changes", "overlaid", "seeds"),
    [
        ({}, True, (1, 2)),
        ({"glue_source": "mirror"}, True, (1,)),
        ({"recipe": "fast"}, False, (1, 2)),
        ({"scale": "imported", "recipe": "imported", "pretrain": {"dropout": 0.0}}, True, (1,)),
    ],
)
def test_the_authors_losses_are_overlaid_where_pre_training_is_the_papers_only(
    report_settings, runs_of, changes, overlaid, seeds
):
    steps = [250, 1_000, 14_000, 200_000]
    names = ("original", "symmetric", "shared")
    runs = [("base", name, seed, steps, [9.0, 6.8, 5.9, 1.7]) for name, seed in itertools.product(names, seeds)]
    with house_style():
        plot = loss_figure(runs_of(*runs), "base", report_settings(**(PAPER | changes)))
        figure, found = plot.figure, assert_legible(plot.figure)
    assert ("hollow: the authors' runs" in found) == overlaid
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "none"]
    expected = [published.LOSSES["base", name] for name in ("original", "symmetric")] if overlaid else []
    assert [tuple(line.get_ydata()) for line in hollow] == expected
    assert [line.get_color() for line in hollow] == [LOOKS[name].color for name in ("original", "symmetric")] * overlaid
