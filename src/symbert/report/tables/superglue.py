"""SuperGLUE: scores of this experiment beside the majority baseline."""

import pandas as pd

from symbert.report import captions
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table
from symbert.report.tables.table3_glue import SEVERAL, opening, scores_of_models
from symbert.settings import ReportSettings
from symbert.suites import SUITES
from symbert.tasks import task_named

MAJORITY = (
    "Majority baseline: the most frequent training class for every row; for copa and record the answer at the place "
    "where the right one stands most often in training."
)


@exhibit(
    chapter="SuperGLUE",
    place=1,
    heading="SuperGLUE: scores of this experiment",
    reads=("settings", "superglue"),
    allow_missing=True,
)
def superglue_table(data: Data) -> Table:
    """SuperGLUE scores of the last checkpoints, mean and sample standard deviation over fine-tuning seeds, and the
    majority baseline. The score is the mean of the tasks; cb, multirc and record are means of two metrics.
    """
    final, settings = data.superglue, captions.of_suite(data.settings, "superglue")
    columns = [column for task in settings.tasks for column in task_named(task).scores.values()]
    return scores_of_models(final, columns, _caption(final, settings), "tab:superglue")


def _caption(final: pd.DataFrame, settings: ReportSettings) -> str:
    notes = opening(f"SuperGLUE scores at step {settings.steps:,}", settings, final)
    notes += [SEVERAL] * (final["pretrain_seed"].nunique() > 1)
    if len(settings.tasks) == len(SUITES["superglue"].tasks):
        score = "The SuperGLUE score is the mean of the eight tasks."
    else:
        score = f"Not the whole benchmark: the SuperGLUE score is the mean of {', '.join(settings.tasks)}."
    return " ".join([*notes, score, MAJORITY])
