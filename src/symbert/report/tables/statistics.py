"""Differences between models over seeds: intervals for each score, tests of the GLUE score, and what they support."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.formats import Table, heading, two_decimals
from symbert.report.statistics import (
    FEWEST,
    FINETUNE_SEED,
    LEVEL,
    MAJORITY,
    NOISE,
    PRETRAIN_SEED,
    STAND_IN,
    SUITE_SCORES,
    Comparison,
    Interval,
    comparisons,
    p_in_words,
    stand_in_names,
)

START = ("size", "model", "reference", "score", "n", "difference")
P_VALUES = ("p", "holm_p", "smallest_p")
COLUMNS = (*START, "std", "welch_low", "welch_high", *P_VALUES, "unit")
READABLE = (*START, "welch", *P_VALUES)
DIFFERENCE = "Difference: model less reference"
METHODS = (
    f"{DIFFERENCE}, of the means over n units of each. Welch: 95 % interval that does not use which seeds belong "
    "together. Only the GLUE score is tested; the intervals of the other scores describe, and are not corrected for "
    "their number. p: two-sided permutation test over all splits of the units of both models; smallest p is the least "
    "that so many units can give. Holm p: with Holm's correction among the differences of one size from one reference."
)
DESCRIPTIVE = (
    f"{DIFFERENCE}, of the means over n units of each. Descriptive only: fewer than {FEWEST} units have neither "
    "intervals nor p values."
)
UNITS = {
    FINETUNE_SEED: "A unit is a fine-tuning seed.",
    PRETRAIN_SEED: "A unit is a pre-training seed, the same in both models, with the mean of its fine-tuning seeds, "
    "since these are no independent draws of an operator.",
}
ONE_PRETRAINING = (
    "With one pre-training seed all this speaks of the noise of fine-tuning only: another pre-training of the same "
    "operators may give other differences."
)
SEVERAL_PRETRAININGS = "The units are whole pre-trainings, so this speaks of the operators, as trained here."


def statistics_table(data: Collection) -> Table | None:
    """Differences between models in percentage points, on the GLUE score, the mean of tasks and each column: of every
    operator to original and, where such models were fine-tuned, to no pre-training and to the majority baseline, with
    intervals, and a permutation test of the GLUE score. The sentences beneath the table say what the data support.
    """
    if data.scores is None:
        return None
    return differences(data.scores, data.settings, "tab:statistics")


def suite_statistics_table(data: Collection, suite: str) -> Table | None:
    """Differences between models in percentage points on the suite, its mean and each task, with intervals, and a
    permutation test of the mean, which is a test of its own beside that of the GLUE score.
    """
    scores = data.scores_of(suite)
    return None if scores is None else differences(scores, data.settings_of(suite), f"tab:{suite}_statistics")


def differences(final: pd.DataFrame, settings: ReportSettings, label: str) -> Table:
    """The table of the differences between models in the scores of a suite."""
    names = stand_in_names(final)
    compared = [replace(one, score=names.get(one.score, one.score)) for one in comparisons(final)]
    rows, readable = [], []
    for one in compared:
        start = [getattr(one, column) for column in START]
        p_values = [getattr(one, name) for name in P_VALUES]
        rows.append([*start, one.std, *(one.welch or (None, None)), *p_values, one.unit])
        start[START.index("score")] = heading(one.score)
        in_words = [None if value is None else p_in_words(value) for value in p_values]
        readable.append([*start, one.welch and _text(one.welch), *in_words])
    covered = "; intervals and p cover fine-tuning only" if _is_of_one_pretraining(compared) else ""
    subject = f"Differences between models at step {settings.steps:,}, in percentage points{covered}"
    caption = " ".join([captions.of_scores(subject, settings, final), *_methods(compared)])
    frame, shown = (
        pd.DataFrame(part, columns=list(columns), dtype=object)
        for part, columns in ((rows, COLUMNS), (readable, READABLE))
    )
    untested = frozenset(at for at, one in enumerate(compared) if one.p is None)
    return Table(
        *(frame, caption, label),
        readable=shown,
        note=" ".join(_note(compared)),
        folded=untested,
        folded_as=f"{len(untested)} difference{'' if len(untested) == 1 else 's'} that no test is of",
    )


def _text(interval: Interval) -> str:
    """An interval of percentage points: '[−0.30, 1.54]'."""
    return f"[{two_decimals(interval.low)}, {two_decimals(interval.high)}]"


def _is_of_one_pretraining(compared: list[Comparison]) -> bool:
    """Whether an interval is over fine-tuning seeds."""
    return any(one.unit == FINETUNE_SEED and one.welch for one in compared)


def _methods(compared: list[Comparison]) -> list[str]:
    """What the columns of these comparisons are."""
    if all(one.welch is None for one in compared):
        return [DESCRIPTIVE] if compared else []
    tested = compared[0].score.removesuffix(STAND_IN)
    methods = METHODS.replace("GLUE score", heading(tested)) if tested in SUITE_SCORES else METHODS
    return [methods, *(UNITS[unit] for unit in dict.fromkeys(one.unit for one in compared))]


def _note(compared: list[Comparison]) -> Iterator[str]:
    """What the differences support, in plain sentences made from their numbers."""
    headline = compared[0].score if compared else ""
    compared = [one for one in compared if one.n]
    if not compared:
        yield "There is nothing to compare: that takes original and another operator, or models without pre-training."
        return
    tested = [one for one in compared if one.score == headline and one.reference != MAJORITY]
    with_original = [one for one in tested if one.reference == "original"]
    yield from _resolutions(with_original or tested)
    yield from map(_verdict, with_original)
    yield from _above([one for one in compared if one.reference != "original"])
    yield ONE_PRETRAINING if compared[0].unit == FINETUNE_SEED else SEVERAL_PRETRAININGS


def _resolutions(tested: list[Comparison]) -> Iterator[str]:
    """For each number of units, what the test of so many can show."""
    for n, unit in dict.fromkeys((one.n, one.unit) for one in tested):
        if n < FEWEST:
            units = f"one {unit}" if n == 1 else f"{n} {unit}s"
            yield f"With {units} the differences are descriptive only: so few have neither an interval nor a p value."
            continue
        alike = [one for one in tested if (one.n, one.unit) == (n, unit)]
        family = min(Counter((one.size, one.reference) for one in alike).values())
        smallest = min(one.smallest_p for one in alike)
        if smallest > LEVEL:
            limit = f": no difference can be significant at {LEVEL} by it"
        elif family * smallest > LEVEL:
            corrected = f"{family * smallest:.4f} with Holm's correction for {family} differences"
            limit = f", {corrected}: none can be significant at {LEVEL} by it"
        else:
            limit = ""
        yield f"With {n} {unit}s of each model the smallest p that the test can give is {smallest:.4f}{limit}."


def _verdict(one: Comparison) -> str:
    """What the test says of a difference, and whether the interval says the same."""
    difference = f"{one.model} − {one.reference} ({two_decimals(one.difference)} points)"
    start = f"{captions.family(one.size)}, {heading(one.score)}: {difference}"
    if one.p is None:
        return f"{start} has no interval."
    p_value, corrected = p_in_words(one.p), p_in_words(one.holm_p)
    tests = f"p {p_value}, {corrected} with Holm's correction, Welch's interval {_text(one.welch)}"
    verdict = "a difference is shown" if one.is_significant else "no difference is shown"
    verb = "includes" if one.is_significant else "excludes"
    but = f", though Welch's interval {verb} 0" if one.welch.includes(0) == one.is_significant else ""
    return f"{start}: {verdict} ({tests}){but}."


def _above(others: list[Comparison]) -> Iterator[str]:
    """For each size and reference, the scores in which the whole Welch interval of each model lies above it."""
    for (size, reference), group in groupby(others, key=lambda one: (one.size, one.reference)):
        inferred = [one for one in group if one.welch is not None]
        models = [f"{model} in {_scores_above(list(rows))}" for model, rows in groupby(inferred, lambda one: one.model)]
        if models:
            yield f"{captions.family(size)}, whole Welch interval above {reference}: {'; '.join(models)}."


def _scores_above(rows: list[Comparison]) -> str:
    above = [heading(one.score.removesuffix(STAND_IN)) for one in rows if one.welch.low > NOISE]
    return "all scores" if len(above) == len(rows) else ", ".join(above) or "none"
