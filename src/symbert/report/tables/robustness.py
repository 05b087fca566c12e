"""Robustness: clean scores, and scores on noise and on out-of-domain sets."""

from typing import Any

import pandas as pd

from symbert.configuration import NOISE_KINDS
from symbert.report.collect import DOMAIN, NOISE, Collection, level_name
from symbert.report.formats import Table, table_of
from symbert.report.names import model_name
from symbert.report.statistics import SEEDS, STAND_IN, mean_scores, spread

ADVERSARIAL, ADVERSARIAL_MEAN = "adv_", "adv_mean"  # how the names of AdvGLUE's sets begin, and the mean of them


def noise_levels(robustness: pd.DataFrame) -> dict[str, list[float]]:
    """The shares of each kind of noise, rising."""
    noise = robustness[robustness["kind"] == NOISE]
    shares = {kind: sorted(set(noise.loc[noise["name"] == kind, "share"])) for kind in NOISE_KINDS}
    return {kind: values for kind, values in shares.items() if values}


def noise_scores(robustness: pd.DataFrame) -> pd.DataFrame:
    """Scores in percent, a row per model and seed: `clean`, then one column per kind and share of noise.

    Each is the mean of the score columns that have noise; empty where none has.
    """
    labels = [level_name(kind, share) for kind, shares in noise_levels(robustness).items() for share in shares]
    if not labels:
        return pd.DataFrame()
    levels = {label: robustness[robustness["label"] == label] for label in labels}
    first = levels[labels[0]]
    levels = {"clean": first.assign(score=first["clean"]), **levels}
    return pd.DataFrame({label: mean_scores(level) for label, level in levels.items()})


def domain_scores(robustness: pd.DataFrame) -> pd.DataFrame:
    """Scores in percent, a row per model and seed, a column per out-of-domain set; empty without any.

    `adv_mean` is the mean of several sets of AdvGLUE.
    """
    sets = robustness[robustness["kind"] == DOMAIN]
    names = sorted(dict.fromkeys(sets["name"]), key=lambda name: name.startswith(ADVERSARIAL))
    table = 100 * sets.pivot(index=SEEDS, columns="name", values="score")
    table = table.loc[pd.MultiIndex.from_frame(sets[SEEDS].drop_duplicates()), names]
    adversarial = [name for name in names if name.startswith(ADVERSARIAL)]
    if len(adversarial) > 1:
        table[ADVERSARIAL_MEAN] = table[adversarial].mean(axis=1)
    return table


def baseline_scores(robustness: pd.DataFrame) -> pd.DataFrame:
    """The same table with the scores of the majority baseline, which noise does not change."""
    return robustness.assign(score=robustness["majority"], clean=robustness["majority"])


def robustness_table(data: Collection) -> Table | None:
    """Clean: mean in percent of the columns that have noise; beside it the same with that percentage of letters
    swapped, dropped, followed by another or hit one key beside (mixed: any of these). Then out-of-domain sets, and adv
    mean of AdvGLUE’s. A row of means over seeds, and one of standard deviations. † A seed predicts one class
    throughout. arXiv 2412.00359 claims that shared generalises better on such data, but names no sets.
    """
    measured = data.robustness
    if measured is None:
        return None
    scores, baseline = _scores(measured), _scores(baseline_scores(measured)).iloc[0]
    rows, marked = [], set()
    for (size, attention), seeds in scores.groupby(level=["size", "attention"], sort=False):
        own = measured[(measured["size"] == size) & (measured["attention"] == attention)]
        marked |= {(len(rows), column) for column in own.loc[own["constant_prediction"].eq(True), "label"]}
        rows += _rows(model_name(size, attention), seeds)
    rows.append({"model": "majority baseline"} | {column: baseline.get(column) for column in scores})
    stand_ins = scores if measured.loc[measured["kind"] == NOISE, "stand_in"].any() else ()
    sets = {*measured.loc[measured["kind"] == DOMAIN, "label"], ADVERSARIAL_MEAN}
    return table_of(rows, {column: f"{column}{STAND_IN}" for column in stand_ins if column not in sets}, marked=marked)


def _scores(measured: pd.DataFrame) -> pd.DataFrame:
    """Noise and out-of-domain sets side by side, a row per model and seed."""
    parts = [noise_scores(measured), domain_scores(measured)]
    return pd.concat([part for part in parts if len(part)], axis=1)


def _rows(model: str, seeds: pd.DataFrame) -> list[dict[str, Any]]:
    """Mean and standard deviation over fine-tuning seeds, or over the means of several pre-training seeds.

    None where a score is missing.
    """
    runs = seeds.groupby(level="pretrain_seed", sort=False)
    units = runs.agg(lambda values: values.mean(skipna=False)) if runs.ngroups > 1 else seeds
    spreads = {column: None if units[column].isna().any() else spread(units[column]) for column in seeds}
    means = {"model": model} | {column: values and values.mean for column, values in spreads.items()}
    deviations = {column: values and values.deviation for column, values in spreads.items()}
    return [means, {"model": f"{model}, std"} | deviations] if len(units) > 1 else [means]
