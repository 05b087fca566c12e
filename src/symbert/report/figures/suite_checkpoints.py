"""The score of a suite over pre-training checkpoints, as Figure 3 has GLUE's."""

from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.figures.figure3_checkpoints import curves_of_checkpoints
from symbert.report.plots import Plot


@exhibit(per_suite=True, place=2, heading="score over checkpoints", reads=("settings", "curve"))
def suite_checkpoints_figure(data: Data) -> Plot:
    """Curves of the score of the suite over pre-training checkpoints, one per operator, with the line of 95 % of the
    highest final score; the key beneath says where each curve first reaches it, and its final score.
    """
    return curves_of_checkpoints(data.curve, data.settings)
