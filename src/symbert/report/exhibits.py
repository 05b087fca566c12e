"""The list of tables, figures and texts, in the order of the page. To add one, add its function and its line.

The docstring of a function is the caption: what is shown, and how to read it. What depends on the experiment is said by
`symbert.report.setting`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from symbert.architectures import ARCHITECTURES, OTHERS
from symbert.glue.tasks import BESIDE_GLUE, Suite
from symbert.report import figures
from symbert.report.claims import claims_table
from symbert.report.collect import Collection
from symbert.report.formats import Table
from symbert.report.summary import summary
from symbert.report.tables import corpus, operators, pretraining, robustness, scores

Made = Table | Figure | Path | list[str]  # a table, a figure, a drawing that is there already, or lines of a text


@dataclass(frozen=True)
class Exhibit:
    """A table, figure or text: its name is that of its files, in the folder of its kind.

    The function returns None where an experiment has no data for it, and for an exhibit per size a dict by size, whose
    files and headings end in the size. `more` ends the caption.
    """

    name: str
    function: Callable[[Collection], Made | dict[str, Made] | None]
    heading: str
    more: str = ""

    @property
    def caption(self) -> str:
        """What is shown, and how to read it."""
        function = self.function.func if isinstance(self.function, partial) else self.function
        return " ".join([*inspect.getdoc(function).split(), *self.more.split()])


def _of_suite(suite: Suite) -> list[Exhibit]:
    """The exhibits of a suite beside GLUE."""
    name, title = suite.name, suite.title
    table, statistics = partial(scores.glue_table, suite=name), partial(scores.statistics_table, suite=name)
    curve = partial(figures.checkpoints_figure, suite=name)
    return [
        Exhibit(name, table, f"{title}: scores of this experiment", suite.note),
        Exhibit(f"{name}_checkpoints", curve, f"{title}: score over checkpoints"),
        Exhibit(f"{name}_statistics", statistics, f"{title}: differences between operators"),
        Exhibit(
            f"{name}_paired",
            partial(scores.paired_table, suite=name),
            f"{title}: differences from the first model from elsewhere",
        ),
    ]


GLUE_SCORE = (
    "The GLUE score is the mean of nine columns, MNLI’s two counted as two; wnli and the user’s own tasks do not "
    "count. Majority baseline: the most frequent training class, or mean grade, for every row."
)
ESCAPE = (
    "A run escapes the plateau at its first evaluation whose validation loss is at or below a level that all runs of "
    "the comparison share (escape loss): what sweep.escape_loss says, or 0.8 of the unigram entropy of the validation "
    "rows; where neither is known nothing is stated. A dash: not within the steps of the run; one at the first "
    "evaluation may have come at any step before it. Diverged: escaped, and above the level again at the end."
)
VERDICT = (
    "Verdict: shorter or longer where p (Holm) and the 95 % interval agree, within 25 % where the 90 % interval, which "
    "is not corrected, lies between 0.80 and 1.25, else undecided, as is every comparison of fewer than five seeds. "
    "Detectable ratio: what so many seeds of this spread find with 80 % power, as its inverse (two-sided paired t of "
    "logarithms at the corrected level): ratios nearer to 1 are not ruled out where the verdict is undecided; a dash: "
    "not known, as where a run has not escaped."
)
OF_ARCHITECTURES = " ".join(ARCHITECTURES[architecture].sentence for architecture in OTHERS)
EXHIBITS: dict[str, list[Exhibit]] = {  # by chapter of the page
    "At a glance": [
        Exhibit("summary", summary, "What the data support, what was compared, and on what"),
        Exhibit("figure2", figures.loss_figures, "Figure 2: validation loss"),
        Exhibit("table3_glue", scores.glue_table, "Table 3: scores of this experiment", GLUE_SCORE),
        Exhibit("grids", figures.grids_figure, "Losses at each point of the sweep"),
        Exhibit("grid_escapes", pretraining.grid_escapes_table, "Escapes at each point of the sweep", ESCAPE),
        Exhibit("grid_contrasts", pretraining.contrasts_table, "Contrasts named before the runs", VERDICT),
        Exhibit("grid_losses", pretraining.grid_losses_table, "The same contrasts: differences of last losses"),
        Exhibit("grid_rates", pretraining.grid_rates_table, "Learning rates, chosen at each point"),
        Exhibit("grid_rates", figures.rates_figure, "Contrasts over learning rates"),
    ],
    "Models from elsewhere": [
        Exhibit("paired", scores.paired_table, "Differences from the first of them"),
        Exhibit("models", scores.models_table, "What they are"),
    ],
    "Claims": [Exhibit("claims", claims_table, "What became of the papers’ claims")],
    "Pre-training": [
        Exhibit("figure3_checkpoints", figures.checkpoints_figure, "Figure 3: score over checkpoints"),
        Exhibit("table2_training", operators.training_table, "Table 2, continued: training"),
        Exhibit("milestones", pretraining.milestones_table, "Steps to 95 % of the highest final score"),
        Exhibit("escapes", pretraining.escapes_table, "Escapes from the plateau", f"{ESCAPE} {VERDICT}"),
        Exhibit("losses", pretraining.losses_table, "Differences of validation losses"),
    ],
    "Robustness": [
        Exhibit("robustness", figures.robustness_figure, "Score over noise"),
        Exhibit("robustness", robustness.robustness_table, "Scores on noise and out of domain"),
    ],
    "Operators": [
        Exhibit("figure1_operators", operators.operators_drawing, "Figure 1: the operators"),
        Exhibit("table1_operators", operators.operators_table, "Table 1: parameters per operator"),
        Exhibit("table2_parameters", operators.parameters_table, "Table 2: parameters per model"),
        Exhibit("anatomy", operators.anatomy_table, "Attention of trained models"),
        Exhibit("anatomy", figures.anatomy_figure, "Attention over pre-training"),
    ],
    "Architectures": [
        Exhibit("architectures", pretraining.architectures_table, "Operators in other architectures", OF_ARCHITECTURES),
        Exhibit("architectures", figures.architectures_figure, "Other architectures over training"),
    ],
    "GLUE": [Exhibit("table3_published", scores.published_table, "Table 3 as the paper prints it")],
    **{suite.title: _of_suite(suite) for suite in BESIDE_GLUE if suite.tasks},
    "BLiMP": [
        Exhibit("blimp", scores.blimp_table, "BLiMP: accuracy by phenomenon"),
        Exhibit("blimp", figures.blimp_figure, "BLiMP: accuracy over checkpoints"),
    ],
    "Statistics of scores": [Exhibit("statistics", scores.statistics_table, "Differences between operators")],
    "Learning rates": [Exhibit("rates", scores.rates_table, "Learning rates, chosen per model and task")],
    "Corpus": [Exhibit("corpus", corpus.corpus_table, "Documents read, dropped and kept")],
    "Provenance": [
        Exhibit("settings", corpus.settings_table, "Settings, and the paper’s"),
        Exhibit("provenance", corpus.provenance_table, "What made this report"),
    ],
}
OF_SWEEP = (
    "grids",
    "grid_escapes",
    "grid_contrasts",
    "grid_losses",
    "grid_rates",
    "settings",
    "provenance",
)  # of keys that no page compares
