"""SuperGLUE's score over pre-training checkpoints, as Figure 3 has GLUE's."""

from symbert.report import captions
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.figures.figure3_checkpoints import curves_of_checkpoints
from symbert.report.plots import Plot


@exhibit(
    chapter="SuperGLUE", place=2, heading="SuperGLUE: score over checkpoints", reads=("settings", "superglue_curve")
)
def superglue_checkpoints_figure(data: Data) -> Plot:
    """Curves of the SuperGLUE score over pre-training checkpoints, one per operator, with the line of 95 % of the
    highest final score; the key beneath says where each curve first reaches it, and its final score.
    """
    return curves_of_checkpoints(data.superglue_curve, captions.of_suite(data.settings, "superglue"))
