"""Figures of what the golden experiment has not: sweeps, runs that diverge, and the authors' losses."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from legibility import assert_legible
from symbert.experiment.sweep import Grid
from symbert.operators import OPERATORS
from symbert.report import published
from symbert.report.collect import Collection
from symbert.report.figures import grids_figure, loss_figures
from symbert.report.statistics import Exits
from symbert.report.style import draw_survival, house_style, looks_of

LOOKS = looks_of(OPERATORS)


def test_each_point_of_a_sweep_has_losses_and_shares_of_its_operators(report_facts):
    rates = [1e-3, 2e-3, 4e-3]
    axes = {"host": ["encoder"], "size": ["tiny"], "attention": ["original", "pairwise"], "learning_rate": rates}
    grid, steps = Grid("rates", axes, [1, 2, 3], []), [50, 100, 200, 400]
    losses = [pd.DataFrame([[5.0, 5.0, 4.0, 3.0 + at]] * 3, columns=steps) for at, _ in enumerate(grid.points)]
    with house_style():
        figure = grids_figure(Collection(report_facts(), grids=[(grid, losses)]))
        assert_legible(figure)
    above = [panel for panel in figure.axes if panel.get_ylabel() == "loss (nats)"]
    assert len(figure.axes) == 2 * len(above) == 2 * len(rates)
    for at, panel in enumerate(above):
        assert [line.get_ydata()[-1] for line in panel.get_lines()] == [3.0 + at, 3.0 + at + len(rates)]


def test_shares_on_the_plateau_are_drawn_from_one_down_with_a_cross_for_a_run_that_was_last_seen_on_it():
    """Of three runs one leaves at 100 and one at 400; the third diverges at 200, which leaves one of two at 400."""
    panel = Figure().subplots()
    draw_survival(panel, Exits(np.array([100.0, 200, 400]), np.array([True, False, True])), 50, 500, LOOKS["original"])
    curve, cross = panel.lines
    steps = dict(zip(curve.get_xdata(), curve.get_ydata(), strict=True))
    assert steps == pytest.approx({50: 1, 100: 2 / 3, 200: 2 / 3, 400: 0, 500: 0})
    assert (list(cross.get_xdata()), list(cross.get_ydata())) == ([200], pytest.approx([2 / 3]))


@pytest.mark.parametrize(
    ("changes", "overlaid", "seeds"),
    [
        ({}, True, (1, 2)),
        ({"settings": {"glue.source": "mirror"}}, True, (1,)),
        ({"settings": {"recipe": "fast"}}, False, (1, 2)),
        ({"scale": "imported"}, True, (1,)),
    ],
)
def test_the_authors_losses_are_overlaid_where_pre_training_is_the_papers_only(
    report_facts, runs_of, changes, overlaid, seeds
):
    steps = [250, 1_000, 14_000, 200_000]
    names = ("original", "symmetric", "shared")
    runs = [("base", name, seed, steps, [9.0, 6.8, 5.9, 1.7]) for name, seed in itertools.product(names, seeds)]
    with house_style():
        settings = published.SETTINGS | changes.pop("settings", {})
        facts = report_facts(settings, steps=200_000, **changes)
        figure = loss_figures(Collection(facts, runs=runs_of(*runs)))["base"]
        found = assert_legible(figure)
    assert ("hollow: the authors' runs" in found) == overlaid
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "none"]
    expected = [published.LOSSES["base", name] for name in ("original", "symmetric")] if overlaid else []
    assert [tuple(line.get_ydata()) for line in hollow] == expected
    assert [line.get_color() for line in hollow] == [LOOKS[name].color for name in ("original", "symmetric")] * overlaid
