"""Table 3: GLUE scores of this experiment beside the majority baseline."""

from itertools import product

import pandas as pd

from symbert.report import captions, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import DAGGER, Table, table_of
from symbert.report.glue_lines import best_of, majority_lines, model_lines
from symbert.report.scores import majority_of
from symbert.report.statistics import SEEDS, stand_in_names
from symbert.settings import ReportSettings
from symbert.tasks import OWN, task_named

SEVERAL = (
    "In a row of one pre-training seed, std is over its fine-tuning seeds; in a row of their mean, over the "
    "pre-training seeds."
)


@exhibit(chapter="GLUE", place=1, heading="Table 3: scores of this experiment", reads=("settings", "scores"))
def glue_table(data: Data) -> Table:
    """Table 3 of this experiment: scores of the last checkpoints, mean and sample standard deviation over fine-tuning
    seeds, and the majority baseline. Where there are several pre-training seeds, the mean over them has a row of its
    own.

    The paper's rows are added where its scores may stand beside these.
    """
    final, settings = data.scores, data.settings
    columns = [column for task in settings.tasks for column in task_named(task).scores.values()]
    with_paper = captions.shows_the_papers_scores(settings)
    lines = [*model_lines(final, columns, with_paper), *majority_lines(final, columns)]
    names = stand_in_names(final)
    rows = [{names.get(key, key): value for key, value in line.row.items()} for line in lines]
    best = frozenset((at, names.get(column, column)) for at, column in best_of(lines, ("glue_score", *columns)))
    marked = frozenset((at, names.get(column, column)) for at, line in enumerate(lines) for column in line.collapsed)
    return table_of(rows, _caption(final, columns, settings), "tab:glue", best=best, marked=marked)


def _caption(final: pd.DataFrame, columns: list[str], settings: ReportSettings) -> str:
    pretrain_seeds = final["pretrain_seed"].nunique()
    notes = [
        f"GLUE scores at step {settings.steps:,}. {captions.experiment_of(settings)}.",
        captions.pretraining_of(settings, pretrain_seeds),
        captions.finetuning_of(settings, final),
    ]
    if final["constant_prediction"].eq(True).any():
        notes.append(f"{DAGGER} The mean has such a run in it.")
    notes += [*_missing_notes(final, columns), *([SEVERAL] if pretrain_seeds > 1 else []), _score_note(columns)]
    is_printed = not published.SCORES.keys().isdisjoint(zip(final["size"], final["attention"], strict=True))
    if captions.is_imported(settings) and is_printed:
        notes.append("Beside them what the paper prints; whether these are its models, the files do not say.")
    if majority_of(final):
        notes.append("Majority baseline: the most frequent training class, or mean grade, for every row.")
    return " ".join(notes)


def _missing_notes(final: pd.DataFrame, columns: list[str]) -> list[str]:
    """Which scores a table with dashes lacks: 'rte of base-original (3 of 5)'; none where all are there."""
    models = ["size", "attention", "step"]
    runs = final.groupby(models)[SEEDS].apply(lambda part: len(part.drop_duplicates()))
    counts = final.groupby([*models, "column"]).size()
    missing = [
        f"{column} of {captions.model_name(size, attention, step)} ({count} of {runs.max()})"
        for (size, attention, step), column in product(runs.index, columns)
        if (count := counts.get((size, attention, step, column), 0)) < runs.max()
    ]
    rest = "the GLUE score is of seeds with every column."
    return [f"Missing scores: {', '.join(missing)}; {rest}"] if missing else []


def _score_note(columns: list[str]) -> str:
    counted = [column for column in columns if column in published.COLUMNS]
    others = " Wnli does not count for it, as in the paper." if "wnli" in columns else ""
    own = ", ".join(column for column in columns if column in OWN)
    others += f" The user's own tasks do not count for it: {own}." if own else ""
    if not counted:
        return f"There is no GLUE score.{others}"
    if len(counted) == len(published.COLUMNS):
        return f"The GLUE score is the mean of the nine score columns; the mean of tasks counts MNLI once.{others}"
    number = f"{len(counted)} column{'s' if len(counted) > 1 else ''}"
    return f"Not the whole benchmark: the GLUE score is the mean of {number} ({', '.join(counted)}).{others}"
