"""The scores behind the table of a suite: a row per fine-tuning seed, then mean and deviation of each model."""

from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table
from symbert.report.tables.scores import scores_of_seeds


@exhibit(per_suite=True, place=4, heading="scores of every seed", reads=("settings", "scores"))
def suite_scores_table(data: Data) -> Table:
    """Scores of every fine-tuning seed: their mean and each task; then mean and sample standard deviation."""
    return scores_of_seeds(data.scores, data.settings, f"tab:{data.suite}_scores")
