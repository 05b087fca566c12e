"""The scores behind the table of SuperGLUE: a row per fine-tuning seed, then mean and deviation of each model."""

from symbert.report import captions
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table
from symbert.report.tables.scores import scores_of_seeds


@exhibit(chapter="SuperGLUE", place=4, heading="SuperGLUE: scores of every seed", reads=("settings", "superglue"))
def superglue_scores_table(data: Data) -> Table:
    """SuperGLUE scores of every fine-tuning seed: their mean and each task; then mean and sample standard deviation."""
    return scores_of_seeds(data.superglue, captions.of_suite(data.settings, "superglue"), "tab:superglue_scores")
