"""Differences between models over seeds: intervals and a permutation test for each score, and what they support."""

from dataclasses import replace
from decimal import Decimal

import pandas as pd

from symbert.report import captions
from symbert.report.comparisons import FINETUNE_SEED, PRETRAIN_SEED, Comparison, comparisons
from symbert.report.formats import Table, decimal_of, heading
from symbert.report.inference import FEWEST, RESAMPLES, SEED, Interval
from symbert.report.statistics import final_scores, stand_in_names
from symbert.report.statistics_note import note_of, text_of
from symbert.settings import ReportSettings

START = ("size", "model", "reference", "score", "n", "difference", "std")
BOUNDS = ("t_low", "t_high", "unpaired_low", "unpaired_high", "bootstrap_low", "bootstrap_high")
COLUMNS = (*START, *BOUNDS, "p_value", "smallest_p_value", "holm_p_value", "unit")
READABLE = (*START, "t interval", "unpaired", "bootstrap", "p", "smallest p", "Holm p")
DIFFERENCE = "Difference: model less reference"
METHODS = (
    f"{DIFFERENCE}, mean over n units; std is that of the differences. t interval: 95 % interval of "
    "the mean of paired differences. Unpaired: Welch's 95 % interval, which does not use which seeds belong together. "
    f"Bootstrap: 95 % percentile interval of {2 * RESAMPLES:,} resampled means (random seed {SEED}), too narrow for "
    "few units: for 5 it has about 63 % of the width of the t interval. p: two-sided permutation test that flips signs "
    "of paired differences; smallest p is the least that differences of these sizes can give, whatever their signs. "
    "Holm p: p with Holm's correction among the differences of one size from one reference, of which GLUE scores are a "
    "family, means of tasks another, and all single columns a third. Intervals are not corrected for their number."
)
DESCRIPTIVE = (
    f"{DIFFERENCE}, mean over n units; std is that of the differences. Descriptive only: fewer than {FEWEST} units "
    "have neither intervals nor p values."
)
FINETUNE_UNITS = (
    "A unit is a fine-tuning seed, the same in both models: it gives both the same order of rows and, where it decides "
    "them, the same classifier and dropout. Where it does not, which seeds are paired is arbitrary, and the unpaired "
    "interval is the one to read."
)
IMPORTED_UNITS = (
    "A unit is a fine-tuning seed, of the same number in both models. Whether that gives both the same order of rows, "
    "the imported files do not say: if not, which seeds are paired is arbitrary, and the unpaired interval is the one "
    "to read."
)
PRETRAIN_UNITS = (
    "A unit is a pre-training seed, the same in both models, with the mean of its fine-tuning seeds, since these are "
    "no independent draws of an operator."
)


def statistics_table(scores: pd.DataFrame, settings: ReportSettings) -> Table:
    """A row per comparison and score, from a table of `symbert.report.scores`, at the final step.

    MissingInputError when the scores do not reach the experiment's last step.
    """
    final = final_scores(scores, settings.steps)
    names = stand_in_names(final)
    found = [replace(one, score=names.get(one.score, one.score)) for one in comparisons(final)]
    rows = pd.DataFrame([_row(one) for one in found], columns=list(COLUMNS), dtype=object)
    readable = pd.DataFrame([_readable_row(one) for one in found], columns=list(READABLE), dtype=object)
    pretrain_seeds = final["pretrain_seed"].nunique()
    notes = [
        f"Differences between models at step {settings.steps:,}, in percentage points.",
        f"{captions.experiment_of(settings)}.",
        captions.pretraining_of(settings, pretrain_seeds),
        captions.finetuning_of(settings, final),
        *_methods(found, settings),
    ]
    return Table(rows, " ".join(notes), "tab:statistics", readable=readable, note=note_of(found))


def _methods(found: list[Comparison], settings: ReportSettings) -> list[str]:
    """What the columns are, of the comparisons that there are."""
    if not found:
        return []
    finetune_units = IMPORTED_UNITS if captions.is_imported(settings) else FINETUNE_UNITS
    units = {FINETUNE_SEED: finetune_units, PRETRAIN_SEED: PRETRAIN_UNITS}
    inferred = any(one.t is not None for one in found)
    return [METHODS, *(units[unit] for unit in dict.fromkeys(one.unit for one in found))] if inferred else [DESCRIPTIVE]


def _row(one: Comparison) -> tuple:
    bounds = (bound for interval in (one.t, one.unpaired, one.bootstrap) for bound in _bounds(interval))
    return *_start(one, one.score), *bounds, *_p_values(one), one.unit


def _readable_row(one: Comparison) -> tuple:
    intervals = (interval and text_of(interval) for interval in (one.t, one.unpaired, one.bootstrap))
    return *_start(one, heading(one.score)), *intervals, *_p_values(one)


def _start(one: Comparison, score: str) -> tuple:
    return one.size, one.model, one.reference, score, one.n, one.difference, one.std


def _bounds(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)


def _p_values(one: Comparison) -> tuple[Decimal | None, ...]:
    values = (one.p_value, one.smallest_p_value, one.holm_p_value)
    return tuple(value if value is None else decimal_of(value, 4) for value in values)
