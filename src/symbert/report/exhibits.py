"""The list of tables, figures and texts, in the order of the page. To add one, add its function and its line."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from symbert.glue.tasks import BESIDE_GLUE
from symbert.report.claims import claims_table
from symbert.report.collect import Collection
from symbert.report.figures.corpus import corpus_figure
from symbert.report.figures.pretraining import grids_figure, hosts_figure, loss_figures
from symbert.report.figures.scores import anatomy_figure, blimp_figure, checkpoints_figure, robustness_figure
from symbert.report.formats import Table
from symbert.report.style import Plot
from symbert.report.summary import summary
from symbert.report.tables.corpus import corpus_table, provenance_table, runs_table, settings_table
from symbert.report.tables.operators import (
    anatomy_table,
    operators_drawing,
    operators_table,
    parameters_table,
    probes_table,
    training_table,
)
from symbert.report.tables.pretraining import (
    contrasts_table,
    exits_table,
    grid_exits_table,
    hosts_table,
    losses_table,
    milestones_table,
)
from symbert.report.tables.robustness import robustness_table
from symbert.report.tables.scores import answers_table, blimp_table, glue_table, published_table, scores_table
from symbert.report.tables.statistics import statistics_table

Made = Table | Plot | Path | list[str]  # a table, a figure, a drawing that is there already, or lines of a text


@dataclass(frozen=True)
class Exhibit:
    """A table, figure or text: its name is that of its files, in the folder of its kind.

    The function returns None where an experiment has no data for it, and for an exhibit per size a dict by size, whose
    files and headings end in the size.
    """

    name: str
    function: Callable[[Collection], Made | dict[str, Made] | None]
    heading: str
    caption: str = ""  # of a figure, also for those who cannot see it; a table has its own


OVER_CHECKPOINTS = (
    "over pre-training checkpoints, one per operator, with the line of 95 % of the highest final score; the "
    "legend says where each curve first reaches it, and its final score."
)


def _of_suite(suite: str, title: str) -> list[Exhibit]:
    """The exhibits of a suite beside GLUE."""
    return [
        Exhibit(suite, partial(glue_table, suite=suite), f"{title}: scores of this experiment"),
        Exhibit(
            f"{suite}_checkpoints",
            partial(checkpoints_figure, suite=suite),
            f"{title}: score over checkpoints",
            f"{title}. Curves of the score of the suite {OVER_CHECKPOINTS}",
        ),
        Exhibit(
            f"{suite}_statistics",
            partial(statistics_table, suite=suite),
            f"{title}: differences between operators",
        ),
        Exhibit(f"{suite}_scores", partial(scores_table, suite=suite), f"{title}: scores of every seed"),
        Exhibit(
            f"{suite}_answers",
            partial(answers_table, suite=suite),
            f"{title}: questions with and without an answer",
        ),
    ]


EXHIBITS: dict[str, list[Exhibit]] = {  # by chapter of the page
    "At a glance": [
        Exhibit("summary", summary, "What was compared, on what, and what the data support"),
        Exhibit(
            "figure2",
            loss_figures,
            "Figure 2: validation loss",
            "Validation loss over pre-training steps, and beneath it where each operator leaves the initial plateau.",
        ),
        Exhibit("table3_glue", glue_table, "Table 3: scores of this experiment"),
        Exhibit(
            "grids",
            grids_figure,
            "Losses and exits at each point of the sweep",
            "Above, the validation loss, mean and range over seeds; below, the share of runs still on the plateau.",
        ),
        Exhibit("grid_exits", grid_exits_table, "Exits at each point of the sweep"),
        Exhibit("grid_contrasts", contrasts_table, "Contrasts named before the runs"),
    ],
    "Claims": [Exhibit("claims", claims_table, "What became of the papers’ claims")],
    "Pre-training": [
        Exhibit(
            "figure3_checkpoints",
            checkpoints_figure,
            "Figure 3: score over checkpoints",
            f"Curves of the score {OVER_CHECKPOINTS}",
        ),
        Exhibit("milestones", milestones_table, "Milestones"),
        Exhibit("table2_training", training_table, "Table 2, continued: training"),
        Exhibit("exits", exits_table, "Exits from the plateau"),
        Exhibit("losses", losses_table, "Differences of validation losses"),
    ],
    "Robustness": [
        Exhibit(
            "robustness",
            robustness_figure,
            "Score over noise, and out of domain",
            "Curves of the score over the share of changed letters, and scores on out-of-domain sets, per operator; "
            "the table of robustness gives the numbers.",
        ),
        Exhibit("robustness", robustness_table, "Scores on noise and out of domain"),
    ],
    "Operators": [
        Exhibit(
            "figure1_operators",
            operators_drawing,
            "Figure 1: the operators",
            "How a token x attends to a token y, by each operator: the projections that two tokens go through, and "
            "what stands between them in the dot product. What an operator learns has its colour, what is computed is "
            "white."
            "\n\nColoured, thick frames: learned; thin frames: computed, in each head. h: hidden size; n: heads; "
            "d = h/n. S: a d × d matrix per head; a, b, c: vectors of length h; ∘: element by element. Parameters: of "
            "a layer, with biases.",
        ),
        Exhibit("table1_operators", operators_table, "Table 1: parameters per operator"),
        Exhibit("table2_parameters", parameters_table, "Table 2: parameters per model"),
        Exhibit("probes", probes_table, "What operators can express"),
        Exhibit("anatomy", anatomy_table, "Attention of trained models"),
        Exhibit(
            "anatomy",
            anatomy_figure,
            "Attention over pre-training",
            "Curves over pre-training steps, from the start: means over the heads of each operator of the symmetry of "
            "their scores, the width of their logits, the entropy of their attention, and the share that a token gives "
            "to itself.",
        ),
    ],
    "Hosts": [
        Exhibit("hosts", hosts_table, "Operators in other hosts"),
        Exhibit(
            "hosts",
            hosts_figure,
            "Other hosts over training",
            "Curves over training steps of what each host but the encoder measures on held-out data, one per operator; "
            "a panel per host and size.",
        ),
    ],
    "GLUE": [Exhibit("table3_published", published_table, "Table 3 as the paper prints it")],
    **{suite.title: _of_suite(suite.name, suite.title) for suite in BESIDE_GLUE if suite.tasks},
    "BLiMP": [
        Exhibit("blimp", blimp_table, "BLiMP: accuracy by phenomenon"),
        Exhibit(
            "blimp",
            blimp_figure,
            "BLiMP: accuracy over checkpoints",
            "Curves over pre-training steps of the share of minimal pairs in which each operator finds the acceptable "
            "sentence likelier, with the line of chance; a panel per host and size.",
        ),
    ],
    "Statistics of scores": [
        Exhibit("statistics", statistics_table, "Differences between operators"),
        Exhibit("scores", scores_table, "Scores of every seed"),
    ],
    "Corpus": [
        Exhibit(
            "corpus",
            corpus_figure,
            "Perplexity, length and tokens of documents",
            "Histograms of the documents read and kept: harmful perplexity, length in characters, and tokens; the "
            "table of documents gives the counts.",
        ),
        Exhibit("corpus", corpus_table, "Documents read, dropped and kept"),
    ],
    "Provenance": [
        Exhibit("settings", settings_table, "Settings, and the paper’s"),
        Exhibit("provenance", provenance_table, "What made this report"),
        Exhibit("runs", runs_table, "What the models were computed on"),
    ],
}
OF_PAPER = ("table1_operators", "table2_parameters", "table3_published")  # which need no experiment
OF_SWEEP = ("grids", "grid_exits", "grid_contrasts", "settings", "provenance", "runs")  # of keys that no page compares
