"""The scores of a suite other than GLUE beside the majority baseline."""

import pandas as pd

from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table
from symbert.report.tables.table3_glue import SEVERAL, opening, scores_of_models
from symbert.settings import ReportSettings
from symbert.suites import SUITES
from symbert.task import Suite
from symbert.tasks import task_named


@exhibit(
    per_suite=True,
    place=1,
    heading="scores of this experiment",
    reads=("settings", "scores"),
    allow_missing=True,
)
def suite_table(data: Data) -> Table:
    """Scores of the last checkpoints on the tasks of the suite, mean and sample standard deviation over fine-tuning
    seeds, and the majority baseline. The score of the suite is the mean of its tasks.
    """
    final, settings, suite = data.scores, data.settings, SUITES[data.suite]
    columns = [column for task in settings.tasks for column in task_named(task).scores.values()]
    return scores_of_models(final, columns, _caption(final, settings, suite), f"tab:{suite.name}")


def _caption(final: pd.DataFrame, settings: ReportSettings, suite: Suite) -> str:
    notes = opening(f"{suite.title} scores at step {settings.steps:,}", settings, final)
    notes += [SEVERAL] * (final["pretrain_seed"].nunique() > 1)
    if len(settings.tasks) < len(suite.tasks):
        notes.append(f"Not the whole benchmark: the {suite.title} score is the mean of {', '.join(settings.tasks)}.")
    elif len(suite.tasks) > 1:
        notes.append(f"The {suite.title} score is the mean of its {len(suite.tasks)} tasks.")
    return " ".join([*notes, suite.note]).rstrip()
