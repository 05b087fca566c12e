"""Differences between models over seeds: intervals and a permutation test for each score, and what they support."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import pandas as pd

from symbert.report import captions
from symbert.report.comparisons import (
    FEWEST,
    FINETUNE_SEED,
    NOISE,
    PRETRAIN_SEED,
    RESAMPLES,
    SEED,
    Comparison,
    Interval,
    comparisons,
)
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, heading, two_decimals
from symbert.report.statistics import STAND_IN, stand_in_names
from symbert.settings import ReportSettings

LEVEL = 0.05  # below or at which a p value is called significant
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
PRETRAIN_UNITS = (
    "A unit is a pre-training seed, the same in both models, with the mean of its fine-tuning seeds, since these are "
    "no independent draws of an operator."
)
ONE_PRETRAINING = (
    "With one pre-training seed all this speaks of the noise of fine-tuning only: another pre-training of the same "
    "operators may give other differences."
)
SEVERAL_PRETRAININGS = "The units are whole pre-trainings, so this speaks of the operators, as trained here."


@exhibit(chapter="Statistics of scores", place=1, heading="Differences between operators", reads=("settings", "scores"))
def statistics_table(data: Data) -> Table:
    """Differences between models in percentage points, on the GLUE score, the mean of tasks and each column: of every
    operator to original and, where such models were fine-tuned, to no pre-training and to the majority baseline, with
    intervals and a permutation test. The sentences beneath the table say what the data support.
    """
    final, settings = data.scores, data.settings
    names = stand_in_names(final)
    compared = [replace(one, score=names.get(one.score, one.score)) for one in comparisons(final)]
    rows, readable = [], []
    for one in compared:
        start, intervals = [getattr(one, column) for column in START], (one.t, one.unpaired, one.bootstrap)
        p_values = [decimal_of(value, 4) for value in (one.p_value, one.smallest_p_value, one.holm_p_value)]
        bounds = [bound for interval in intervals for bound in interval or (None, None)]
        rows.append([*start, *bounds, *p_values, one.unit])
        start[START.index("score")] = heading(one.score)
        readable.append([*start, *(interval and _text(interval) for interval in intervals), *p_values])
    subject = f"Differences between models at step {settings.steps:,}, in percentage points"
    caption = " ".join([captions.of_scores(subject, settings, final), *_methods(compared, settings)])
    frame, shown = (
        pd.DataFrame(part, columns=list(columns), dtype=object)
        for part, columns in ((rows, COLUMNS), (readable, READABLE))
    )
    return Table(frame, caption, "tab:statistics", readable=shown, note=" ".join(_note(compared)))


def _text(interval: Interval) -> str:
    """An interval of percentage points: '[−0.30, 1.54]'."""
    return f"[{two_decimals(interval.low)}, {two_decimals(interval.high)}]"


def _methods(compared: list[Comparison], settings: ReportSettings) -> list[str]:
    """What the columns of these comparisons are."""
    if all(one.t is None for one in compared):
        return [DESCRIPTIVE] if compared else []
    units = {FINETUNE_SEED: captions.wording_of(settings).units, PRETRAIN_SEED: PRETRAIN_UNITS}
    return [METHODS, *(units[unit] for unit in dict.fromkeys(one.unit for one in compared))]


def _note(compared: list[Comparison]) -> Iterator[str]:
    """What the differences support, in plain sentences made from their numbers."""
    compared = [one for one in compared if one.n]
    if not compared:
        yield "There is nothing to compare: that takes original and another operator, or models without pre-training."
        return
    headline = [one for one in compared if one.score == compared[0].score]
    with_original = [one for one in headline if one.reference == "original"]
    yield from _resolutions(with_original or headline)
    yield from map(_verdict, with_original)
    yield from _above([one for one in compared if one.reference != "original"])
    yield ONE_PRETRAINING if compared[0].unit == FINETUNE_SEED else SEVERAL_PRETRAININGS


def _resolutions(headline: list[Comparison]) -> Iterator[str]:
    """For each number of units, what a permutation test of so many can show."""
    for n, unit in dict.fromkeys((one.n, one.unit) for one in headline):
        if n < FEWEST:
            units = f"one {unit}" if n == 1 else f"{n} {unit}s"
            yield f"With {units} the differences are descriptive only: so few have neither an interval nor a p value."
            continue
        alike = [one for one in headline if (one.n, one.unit) == (n, unit)]
        family = min(Counter((one.size, one.reference) for one in alike).values())
        smallest = min(one.smallest_p_value for one in alike)
        if smallest > LEVEL:
            limit = f": no difference can be significant at {LEVEL} by it"
        elif family * smallest > LEVEL:
            corrected = f"{family * smallest:.4f} with Holm's correction for {family} differences"
            limit = f", {corrected}: none can be significant at {LEVEL} by it"
        else:
            limit = ""
        yield f"With {n} {unit}s the smallest p that a permutation test can give is {smallest:.4f}{limit}."


def _verdict(one: Comparison) -> str:
    """Which of the three ways to look at a difference tell the two models apart."""
    start = f"{captions.family(one.size)}, {heading(one.score)}:"
    difference = f"{one.model} − {one.reference} ({two_decimals(one.difference)} points)"
    if one.t is None:
        return f"{start} {difference} has no interval."
    intervals = f"is {_placed(one.t)}, the unpaired one {_placed(one.unpaired)}"
    p_values = f"p is {one.p_value:.4f}, {one.holm_p_value:.4f} with Holm's correction"
    ways = {
        "the t interval": not one.t.includes(0),
        "the unpaired interval": not one.unpaired.includes(0),
        "the permutation test": one.holm_p_value <= LEVEL,
    }
    supporting = [name for name, supports in ways.items() if supports]
    if len(supporting) == len(ways):
        support = "All three support a difference."
    elif supporting:
        support = f"A difference is supported by {' and '.join(supporting)} only."
    else:
        support = "No difference is shown."
    return f"{start} the t interval of {difference} {intervals}; {p_values}. {support}"


def _placed(interval: Interval) -> str:
    return f"{_text(interval)} and {'includes' if interval.includes(0) else 'excludes'} 0"


def _above(others: list[Comparison]) -> Iterator[str]:
    """For each size and reference, the scores in which the whole t interval of each model lies above it."""
    for (size, reference), group in groupby(others, key=lambda one: (one.size, one.reference)):
        inferred = [one for one in group if one.t is not None]
        models = [f"{model} in {_scores_above(list(rows))}" for model, rows in groupby(inferred, lambda one: one.model)]
        if models:
            yield f"{captions.family(size)}, whole t interval above {reference}: {'; '.join(models)}."


def _scores_above(rows: list[Comparison]) -> str:
    above = [heading(one.score.removesuffix(STAND_IN)) for one in rows if one.t.low > NOISE]
    return "all scores" if len(above) == len(rows) else ", ".join(above) or "none"
