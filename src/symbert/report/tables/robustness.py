"""Table `robustness`: clean scores, what noise leaves of them, and scores on out-of-domain sets."""

from typing import Any

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.report import captions, published, robustness
from symbert.report.collect import Collection
from symbert.report.formats import DAGGER, Table, best_of, table_of
from symbert.report.statistics import is_inferred_from, spread

DROP, LOST = "drop", "lost_percent"  # how the columns end in which less is better
LEAD = 1.0  # percentage points above the majority baseline: with less, a dash stands for what is lost
LETTERS = {
    "swap": "swapped with a neighbour",
    "drop": "dropped",
    "insert": "followed by another",
    "keyboard": "hit one key beside",
    "mixed": "swapped, dropped, followed by another or hit one key beside",
}
CLAIM = (
    f"{published.SHARED_PAPER} claims that shared generalises better on noisy and out-of-domain data; its abstract "
    "names neither the noise nor the sets."
)


def robustness_table(data: Collection) -> Table | None:
    """Robustness, which the papers' tables lack and arXiv 2412.00359 claims: scores of the fine-tuned models on
    evaluation rows with changed letters, and on out-of-domain sets where their files were given. Lost is the drop at
    the largest share in percent of the clean score's lead over the majority baseline.

    A row per model, its mean over seeds, and one of the standard deviations.
    """
    if data.robustness is None:
        return None
    measured = data.robustness
    baseline = _scores(robustness.baseline_scores(measured)).iloc[0]
    scores = _with_drops(_scores(measured), baseline, robustness.noise_levels(measured))
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
    return table_of(
        rows,
        _caption(data.trained, measured, data.settings),
        "tab:robustness",
        names=_headings(measured, list(scores)),
        best=best_of(rows, [*sizes, None], scores, lowest=less_is_better) if is_inferred_from(data.trained) else (),
        marked=marked,
    )


def _scores(measured: pd.DataFrame) -> pd.DataFrame:
    """Noise and out-of-domain sets side by side, a row per model and seed."""
    parts = [robustness.noise_scores(measured), robustness.domain_scores(measured)]
    return pd.concat([part for part in parts if len(part)], axis=1)


def _with_drops(scores: pd.DataFrame, baseline: pd.Series, levels: dict[str, list[float]]) -> pd.DataFrame:
    """Add what the largest share of each noise takes: in points, and of the clean score's lead over the baseline."""
    for kind, shares in levels.items():
        most = robustness.level_name(kind, shares[-1])
        drop, lead = scores["clean"] - scores[most], scores["clean"] - baseline["clean"]
        place = scores.columns.get_loc(most) + 1
        scores.insert(place, f"{kind}_{DROP}", drop)
        scores.insert(place + 1, f"{kind}_{LOST}", (100 * drop / lead).where(lead >= LEAD))
    return scores


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


def _headings(measured: pd.DataFrame, columns: list[str]) -> dict[str, str]:
    """New headings for the scores of stand-in tasks; out-of-domain sets are what they are called."""
    noise, sets = (measured[measured["kind"] == kind] for kind in (robustness.NOISE, robustness.DOMAIN))
    others = {*sets["label"], robustness.ADVERSARIAL_MEAN}
    stand_ins = columns if noise["stand_in"].any() else []
    return {column: f"{column} (stand-in)" for column in stand_ins if column not in others}


def _caption(clean: pd.DataFrame, measured: pd.DataFrame, settings: ReportSettings) -> str:
    tested = {robustness.NOISE: "noisy evaluation rows", robustness.DOMAIN: "out-of-domain sets"}
    kinds = " and on ".join(words for kind, words in tested.items() if kind in set(measured["kind"]))
    notes = [
        captions.of_scores(f"Robustness at step {settings.steps:,}: scores on {kinds}", settings, clean),
        *(_noise_notes(measured) if robustness.noise_levels(measured) else []),
        *(_domain_notes(measured) if robustness.DOMAIN in set(measured["kind"]) else []),
        "Majority baseline: the most frequent training class, or mean grade, for every row.",
        CLAIM,
    ]
    if again := robustness.fine_tuned_again(measured):
        notes.append(f"{again[0].upper()}{again[1:]}.")
    if measured["constant_prediction"].eq(True).any():
        notes.append(f"{DAGGER} One class is predicted throughout by a seed that it is the mean of.")
    if clean["pretrain_seed"].nunique() > 1:
        notes.append("Standard deviations are over pre-training seeds, of the means over fine-tuning seeds.")
    return " ".join(notes)


def _noise_notes(measured: pd.DataFrame) -> list[str]:
    levels = robustness.noise_levels(measured)
    columns = list(dict.fromkeys(measured.loc[measured["kind"] == robustness.NOISE, "column"]))
    shares = ", ".join(f"{100 * share:g}" for share in sorted(set().union(*levels.values())))
    return [
        f"Clean: mean of the columns that have noise ({', '.join(columns)}); beside it the same with {shares} % of the "
        f"letters {'; '.join(f'{LETTERS.get(kind, kind)} ({kind})' for kind in levels)}.",
        "Drop: points that the largest share takes; lost: as much in percent of the clean score's lead over the "
        f"majority baseline, a dash where a seed leads by less than {LEAD:g} point.",
    ]


def _domain_notes(measured: pd.DataFrame) -> list[str]:
    sets = measured[measured["kind"] == robustness.DOMAIN].drop_duplicates("label")
    described = []
    for row in sets.itertuples():
        rows = f"{row.rows:,} of {int(row.official_rows):,} rows" if row.partial else f"{row.rows:,} rows"
        described.append(f"{row.label} ({row.task}, {' and '.join(row.metrics)}, {rows})")
    mean = "; adv mean: of AdvGLUE's sets" if sum(sets["label"].str.startswith(robustness.ADVERSARIAL)) > 1 else ""
    return [f"Out-of-domain sets, with the task whose models are scored on them: {', '.join(described)}{mean}."]
