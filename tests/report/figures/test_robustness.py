"""The robustness figure: what it shows, that its texts can be read, and that its bytes are reproducible."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex

from symbert.operators import OPERATORS
from symbert.report.data import Data
from symbert.report.figures.robustness import robustness_figure
from symbert.report.style import house_style, looks_of

LOOKS = looks_of(OPERATORS)
TASKS = ["mrpc", "mnli"]  # the others look the same
PAIR = [("tiny", "original", 0.6), ("tiny", "pairwise", 0.7)]


@pytest.fixture
def plot_of(robustness_records, write_scores, settings_file):
    """The plot of such records; `mrpc` changes the robustness of that task."""

    def make(models, seeds=(1, 2), changes=None, mrpc=None, **options):
        scores, measured = robustness_records(models, seeds=seeds, tasks=TASKS, **options)
        measured = [entry | (mrpc or {}) if entry["task"] == "mrpc" else entry for entry in measured]
        settings = settings_file(tasks=TASKS, **(changes or {"glue_source": "mirror"}))
        files = write_scores(scores), write_scores(measured, "robustness")
        with house_style():
            return robustness_figure(
                Data(settings=settings, scores=files[0], robustness=files[1], finetune_seeds=list(seeds))
            )

    return make


@pytest.fixture
def figure_of(plot_of):
    """The figure of a plot of records."""
    return lambda *models, **options: plot_of(*models, **options).figure


def panels_of(figure):
    return [axes for axes in figure.axes if axes.axison]


def test_curves_start_at_the_clean_score_with_a_band_over_seeds(figure_of):
    """Clean scores of pairwise are 71 and 72; a share of noise takes that share of the lead over 50."""
    panel, _ = panels_of(figure_of(PAIR))
    curves = {line.get_color(): line for line in panel.lines}
    curve = curves[LOOKS["pairwise"].color]
    shares = np.array([0, 0.1, 0.4])
    assert curve.get_xdata().tolist() == pytest.approx(100 * shares)
    assert curve.get_ydata().tolist() == pytest.approx(50 + 21.5 * (1 - shares))
    bands = [artist for artist in panel.collections if isinstance(artist, PolyCollection)]
    edges = bands[1].get_paths()[0].vertices
    assert {tuple(np.round(point, 6)) for point in edges} == {
        (100 * share, round(50 + lead * (1 - share), 6)) for share in shares for lead in (21, 22)
    }
    assert [to_hex(band.get_facecolor()[0]).upper() for band in bands] == [LOOKS[name].color for _, name, _ in PAIR]
    assert [50.0, 50.0] in [list(line.get_ydata()) for line in panel.lines], "the majority baseline"
