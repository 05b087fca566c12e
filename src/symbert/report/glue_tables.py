"""Table 3: GLUE scores of this experiment beside the majority baseline, and the paper's in a table of its own."""

from itertools import product

import pandas as pd

from symbert.glue.tasks import task_named
from symbert.report import captions, published
from symbert.report.formats import DAGGER, Table, table_of
from symbert.report.glue_lines import Line, best_of, majority_lines, model_lines, printed_row
from symbert.report.scores import majority_of
from symbert.report.statistics import SEEDS, final_scores, stand_in_names
from symbert.settings import ReportSettings


def published_table() -> Table:
    """Table 3 as the paper prints it."""
    lines = [Line({"model": f"{size}-{name}", **printed_row(size, name)}, size) for size, name in published.SCORES]
    caption = (
        f"The paper's own numbers, not this experiment's: GLUE scores in percent as printed in table 3 of "
        f"{published.PAPER}; mean and sample standard deviation over {published.FINETUNE_SEEDS} fine-tuning seeds of "
        "one pre-trained model."
    )
    return table_of(
        [line.row for line in lines], caption, "tab:published", best=best_of(lines, ("glue_score", *published.COLUMNS))
    )


def glue_table(scores: pd.DataFrame, settings: ReportSettings) -> Table:
    """Table 3 of this experiment, from a table of `symbert.report.scores`, at the final step.

    The paper's rows are added only where they may stand beside these, and rows of models without pre-training where
    such were fine-tuned. MissingInputError when the scores do not reach the experiment's last step.
    """
    final = final_scores(scores, settings.steps)
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
    notes += [*_missing_notes(final, columns), *_seeds_notes(pretrain_seeds), _score_note(columns)]
    if captions.is_imported(settings) and _has_printed(final):
        notes.append("Beside them what the paper prints; whether these are its models, the files do not say.")
    if majority_of(final):
        notes.append("Majority baseline: the most frequent training class, or mean grade, for every row.")
    return " ".join(notes)


def _has_printed(final: pd.DataFrame) -> bool:
    return not published.SCORES.keys().isdisjoint(zip(final["size"], final["attention"], strict=True))


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


def _seeds_notes(pretrain_seeds: int) -> list[str]:
    """Which rows are of one pre-training seed and which of their mean; nothing when there is one seed."""
    if pretrain_seeds == 1:
        return []
    return [
        "In a row of one pre-training seed, std is over its fine-tuning seeds; in a row of their mean, over the "
        "pre-training seeds."
    ]


def _score_note(columns: list[str]) -> str:
    counted = [column for column in columns if column in published.COLUMNS]
    others = "" if counted == columns else " Wnli does not count for it, as in the paper."
    if not counted:
        return f"There is no GLUE score.{others}"
    if len(counted) == len(published.COLUMNS):
        return f"The GLUE score is the mean of the nine score columns; the mean of tasks counts MNLI once.{others}"
    number = f"{len(counted)} column{'s' if len(counted) > 1 else ''}"
    return f"Not the whole benchmark: the GLUE score is the mean of {number} ({', '.join(counted)}).{others}"
