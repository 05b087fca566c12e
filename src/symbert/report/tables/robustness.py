"""Robustness: clean scores, scores on noise and the points that it takes, and scores on out-of-domain sets."""

from typing import Any

import pandas as pd

from symbert.report import captions, published
from symbert.report.collect import CELL, DOMAIN, KINDS, NOISE, Collection, level_name
from symbert.report.formats import DAGGER, Table, best_of, table_of
from symbert.report.statistics import SEEDS, glue_scores, is_inferred_from, spread
from symbert.report.tables.scores import MAJORITY

ADVERSARIAL, ADVERSARIAL_MEAN = "adv_", "adv_mean"  # how the names of AdvGLUE's sets begin, and the mean of them
DROP, LOST = "drop", "lost_percent"  # how the columns end in which less is better
LEAD = 1.0  # percentage points above the majority baseline: with less, a dash stands for the share that is lost
LETTERS = {
    "swap": "swapped with a neighbour",
    "drop": "dropped",
    "insert": "followed by another",
    "keyboard": "hit one key beside",
    "mixed": "swapped, dropped, followed by another or hit one key beside",
}


def noise_levels(robustness: pd.DataFrame) -> dict[str, list[float]]:
    """The shares of each kind of noise, rising."""
    noise = robustness[robustness["kind"] == NOISE]
    shares = {kind: sorted(set(noise.loc[noise["name"] == kind, "share"])) for kind in KINDS}
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
    return pd.DataFrame({label: glue_scores(level) for label, level in levels.items()})


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


def fine_tuned_again(robustness: pd.DataFrame) -> str:
    """In how many runs the models are not those of the clean scores, in words; empty where all are."""
    runs = robustness.drop_duplicates(list(CELL))["differs"]
    words = f"in {runs.sum()} of {len(runs)} runs the models were fine-tuned again and differ from those of Table 3"
    return words if runs.any() else ""


def robustness_table(data: Collection) -> Table | None:
    """Robustness, which the papers' tables lack and arXiv 2412.00359 claims: scores of the fine-tuned models on
    evaluation rows with changed letters, and on out-of-domain sets where their files were given. Lost is the drop at
    the largest share in percent of the clean score's lead over the majority baseline.

    A row per model, its mean over seeds, and one of the standard deviations.
    """
    measured = data.robustness
    if measured is None:
        return None
    scores, baseline = _scores(measured), _scores(baseline_scores(measured)).iloc[0]
    for kind, shares in noise_levels(measured).items():  # what the largest share of each noise takes
        most = level_name(kind, shares[-1])
        drop, lead = scores["clean"] - scores[most], scores["clean"] - baseline["clean"]
        place = scores.columns.get_loc(most) + 1
        scores.insert(place, f"{kind}_{DROP}", drop)
        scores.insert(place + 1, f"{kind}_{LOST}", (100 * drop / lead).where(lead >= LEAD))
    rows, sizes, marked = [], [], set()
    for (size, attention), seeds in scores.groupby(level=["size", "attention"], sort=False):
        own = measured[(measured["size"] == size) & (measured["attention"] == attention)]
        collapsed = own.loc[own["constant_prediction"].eq(True), "label"]
        marked |= {(len(rows), column) for column in collapsed}
        of_model = _rows(f"{size}-{attention}", seeds)
        rows += of_model
        sizes += [size, None][: len(of_model)]
    rows.append({"model": "majority baseline"} | {column: baseline.get(column) for column in scores})
    less_is_better = [column for column in scores if column.endswith((DROP, LOST))]
    stand_ins = scores if measured.loc[measured["kind"] == NOISE, "stand_in"].any() else ()
    sets = {*measured.loc[measured["kind"] == DOMAIN, "label"], ADVERSARIAL_MEAN}
    return table_of(
        rows,
        _caption(data, measured),
        "tab:robustness",
        names={column: f"{column} (stand-in)" for column in stand_ins if column not in sets},
        best=best_of(rows, [*sizes, None], scores, lowest=less_is_better) if is_inferred_from(data.trained) else (),
        marked=marked,
    )


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


def _caption(data: Collection, measured: pd.DataFrame) -> str:
    clean, settings, levels = data.trained, data.settings, noise_levels(measured)
    sets = measured[measured["kind"] == DOMAIN].drop_duplicates("label")
    kinds = " and on ".join(["noisy evaluation rows"] * bool(levels) + ["out-of-domain sets"] * bool(len(sets)))
    notes = [captions.of_scores(f"Robustness at step {settings.steps:,}: scores on {kinds}", settings, clean)]
    if levels:
        columns = ", ".join(dict.fromkeys(measured.loc[measured["kind"] == NOISE, "column"]))
        shares = ", ".join(f"{100 * share:g}" for share in sorted(set().union(*levels.values())))
        letters = "; ".join(f"{LETTERS.get(kind, kind)} ({kind})" for kind in levels)
        notes.append(
            f"Clean: mean of the columns that have noise ({columns}); beside it the same with {shares} % of the "
            f"letters {letters}. Drop: points that the largest share takes; lost: as much in percent of the clean "
            f"score's lead over the majority baseline, a dash where a seed leads by less than {LEAD:g} point."
        )
    if len(sets):
        described = []
        for row in sets.itertuples():
            rows = f"{row.rows:,} of {int(row.official_rows):,} rows" if row.partial else f"{row.rows:,} rows"
            described.append(f"{row.label} ({row.task}, {' and '.join(row.metrics)}, {rows})")
        mean = "; adv mean: of AdvGLUE's sets" if sum(sets["label"].str.startswith(ADVERSARIAL)) > 1 else ""
        notes.append(
            f"Out-of-domain sets, with the task whose models are scored on them: {', '.join(described)}{mean}."
        )
    notes += [
        MAJORITY,
        f"{published.SHARED_PAPER} claims that shared generalises better on noisy and out-of-domain data; its abstract "
        "names neither the noise nor the sets.",
    ]
    if again := fine_tuned_again(measured):
        notes.append(f"{again[0].upper()}{again[1:]}.")
    if measured["constant_prediction"].eq(True).any():
        notes.append(f"{DAGGER} One class is predicted throughout by a seed that it is the mean of.")
    if clean["pretrain_seed"].nunique() > 1:
        notes.append("Standard deviations are over pre-training seeds, of the means over fine-tuning seeds.")
    return " ".join(notes)
