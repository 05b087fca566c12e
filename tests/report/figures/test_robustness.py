"""The robustness figure: what it shows, that its texts can be read, and that its bytes are reproducible."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex

from legibility import assert_legible
from symbert.operators import OPERATORS
from symbert.report.data import Data, write_exhibit
from symbert.report.figures.robustness import robustness_figure
from symbert.report.style import PAGE_WIDTH, WIDTH, house_style, looks_of

ATTENTION = tuple(OPERATORS)
LOOKS = looks_of(OPERATORS)
ADVGLUE = [f"adv_{task}" for task in ("mnli", "mnli_mismatched", "qnli", "qqp", "rte", "sst2")]
LONG = {"experiment": "single-gpu-with-a-rather-long-name-of-the-experiment-folder-that-someone-chose"}
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


def titles_of(figure):
    return [panel.get_title(loc="left") for panel in panels_of(figure)]


def words_of(figure):
    """The key."""
    return [text.get_text() for axes in figure.axes if not axes.axison for text in axes.texts]


def models_of(sizes, attentions):
    return [(size, name, 0.6 + 0.02 * place) for size in sizes for place, name in enumerate(attentions)]


@pytest.mark.parametrize(
    ("sizes", "attentions", "options"),
    [
        (["tiny"], (*ATTENTION, "an-operator-with-a-very-long-name"), {"sets": ("hans", "ax", *ADVGLUE)}),
        (["tiny"], ATTENTION, {"sets": ("hans", "adv_mnli_mismatched"), "shares": (), "changes": LONG}),
        (["tiny"], ATTENTION[:2], {"sets": ("ax",), "kinds": ("swap", "mixed")}),
    ],
)
def test_no_text_runs_into_another(figure_of, sizes, attentions, options):
    with house_style():
        found = assert_legible(figure_of(models_of(sizes, attentions), **options))
    assert "majority baseline" in found and "range of seeds" in found


def test_only_panels_that_have_data_are_drawn(figure_of):
    both = figure_of(PAIR)
    assert titles_of(both) == ["BERT-tiny, mixed noise", "BERT-tiny, out-of-domain sets"]
    noise, sets = figure_of(PAIR, sets=()), figure_of(PAIR, shares=())
    assert titles_of(noise) == ["BERT-tiny, mixed noise"] and titles_of(sets) == ["BERT-tiny, out-of-domain sets"]
    assert [figure.get_figwidth() for figure in (both, noise, sets)] == [PAGE_WIDTH, WIDTH, WIDTH]


def test_sizes_stand_one_beneath_the_other_smallest_first(figure_of):
    models = models_of(["base", "small"], ["original"])
    names = [f"BERT-{size}, {panel}" for size in ("small", "base") for panel in ("mixed noise", "out-of-domain sets")]
    assert titles_of(figure_of(models)) == names
    assert titles_of(figure_of(models, sets=())) == names[::2]


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


def test_each_set_has_a_dot_and_a_range_per_operator_and_the_baseline_as_a_tick(figure_of):
    _, panel = panels_of(figure_of(PAIR, sets=("hans", "ax", "adv_mnli", "adv_mnli_mismatched")))
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == ["hans", "ax", "adv mnli", "adv mnli\nmismatched", "adv mean"]
    dots = {line.get_color(): line for line in panel.lines}
    assert set(dots) == {LOOKS["original"].color, LOOKS["pairwise"].color}
    original, pairwise = (dots[LOOKS[name].color] for name in ("original", "pairwise"))
    assert pairwise.get_xdata().tolist() == pytest.approx([61.5] * 5) and pairwise.get_linestyle() == "None"
    heights = original.get_ydata(), pairwise.get_ydata()
    assert all(
        row - 0.5 < above < row < below < row + 0.5 for row, (above, below) in enumerate(zip(*heights, strict=True))
    )
    low, high = panel.get_ylim()
    assert low > high, "the first set is at the top"
    segments = [lines.get_segments() for lines in panel.collections if isinstance(lines, LineCollection)]
    _, ticks, _, ranges = segments
    assert [tick[:, 0].tolist() for tick in ticks] == [[50.0, 50.0]] * 5
    assert [end for line in ranges for end in line[:, 0]] == pytest.approx([61.0, 62.0] * 5)
    assert [line[0, 1] for line in ranges] == pytest.approx(pairwise.get_ydata())


def test_one_seed_has_no_range_and_says_that_differences_may_be_chance(figure_of, plot_of):
    figure = figure_of(PAIR, seeds=(1,))
    assert "range of seeds" not in words_of(figure)
    assert not any(isinstance(artist, PolyCollection) for artist in panels_of(figure)[0].collections)
    assert plot_of(PAIR, seeds=(1,)).caption == (
        "On GLUE from a local mirror; one fine-tuning seed; one pre-training seed: differences between operators may "
        "be chance.\n\nExperiment demo-embedded, scale demo, recipe faithful; pre-trained on a stand-in corpus "
        "made from documentation text."
    )


def test_curves_start_at_the_clean_score_of_the_model_that_was_measured(plot_of):
    """Where it was fine-tuned again, which the explanation says."""
    plot = plot_of(PAIR, mrpc={"clean": {"mrpc": 0.8}})
    curves = {line.get_color(): line for line in panels_of(plot.figure)[0].lines}
    assert curves[LOOKS["pairwise"].color].get_ydata()[0] == pytest.approx((80 + 2 * 71.5) / 3)
    assert plot.caption.endswith("; in 4 of 8 runs the models were fine-tuned again and differ from those of Table 3.")


def test_stand_ins_and_partial_tasks_are_named(plot_of, figure_of):
    plot = plot_of(PAIR, changes={"glue_source": "embedded"}, stand_in=True, partial=True)
    assert panels_of(plot.figure)[0].get_ylabel() == "mean stand-in score (%)"
    assert panels_of(figure_of(PAIR))[0].get_ylabel() == "mean score (%)"
    assert plot.caption.startswith(
        "On stand-in tasks made from documentation text, not GLUE; means over 2 fine-tuning "
    )
    assert "; partial tasks: all." in plot.caption


def test_the_figure_has_the_same_bytes_whatever_the_order_of_the_inputs(
    robustness_records, write_scores, settings_file, tmp_path
):
    scores, measured = robustness_records(PAIR, tasks=TASKS, sets=())
    files, other = write_scores(scores), write_scores(measured, "robustness")
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    write_exhibit(
        "figure-robustness",
        [first],
        scores=files,
        robustness=other,
        settings=settings_file(tasks=TASKS),
        finetune_seeds=[1, 2],
    )
    write_exhibit(
        "figure-robustness",
        [second],
        scores=files[::-1],
        robustness=other[::-1],
        settings=settings_file(tasks=TASKS),
        finetune_seeds=[1, 2],
    )
    assert first.read_bytes() == second.read_bytes() and first.read_bytes().startswith(b"\x89PNG")
