"""Differences between models on a suite: intervals for each score, tests of its mean, and what they support."""

from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table
from symbert.report.tables.statistics import differences


@exhibit(per_suite=True, place=3, heading="differences between operators", reads=("settings", "scores"))
def suite_statistics_table(data: Data) -> Table:
    """Differences between models in percentage points on the suite, its mean and each task, with intervals, and a
    permutation test of the mean, which is a test of its own beside that of the GLUE score.
    """
    return differences(data.scores, data.settings, f"tab:{data.suite}_statistics")
