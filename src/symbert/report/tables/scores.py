"""The scores behind Table 3: a row per fine-tuning seed, then the mean and standard deviation of each model."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.formats import Table, table_of
from symbert.report.statistics import SEEDS, seed_scores, spread, stand_in_names

Row = dict[str, Any]

SEVERAL = (
    "Mean and std in the column of fine-tuning seeds are over those of one pre-training seed; in the column of "
    "pre-training seeds, over the means of these."
)
COLLAPSED = "Collapsed: the tasks for which a seed predicts one class throughout."


def scores_table(data: Collection) -> Table | None:
    """Scores of every fine-tuning seed: GLUE score (mean of the columns that count for it, in the whole benchmark
    nine), mean of tasks (MNLI's two columns as one) and each column; then their mean and sample standard deviation.
    Table 3 and the statistics are made of these rows.
    """
    if data.scores is None:
        return None
    return scores_of_seeds(data.scores, data.settings, "tab:scores")


def suite_scores_table(data: Collection, suite: str) -> Table | None:
    """Scores of every fine-tuning seed: their mean and each task; then mean and sample standard deviation."""
    scores = data.scores_of(suite)
    return None if scores is None else scores_of_seeds(scores, data.settings_of(suite), f"tab:{suite}_scores")


def scores_of_seeds(final: pd.DataFrame, settings: ReportSettings, label: str) -> Table:
    """The table of the scores of a suite: rows of each seed."""
    several = final["pretrain_seed"].nunique() > 1
    constant = final[final["constant_prediction"].eq(True)]  # one class is predicted throughout
    collapsed = constant.groupby(SEEDS)["task"].agg(lambda tasks: ", ".join(tasks.unique()))
    seeds = seed_scores(final).rename(columns=stand_in_names(final))
    seeds = seeds.assign(collapsed=collapsed) if len(collapsed) else seeds
    models = seeds.groupby(level=["size", "attention", "step"], sort=False)
    rows = [row for model, part in models for row in _model_rows(captions.model_name(*model), part, several)]
    notes = [
        captions.of_scores(f"The scores of every seed at step {settings.steps:,}", settings, final),
        *([SEVERAL] if several else []),
        *([COLLAPSED] if len(collapsed) else []),
    ]
    return table_of(rows, " ".join(notes), label)


def _model_rows(name: str, scores: pd.DataFrame, several: bool) -> Iterator[Row]:
    """Rows of a model's seeds by pre-training seed; over several of these, mean and deviation of their means too."""
    parts = scores.groupby(level="pretrain_seed", sort=False)
    for pretrain_seed, part in parts:
        model = {"model": name} | ({"pretrain_seed": pretrain_seed} if several else {})
        for seed, row in zip(part.index.get_level_values("finetune_seed"), part.to_dict("records"), strict=True):
            yield model | {"finetune_seed": seed} | row
        yield from _summary(model, "finetune_seed", part)
    if several:
        yield from _summary({"model": name}, "pretrain_seed", parts.mean(numeric_only=True))


def _summary(model: Row, axis: str, scores: pd.DataFrame) -> Iterator[Row]:
    """Rows of the mean and of the sample standard deviation along an axis; none where it has one value."""
    if len(scores) < 2:
        return
    known = {column: values.dropna() for column, values in scores.select_dtypes("number").items()}
    spreads = {column: spread(values) if len(values) else None for column, values in known.items()}
    yield model | {axis: "mean"} | {column: values and values.mean for column, values in spreads.items()}
    yield model | {axis: "std"} | {column: values and values.deviation for column, values in spreads.items()}
