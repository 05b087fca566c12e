"""Scores: Table 3 and those of other suites, models from elsewhere, differences between models, learning rates that
were tuned, and minimal pairs of BLiMP."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.foreign import ForeignModel
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
    where other words stand than they name: the notes of the page count them. A dash: not measured; a mean of columns is
    of the seeds that have them all.
    """
    if suite not in data.scores:
        return None
    final = data.scores[suite]
    columns = list(final["column"].unique())
    with_paper = suite == "glue" and setting.other_finetuning(data) is None and not final["stand_in"].any()
    lines = [*_model_lines(final, columns, with_paper, data.known.models)]
    if final["majority"].notna().any():  # as if the majority were a seed's; of imported scores it is not known
        cell = final.iloc[0][SEEDS].to_dict()
        baseline = final.drop_duplicates("column").assign(**cell, score=lambda scores: scores["majority"])
        percent = seed_scores(baseline).reindex(columns=[mean_of(final), *columns])
        lines.append((_row("majority baseline", percent) | {"finetune_seeds": None}, ()))
    if data.models:
        families = {names.model_name("", model.name): model.model_type for model in data.models}
        lines = [({"model": row["model"], "family": families.get(row["model"]), **row}, of) for row, of in lines]
    marked = {(at, column) for at, (_, collapsed) in enumerate(lines) for column in collapsed}
    noted = final.loc[final["remark"].ne(""), "column"]
    return table_of([row for row, _ in lines], names=stand_in_names(final), marked=marked, noted=noted)


def _model_lines(
    final: pd.DataFrame, columns: list[str], with_paper: bool, foreign: Sequence[str]
) -> Iterator[tuple[Row, Iterable[str]]]:
    """Rows of each model: of its seeds and their mean, the paper's beneath, and the model without pre-training; with
    the columns in which a run predicts one class throughout.

    There is but one row of a foreign model, and of a model where none has several pre-training seeds.
    """
    several, headline = final["pretrain_seed"].nunique() > 1, mean_of(final)
    percent = seed_scores(final).reindex(columns=[headline, *columns]).groupby(level=MODEL, sort=False)
    for ((size, attention, step), scores), (_, seeds) in zip(final.groupby(MODEL, sort=False), percent, strict=True):
        model = names.model_name(size, attention, step)
        row = _row(model, seeds)
        if several and (size or attention not in foreign):
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


def published_table(data: Collection) -> Table | None:
    """The paper’s own numbers, not this experiment’s: scores in percent as printed in table 3 of arXiv 2406.06366; mean
    and sample standard deviation over five fine-tuning seeds of one pre-trained model.
    """
    if data.experiment and not setting.is_pretrained_here(data.experiment):
        return None
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


def models_table(data: Collection) -> Table | None:
    """Models that were pre-trained elsewhere, as they were fine-tuned here. Family: model_type of config.json.
    Parameters: by the size of the weights. Head: the class whose head was trained. A commit is that of the hub.
    Provenance has the SHA-256 of weights and tokenizer.
    """
    rows = [
        {
            "model": model.name,
            "family": model.model_type,
            "origin": origin_of(model),
            "commit": model.commit or None,
            "parameters": model.parameters,
            "tokenizer": model.tokenizer.model_type,
            "head": ", ".join(values_of(data, model, "head")) or None,
        }
        for model in data.models
    ]
    shown = [row | {"commit": row["commit"] and row["commit"][:12]} for row in rows]
    return table_of(rows, readable=frame_of(shown)) if rows else None


def origin_of(model: ForeignModel) -> str:
    """Where a model comes from: owner/name of the hub, or its folder, of which an absolute path tells the last part."""
    return Path(model.origin).name if Path(model.origin).is_absolute() else model.origin


def values_of(data: Collection, model: ForeignModel, column: str) -> list[str]:
    """What the scores of a foreign model have in a column, each value once."""
    tables = (table[table["size"].eq("") & table["attention"].eq(model.name)] for table in data.scores.values())
    return list(dict.fromkeys(value for table in tables for value in table[column] if value))


DIVERGED = "diverged"


def rates_table(data: Collection) -> Table | None:
    """The learning rate that was chosen for each model and task: the one of the highest mean score over tuning seeds,
    none of which is reported in another table. By rate that mean in percent; diverged: with a seed. Edge: the
    chosen one is the lowest or highest of its grid, so a better one may lie beyond. The csv has the score of every
    tuning seed.
    """
    tuned = setting.chosen_rates(data)
    if tuned.empty:
        return None
    rates = sorted({float(rate) for row in tuned["tuned"] for rate in row})
    rows, shown = [], []
    for row in tuned.itertuples():
        model = names.model_name(row.size, row.attention, row.step)
        if tuned["pretrain_seed"].nunique() > 1 and row.size:
            model = f"{model}, seed {row.pretrain_seed}"
        of_rates = {float(rate): [100 * score for score in scores] for rate, scores in row.tuned.items()}
        place = {"model": model, "task": row.task}
        means = {rate: spread(scores).mean if scores else DIVERGED for rate, scores in of_rates.items()}
        shown.append(
            place
            | {"chosen": f"{row.learning_rate:g}", "edge": row.edge or None}
            | {f"{rate:g}": means.get(rate) for rate in rates}
        )
        rows += [
            place
            | {"rate": rate, "chosen": rate == row.learning_rate, "edge": row.edge or None}
            | {"tuning_seed": at, "score": score}
            for rate, scores in sorted(of_rates.items())
            for at, score in enumerate(scores or [None], 1)
        ]
    return table_of(rows, readable=frame_of(shown))


P_VALUES = {"p": 4, "holm_p": 4, "smallest_p": 4}  # decimals


def statistics_table(data: Collection, suite: str = "glue") -> Table | None:
    """Model less reference, in percentage points, of the means over n units of each. A unit is a fine-tuning seed; with
    several pre-training seeds a pre-training seed with the mean of its fine-tuning seeds. Welch: 95 % interval. p:
    two-sided permutation test over all splits of the units of both; Holm p: with Holm’s correction among the
    differences of one size from one reference; smallest p: the least that so many units can give. Detectable: what
    such a test finds with 80 % power (two-sided t, Welch’s, at the corrected level): smaller differences are not ruled
    out where none is significant; a dash: the smallest p, corrected, is above 0.05, so none could be. Fewer than three
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
            "detectable": pair.detectable,
            "unit": pair.unit,
        }
        for pair in compared
    ]
    table = frame_of(rows)
    shown = table[[pair.score == headline[pair.size] for pair in compared]].drop(columns="std")
    return Table(table, readable=shown.assign(score=shown["score"].map(heading)), decimals=P_VALUES)


def paired_table(data: Collection, suite: str = "glue") -> Table | None:
    """Model less reference, the first model from elsewhere, in points of the mean score. Equal fine-tuning seeds are
    paired: they share the order of rows and the draw of the head. Low, high: Student’s 95 % interval over seeds. p: of
    all signs that the differences of fine-tunings, one per seed and task, may have under “no difference on any of these
    tasks”; Holm p: corrected for the number of models. Significant: Holm p is at most 0.05, and the interval on one
    side of zero. Of other tasks and other pre-trainings nothing is said. Detectable: the difference that so many seeds
    of this spread find with 80 % power (two-sided paired t at the corrected level); where none is significant, smaller
    ones are not ruled out; a dash: none could be significant. The csv has the intervals of all columns, which are not
    tested.
    """
    compared = data.paired.get(suite)
    if not compared:
        return None
    scores, headline = stand_in_names(data.scores[suite]), compared[0].score
    rows = [
        {
            "model": names.model_name(pair.size, pair.model),
            "reference": pair.reference,
            "score": scores.get(pair.score, pair.score),
            **{name: getattr(pair, name) for name in ("difference", "std")},
            **dict(zip(("low", "high"), pair.interval or (None, None), strict=True)),
            **{name: getattr(pair, name) for name in P_VALUES},
            "significant": None if pair.p is None else pair.is_significant,
            "detectable": pair.detectable,
            "seeds": pair.n,
            "fine_tunings": pair.fine_tunings,
        }
        for pair in compared
    ]
    table = frame_of(rows)
    shown = table[[pair.score == headline for pair in compared]].drop(columns=["std", "smallest_p"])
    return Table(table, readable=shown.assign(score=shown["score"].map(heading)), decimals=P_VALUES)
