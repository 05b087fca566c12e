"""Differences between models on SuperGLUE: intervals for each score, tests of its mean, and what they support."""

from symbert.report import captions
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table
from symbert.report.tables.statistics import differences


@exhibit(
    chapter="SuperGLUE", place=3, heading="SuperGLUE: differences between operators", reads=("settings", "superglue")
)
def superglue_statistics_table(data: Data) -> Table:
    """Differences between models in percentage points on SuperGLUE, its mean and each task, with intervals, and a
    permutation test of the mean, which is a test of its own beside that of the GLUE score.
    """
    return differences(data.superglue, captions.of_suite(data.settings, "superglue"), "tab:superglue_statistics")
