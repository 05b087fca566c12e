"""Points of a sweep, and what other hosts measure over training: what is drawn, and which files are refused."""

import json

import numpy as np
import pandas as pd
import pytest

from legibility import assert_legible
from report.written import collected
from symbert.errors import DataError, IntegrityError
from symbert.experiment.sweep import Grid
from symbert.files import sha256_of
from symbert.hosts import HOSTS
from symbert.report.collect import Collection
from symbert.report.figures.pretraining import grids_figure, hosts_figure
from symbert.report.style import house_style, looks_of

STEPS = (50, 200, 1000)


@pytest.fixture
def run(tmp_path):
    """Writes done.json and metrics.jsonl of a run, whose measure at each step is given; gives its folder."""

    def write(host, attention, seed, values, size="tiny", steps=STEPS):
        folder, measure = tmp_path / host / f"{size}-{attention}" / f"seed-{seed}", HOSTS[host].measure
        folder.mkdir(parents=True)
        points = [
            {"split": "validation", "step": step, "loss": 2.0, measure: value}
            for step, value in zip(steps, values, strict=True)
        ]
        lines = [{"split": "initial", "step": 0, "logit_std": [1.0]}, *points]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = {"size": size, "attention": attention, "pretrain_seed": seed, "model_host": host, "steps": 1000}
        done |= {"parameters": 150, "validation_loss": 2.0, f"validation_{measure}": values[-1]}
        done |= {f"validation_{name}": 0.5 for name in HOSTS[host].further_measures}
        done["metrics_sha256"] = sha256_of(folder / "metrics.jsonl")
        (folder / "done.json").write_text(json.dumps(done))
        return folder

    return write


@pytest.fixture
def plot(report_settings):
    """The figure of runs."""

    def draw(*runs):
        with house_style():
            return hosts_figure(collected(hosts=list(runs), settings=report_settings(steps=1000)))

    return draw


def panels_of(figure):
    return [axes for axes in figure.axes if axes.axison]


def test_each_host_and_size_has_a_panel_with_the_mean_of_the_seeds_of_each_operator(run, plot):
    runs = [
        run("encoder-decoder", "original", 1, (0.1, 0.5, 0.9)),
        run("decoder", "symmetric", 1, (90.0, 40.0, 30.0)),
        run("decoder", "original", 1, (100.0, 50.0, 20.0)),
        run("decoder", "original", 2, (110.0, 60.0, 22.0)),
    ]
    drawn = plot(*runs)
    decoder, pairs = panels_of(drawn.figure)
    assert [panel.get_title("left") for panel in (decoder, pairs)] == ["decoder, tiny", "encoder-decoder, tiny"]
    assert [panel.get_ylabel() for panel in (decoder, pairs)] == ["perplexity", "chrf"]
    lines = {line.get_color(): line for line in decoder.get_lines()}
    looks = looks_of(["original", "symmetric"])
    np.testing.assert_allclose(lines[looks["original"].color].get_ydata(), [105, 55, 21])
    np.testing.assert_allclose(lines[looks["symmetric"].color].get_ydata(), [90, 40, 30])
    np.testing.assert_array_equal(pairs.get_lines()[0].get_xdata(), STEPS)
    (band,) = decoder.collections  # of two seeds: lowest to highest
    assert {tuple(point) for point in band.get_paths()[0].vertices} >= {(50, 100), (50, 110), (1000, 20), (1000, 22)}
    assert [panel.get_yscale() for panel in (decoder, pairs)] == ["log", "linear"]
    assert "2 pre-training seeds" in drawn.caption and HOSTS["decoder"].sentence in drawn.caption


def test_a_perplexity_that_hardly_falls_has_numbers_beside_it(run, plot):
    """Between 260 and 300 lies no round number, so the axis had none."""
    drawn = plot(run("decoder", "original", 1, (299.0, 280.0, 264.0)))
    (panel,) = panels_of(drawn.figure)
    drawn.figure.canvas.draw()
    low, high = panel.get_ylim()
    assert len([tick for tick in panel.get_yticks() if low <= tick <= high]) >= 2


def test_a_log_of_another_run_is_refused(run, plot):
    first, second = run("decoder", "original", 1, (9.0, 8.0, 7.0)), run("decoder", "original", 2, (9.0, 8.0, 7.0))
    (second / "metrics.jsonl").write_text((second / "metrics.jsonl").read_text().replace("8.0", "7.5"))
    with pytest.raises(IntegrityError, match=r"seed-2/metrics\.jsonl: sha256 expected"):
        plot(first, second)


def test_a_log_that_lacks_the_measure_is_named(run, plot):
    with pytest.raises(DataError, match=r"metrics\.jsonl:3: 'perplexity' is None"):
        plot(run("decoder", "original", 1, (9.0, None, 7.0)))


def test_seeds_that_were_evaluated_at_other_steps_are_refused(run, plot):
    one = run("encoder-decoder", "original", 1, (0.1, 0.5, 0.9))
    with pytest.raises(DataError, match="tiny-original seed 2 was evaluated at other steps"):
        plot(one, run("encoder-decoder", "original", 2, (0.1, 0.5, 0.9), steps=(50, 300, 1000)))


@pytest.mark.parametrize("rates", [[1e-3], [1e-3, 2e-3, 4e-3]])
def test_each_point_of_a_sweep_has_losses_and_shares_of_its_operators(report_settings, rates):
    axes = {"host": ["encoder"], "size": ["tiny"], "attention": ["original", "pairwise"], "learning_rate": rates}
    grid, steps = Grid("rates", axes, [1, 2, 3], []), [50, 100, 200, 400]
    losses = [pd.DataFrame([[5.0, 5.0, 4.0, 3.0 + at]] * 3, columns=steps) for at, _ in enumerate(grid.points)]
    with house_style():
        figure = grids_figure(Collection(report_settings(), grids=[(grid, losses)])).figure
        found = assert_legible(figure)
    above = [panel for panel in figure.axes if panel.get_ylabel() == "loss (nats)"]
    assert len(figure.axes) == 2 * len(above) == 2 * len(rates)
    for at, panel in enumerate(above):
        ends = [line.get_ydata()[-1] for line in panel.get_lines()]
        assert ends == [3.0 + at, 3.0 + at + len(rates)]
    assert {"original", "pairwise"} <= set(found)
