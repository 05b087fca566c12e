"""Scores: Table 3 and those of other suites, differences between operators, and minimal pairs of BLiMP."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from symbert.report import names, published, setting
from symbert.report.collect import CHECKPOINT, Collection
from symbert.report.formats import Table, frame_of, heading, table_of
from symbert.report.statistics import (
    COUNTED,
    SEEDS,
    STAND_IN,
    Spread,
    headlines,
    mean_of,
    seed_scores,
    spread,
    stand_in_names,
)

Row = dict[str, Any]

MODEL = ["size", "attention", "step"]
MOST_SEEDS = 10  # of pre-training that have a row each; data/scores.csv has all


def glue_table(data: Collection, suite: str = "glue") -> Table | None:
    """Scores in percent of the last checkpoints: means over fine-tuning seeds, std their sample standard deviation.
    With several pre-training seeds each has a row, of more than ten their mean alone; in that row std is over them. †
    The mean has a run in it that predicts one class throughout. ‡ Of the rows scored some are training rows, or say
    where other words stand than they name: the top of the page counts them. A dash: not measured; a mean of columns is
    of the seeds that have them all.
    """
    if suite not in data.scores:
        return None
    final = data.scores[suite]
    columns = list(final["column"].unique())
    with_paper = suite == "glue" and setting.other_finetuning(data) is None and not final["stand_in"].any()
    lines = [*_model_lines(final, columns, with_paper)]
    if final["majority"].notna().any():  # as if the majority were a seed's; of imported scores it is not known
        cell = final.iloc[0][SEEDS].to_dict()
        baseline = final.drop_duplicates("column").assign(**cell, score=lambda scores: scores["majority"])
        percent = seed_scores(baseline).reindex(columns=[mean_of(final), *columns])
        lines.append((_row("majority baseline", percent) | {"finetune_seeds": None}, ()))
    marked = {(at, column) for at, (_, collapsed) in enumerate(lines) for column in collapsed}
    noted = final.loc[final["remark"].ne(""), "column"]
    return table_of([row for row, _ in lines], names=stand_in_names(final), marked=marked, noted=noted)


def _model_lines(final: pd.DataFrame, columns: list[str], with_paper: bool) -> Iterator[tuple[Row, Iterable[str]]]:
    """Rows of each model: of its seeds and their mean, the paper's beneath, and the model without pre-training; with
    the columns in which a run predicts one class throughout.

    There is but one row of a model where none has several pre-training seeds.
    """
    several, headline = final["pretrain_seed"].nunique() > 1, mean_of(final)
    percent = seed_scores(final).reindex(columns=[headline, *columns]).groupby(level=MODEL, sort=False)
    for ((size, attention, step), scores), (_, seeds) in zip(final.groupby(MODEL, sort=False), percent, strict=True):
        model = names.model_name(size, attention, step)
        row = _row(model, seeds)
        if several:
            runs = seeds.groupby(level="pretrain_seed", sort=False)
            rows = {seed: _row(f"{model}, seed {seed}", run) for seed, run in runs}
            if step and len(rows) <= MOST_SEEDS:
                yield from ((rows[seed], _collapsed(scores[scores["pretrain_seed"] == seed])) for seed in rows)
            spreads = {key: _spread(of_run[key] for of_run in rows.values()) for key in row.keys() - {"model", "std"}}
            row |= {key: values and values.mean for key, values in spreads.items()}
            row["model"] = f"{model}, mean of {len(rows)} seed{'s' if len(rows) > 1 else ''}"
            row["std"] = spreads[headline] and spreads[headline].deviation
        yield row, _collapsed(scores)
        if step and with_paper and (size, attention) in published.SCORES:
            yield _paper_row(size, attention, columns), ()


def _collapsed(scores: pd.DataFrame) -> set[str]:
    return {*scores.loc[scores["constant_prediction"].eq(True), "column"]}


def _row(name: str, seeds: pd.DataFrame) -> Row:
    """The cells of one pre-trained model, from the mean of its columns and its columns by seed; only seeds with all
    columns that count do so for the mean, and are counted where there are some."""
    headline, *columns = seeds
    complete = seeds.dropna(subset=[column for column in columns if column in COUNTED])
    score, spreads = _spread(complete[headline]), {column: _spread(seeds[column]) for column in columns}
    return {
        "model": name,
        headline: score and score.mean,
        "std": score and score.deviation,
        **{column: values and values.mean for column, values in spreads.items()},
        "finetune_seeds": len(complete) or len(seeds),
    }


def _paper_row(size: str, attention: str, columns: list[str]) -> Row:
    score, std, *scores = published.SCORES[size, attention]
    printed = dict(zip(published.COLUMNS, scores, strict=True))
    whole = set(columns) >= set(published.COLUMNS)  # the paper's mean is of all its columns
    return {
        "model": f"{size}-{attention}, the paper",
        "glue_score": score if whole else None,
        "std": std if whole else None,
        **{column: printed.get(column) for column in columns},
        "finetune_seeds": published.FINETUNE_SEEDS,
    }


def _spread(values: Iterable[float | None]) -> Spread | None:
    """The spread of the values that are known; None without any."""
    known = [value for value in values if pd.notna(value)]
    return spread(known) if known else None


def published_table(data: Collection) -> Table:
    """The paper’s own numbers, not this experiment’s: scores in percent as printed in table 3 of arXiv 2406.06366; mean
    and sample standard deviation over five fine-tuning seeds of one pre-trained model.
    """
    columns = ("glue_score", "std", *published.COLUMNS)
    rows = [
        {"model": f"{size}-{name}", **dict(zip(columns, printed, strict=True))}
        for (size, name), printed in published.SCORES.items()
    ]
    return table_of(rows)


def blimp_table(data: Collection) -> Table | None:
    """Share in percent of minimal pairs in which a model finds the acceptable sentence likelier at the last step,
    without fine-tuning: the mean over paradigms, then by phenomenon; with several pre-training seeds their mean, and
    std of the first. Chance is 50; a tie counts half. How likely a sentence is: the sum of the log probabilities of its
    tokens, each masked alone (Salazar et al. 2020), of a decoder each given those before. The csv has all steps and
    seeds.
    """
    minimal_pairs = data.blimp
    if minimal_pairs is None:
        return None
    rows, last = accuracies(minimal_pairs), minimal_pairs.groupby("architecture", sort=False)["step"].max()
    if minimal_pairs["stand_in"].any():
        rows = rows.add_suffix(STAND_IN)
    is_last = rows.index.get_level_values("step") == last[rows.index.get_level_values("architecture")].to_numpy()
    models = rows[is_last].groupby(level=["architecture", "size", "attention"], sort=False)
    readable, seeds = models.mean(), minimal_pairs["pretrain_seed"].nunique()
    if seeds > 1:
        readable.insert(1, "std", models[rows.columns[0]].std())
    readable.insert(
        0,
        "model",
        [names.model_name(size, name, architecture=architecture) for architecture, size, name in readable.index],
    )
    return Table(rows.reset_index(), readable=readable)


def accuracies(minimal_pairs: pd.DataFrame) -> pd.DataFrame:
    """A row per checkpoint: `accuracy`, the mean over paradigms, and that of each phenomenon."""
    checkpoint = list(CHECKPOINT)
    models = minimal_pairs.groupby(checkpoint, sort=False)["accuracy"].mean().to_frame()
    phenomena = minimal_pairs.groupby([*checkpoint, "phenomenon"], sort=False)["accuracy"].mean()
    return models.join(phenomena.unstack(sort=False))


P_VALUES = {"p": 4, "holm_p": 4, "smallest_p": 4}  # decimals


def statistics_table(data: Collection, suite: str = "glue") -> Table | None:
    """Model less reference, in percentage points, of the means over n units of each. A unit is a fine-tuning seed; with
    several pre-training seeds a pre-training seed with the mean of its fine-tuning seeds. Welch: 95 % interval. p:
    two-sided permutation test over all splits of the units of both; Holm p: with Holm’s correction among the
    differences of one size from one reference; smallest p: the least that so many units can give. Fewer than three
    units have neither. The csv has the intervals of all columns, which describe and are not tested.
    """
    compared = data.comparisons.get(suite)
    if not compared:
        return None
    scores, headline = stand_in_names(data.scores[suite]), headlines(compared)
    rows = [
        {
            **{name: getattr(pair, name) for name in ("size", "model", "reference")},
            "score": scores.get(pair.score, pair.score),
            **{name: getattr(pair, name) for name in ("n", "difference", "std")},
            **dict(zip(("welch_low", "welch_high"), pair.interval or (None, None), strict=True)),
            **{name: getattr(pair, name) for name in P_VALUES},
            "unit": pair.unit,
        }
        for pair in compared
    ]
    table = frame_of(rows)
    shown = table[[pair.score == headline[pair.size] for pair in compared]].drop(columns="std")
    return Table(table, readable=shown.assign(score=shown["score"].map(heading)), decimals=P_VALUES)
