"""Table 3: GLUE scores of this experiment beside the majority baseline, and the paper's in a table of its own."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pandas as pd

from symbert.errors import MissingInputError
from symbert.report import captions, published
from symbert.report.formats import Table, table_of
from symbert.report.scores import majority_of
from symbert.report.statistics import glue_scores, spread, task_scores
from symbert.settings import ReportSettings

Row = dict[str, Any]
Cells = frozenset[tuple[int, str]]


def published_table() -> Table:
    """Table 3 as the paper prints it."""
    rows = [{"model": f"{size}-{name}", **_printed(size, name)} for size, name in published.SCORES]
    caption = (
        f"The paper's own numbers, not this experiment's: GLUE scores in percent as printed in table 3 of "
        f"{published.PAPER}; mean and sample standard deviation over {published.FINETUNE_SEEDS} fine-tuning seeds of "
        "one pre-trained model."
    )
    best = _best(rows, [size for size, _ in published.SCORES], published.COLUMNS)
    return table_of(rows, caption, "tab:published", best=best)


def _printed(size: str, attention: str) -> Row:
    return dict(zip(("glue_score", "std", *published.COLUMNS), published.SCORES[size, attention], strict=True))


def glue_table(scores: pd.DataFrame, settings: ReportSettings) -> Table:
    """Table 3 of this experiment, from a table of `symbert.report.scores`, at the final step.

    The paper's rows are added only where sources and settings are the paper's. MissingInputError when the
    scores do not reach the experiment's last step.
    """
    final = _final(scores, settings.steps)
    columns = list(dict.fromkeys(final["column"]))
    sizes, rows = _model_rows(final, columns, captions.is_the_papers(settings))
    rows.append(_majority_row(final, columns))
    best = _best(rows, sizes, columns)
    if captions.has_stand_ins(settings):
        rows, best = _as_stand_ins(rows, best, columns)
    pretrain_seeds = final["pretrain_seed"].nunique()
    caption = (
        f"GLUE scores at step {settings.steps:,}. {captions.experiment_of(settings)}. "
        f"{captions.pretraining_of(settings, pretrain_seeds)} "
        f"{captions.finetuning_of(settings, final)} {_seeds_note(pretrain_seeds)}{_score_note(columns)} "
        "Majority baseline: the most frequent training class, or mean grade, for every row."
    )
    return table_of(rows, caption, "tab:glue", best=best)


def _final(scores: pd.DataFrame, steps: int) -> pd.DataFrame:
    last = int(scores["step"].max()) if len(scores) else 0
    if last != steps:
        raise MissingInputError(f"scores: the last step is {last}, expected {steps}; fine-tune that checkpoint first")
    return scores[scores["step"] == steps]


def _model_rows(final: pd.DataFrame, columns: list[str], with_paper: bool) -> tuple[list[str | None], list[Row]]:
    """Rows of each model, the last of ours with its size; the paper's row beneath, and rows of seeds, have none."""
    several = final["pretrain_seed"].nunique() > 1
    sizes: list[str | None] = []
    rows: list[Row] = []
    for (size, attention), scores in final.groupby(["size", "attention"], sort=False):
        model = f"{size}-{attention}"
        ours = _seed_rows(model, scores, columns) if several else [_model_row(model, scores, columns)]
        paper = [_paper_row(size, attention, columns)] if with_paper and (size, attention) in published.SCORES else []
        sizes += [None] * (len(ours) - 1) + [size] + [None] * len(paper)
        rows += ours + paper
    return sizes, rows


def _seed_rows(model: str, scores: pd.DataFrame, columns: list[str]) -> list[Row]:
    """A row per pre-training seed, and one of their mean with the standard deviation of their scores."""
    seeds = scores.groupby("pretrain_seed", sort=False)
    rows = [_model_row(f"{model}, seed {seed}", part, columns) for seed, part in seeds]
    score = spread(row["glue_score"] for row in rows)
    means = {key: spread(row[key] for row in rows).mean for key in rows[0] if key not in ("model", "std")}
    name = f"{model}, mean of {score.count} seed{'s' if score.count > 1 else ''}"
    return [*rows, {"model": name, "glue_score": score.mean, "std": score.deviation, **means}]


def _model_row(name: str, scores: pd.DataFrame, columns: list[str]) -> Row:
    score = spread(glue_scores(scores))
    means = 100 * scores.groupby("column", sort=False)["score"].mean()
    return {
        "model": name,
        "glue_score": score.mean,
        "std": score.deviation,
        **{column: means[column] for column in columns},
        "mean_of_tasks": spread(task_scores(scores)).mean,
        "finetune_seeds": score.count,
    }


def _paper_row(size: str, attention: str, columns: list[str]) -> Row:
    printed = _printed(size, attention)
    whole = set(columns) >= set(published.COLUMNS)  # the paper's mean is of all its columns
    return {
        "model": f"{size}-{attention}, the paper",
        **{key: printed[key] if whole else None for key in ("glue_score", "std")},
        **{column: printed.get(column) for column in columns},
        "mean_of_tasks": None,
        "finetune_seeds": published.FINETUNE_SEEDS,
    }


def _majority_row(final: pd.DataFrame, columns: list[str]) -> Row:
    majority = majority_of(final)
    baseline = final.assign(score=final["majority"])
    return {
        "model": "majority baseline",
        "glue_score": glue_scores(baseline).iloc[0],
        "std": None,
        **{column: 100 * majority[column] for column in columns},
        "mean_of_tasks": task_scores(baseline).iloc[0],
        "finetune_seeds": None,
    }


def _seeds_note(pretrain_seeds: int) -> str:
    """Which rows are of one pre-training seed and which of their mean; empty when there is one seed."""
    if pretrain_seeds == 1:
        return ""
    return (
        "In a row of one pre-training seed, std is over its fine-tuning seeds; in a row of their mean, over the "
        "pre-training seeds. "
    )


def _score_note(columns: list[str]) -> str:
    counted = [column for column in columns if column in published.COLUMNS]
    if len(counted) == len(published.COLUMNS):
        return "The GLUE score is the mean of the nine score columns; the mean of tasks counts MNLI once."
    return f"Not the whole benchmark: the GLUE score is the mean of {len(counted)} columns ({', '.join(counted)})."


def _best(rows: list[Row], sizes: Sequence[str | None], columns: Iterable[str]) -> Cells:
    """The cells with the highest value of their column among the models of one size, when there are several."""
    best = set()
    for size, column in product(set(sizes) - {None}, ("glue_score", *columns)):
        values = {at: rows[at][column] for at, other in enumerate(sizes) if other == size}
        if len(values) > 1:
            best |= {(at, column) for at, value in values.items() if value == max(values.values())}
    return frozenset(best)


def _as_stand_ins(rows: list[Row], best: Cells, columns: list[str]) -> tuple[list[Row], Cells]:
    """The same rows under headings that say that the tasks are stand-ins."""
    names = {name: f"{name} (stand-in)" for name in ("glue_score", *columns, "mean_of_tasks")}
    renamed = [{names.get(column, column): value for column, value in row.items()} for row in rows]
    return renamed, frozenset((row, names[column]) for row, column in best)
