"""Figures of what the golden experiment has not: sweeps, runs that diverge, and the authors' losses."""

import itertools

import pandas as pd
import pytest

from legibility import assert_legible
from report.written import collected
from symbert.experiment.sweep import Grid
from symbert.operators import OPERATORS
from symbert.report import published
from symbert.report.collect import Collection
from symbert.report.figures import checkpoints_figure, grids_figure, loss_figures
from symbert.report.names import OF_PROJECT
from symbert.report.style import house_style, looks_of

LOOKS = looks_of(OPERATORS, OF_PROJECT)


def test_each_point_of_a_sweep_has_losses_of_its_operators(report_settings):
    rates = [1e-3, 2e-3, 4e-3]
    axes = {
        "architecture": ["encoder"],
        "size": ["tiny"],
        "attention": ["original", "pairwise"],
        "learning_rate": rates,
    }
    grid, steps = Grid("rates", axes, [1, 2, 3], []), [50, 100, 200, 400]
    losses = [pd.DataFrame([[5.0, 5.0, 4.0, 3.0 + at]] * 3, columns=steps) for at, _ in enumerate(grid.points)]
    with house_style():
        figure = grids_figure(Collection(report_settings(), grids=[(grid, losses)]))
        assert_legible(figure)
    assert len(figure.axes) == len(rates)
    for at, panel in enumerate(figure.axes):
        assert [line.get_ydata()[-1] for line in panel.get_lines()] == [3.0 + at, 3.0 + at + len(rates)]


@pytest.mark.parametrize(
    ("changes", "overlaid", "seeds"),
    [
        ({}, True, (1, 2)),
        ({"settings": {"glue.source": "mirror"}}, True, (1,)),
        ({"settings": {"precision": "fp32"}}, False, (1, 2)),
        ({"scale": "imported"}, True, (1,)),
    ],
)
def test_the_authors_losses_are_overlaid_where_pre_training_is_the_papers_only(
    report_settings, runs_of, changes, overlaid, seeds
):
    steps = [250, 1_000, 14_000, 200_000]
    names = ("original", "symmetric", "shared")
    runs = [("base", name, seed, steps, [9.0, 6.8, 5.9, 1.7]) for name, seed in itertools.product(names, seeds)]
    with house_style():
        settings = published.SETTINGS | changes.pop("settings", {})
        experiment = report_settings(settings, steps=200_000, **changes)
        figure = loss_figures(Collection(experiment, runs=runs_of(*runs), escape_loss=published.ESCAPE_LOSS))["base"]
        found = assert_legible(figure)
    assert ("hollow: the authors' runs" in found) == overlaid
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "none"]
    expected = [published.LOSSES["base", name] for name in ("original", "symmetric")] if overlaid else []
    assert [tuple(line.get_ydata()) for line in hollow] == expected
    assert [line.get_color() for line in hollow] == [LOOKS[name].color for name in ("original", "symmetric")] * overlaid


@pytest.mark.parametrize(
    ("of_curve", "words"), [([1], "(fine-tuning seed 1)"), ([2, 1], "(fine-tuning seeds 1, 2)"), ([1, 2, 3], "")]
)
def test_the_final_scores_of_figure_3_name_their_seeds_where_the_table_has_others(
    report_settings, record, write_scores, of_curve, words
):
    """Table 3 had the mean of three seeds, and Figure 3 the score of one under the same name."""
    cells = itertools.product(("original", "pairwise"), (900, 1800), (1, 2, 3))
    records = [record("tiny", name, step, "rte", seed, 0.5 + seed / 10) for name, step, seed in cells]
    final = write_scores([entry for entry in records if entry["step"] == 1800], "final")
    curve = write_scores([entry for entry in records if entry["finetune_seed"] in of_curve], "curve")
    sweep = {"tasks": ["rte"], "finetune_seeds": [1, 2, 3], "curve": {"sizes": [], "finetune_seeds": of_curve}}
    with house_style():
        figure = checkpoints_figure(collected(report_settings(), scores=final, curve=curve, sweep=sweep))
        assert_legible(figure)
    title = figure.axes[0].get_legend().get_title().get_text()
    assert title == f"BERT-tiny: 95 % reached at; final score\n{words}".strip()


@pytest.mark.parametrize(("last", "says"), [(0.9, False), (0.6, True)])
def test_a_curve_that_reaches_the_line_of_figure_3_and_ends_below_it_says_so(
    report_settings, record, write_scores, last, says
):
    """The legend had the step at which it "reaches 95 %", beside a final score below the line."""
    scores = {"original": (0.7, 0.8, 0.9), "pairwise": (0.7, 0.9, last)}
    records = [
        record("tiny", name, step, "rte", 1, score)
        for name, curve in scores.items()
        for step, score in zip((600, 1200, 1800), curve, strict=True)
    ]
    final = write_scores([entry for entry in records if entry["step"] == 1800], "final")
    sweep = {"tasks": ["rte"], "finetune_seeds": [1], "curve": {"sizes": [], "finetune_seeds": [1]}}
    with house_style():
        figure = checkpoints_figure(
            collected(report_settings(), scores=final, curve=write_scores(records, "curve"), sweep=sweep)
        )
        found = assert_legible(figure)
    (told,) = (text for text in found if text.startswith("pairwise:"))
    assert ("below" in told) == says and told.endswith(f"{100 * last:.2f}")


def test_the_rows_of_escapes_have_the_names_of_their_operators_and_no_marker_is_cut(report_settings, runs_of):
    steps = [250, 1_000, 14_000, 20_000]
    names = ("original", "symmetric", "shared")
    runs = [("tiny", name, seed, steps, [9.0, 6.8, 5.9, 1.7]) for name, seed in itertools.product(names, (1, 2))]
    with house_style():
        figure = loss_figures(Collection(report_settings(), runs=runs_of(*runs), escape_loss=5.0))["tiny"]
        assert_legible(figure)
    curves, escapes = figure.axes
    places = dict(zip((label.get_text() for label in escapes.get_yticklabels()), escapes.get_yticks(), strict=True))
    assert list(places) == [*names]
    medians = {line.get_color(): line.get_ydata()[0] for line in escapes.lines if line.get_marker() not in ("|", "+")}
    assert {name: medians[LOOKS[name].color] for name in names} == places
    ends = [
        line
        for panel in (curves, escapes)
        for line in panel.lines
        if len(line.get_xdata()) and line.get_marker() != "None"
    ]
    assert ends and not any(line.get_clip_on() for line in ends)
