"""Differences between models over seeds: intervals for each score, and a test of the headline score."""

from collections import Counter
from collections.abc import Iterator

from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.formats import Table, frame_of, heading, two_decimals
from symbert.report.statistics import (
    FEWEST,
    FINETUNE_SEED,
    LEVEL,
    MAJORITY,
    PRETRAIN_SEED,
    SUITE_SCORES,
    Comparison,
    Interval,
    comparisons,
    p_in_words,
    stand_in_names,
)

START = ("size", "model", "reference", "score", "n", "difference")
P_VALUES = ("p", "holm_p", "smallest_p")
DIFFERENCE = "Difference: model less reference"
METHODS = (
    f"{DIFFERENCE}, of the means over n units of each. Welch: 95 % interval that does not use which seeds belong "
    "together. Only the {tested} is tested; the intervals of the other scores describe, and are not corrected for "
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


def statistics_table(data: Collection, suite: str = "glue") -> Table | None:
    """Differences between models in percentage points, in the score of a suite, for GLUE the mean of tasks, and each
    column: of every operator to original and, where such models were fine-tuned, to no pre-training and to the majority
    baseline, with intervals, and a permutation test of the score of the suite.
    """
    final = data.scores_of(suite)
    compared = [] if final is None else comparisons(final)
    if not compared:
        return None
    names, settings = stand_in_names(final), data.settings_of(suite)
    rows, shown = [], []
    for pair in compared:
        row = {name: getattr(pair, name) for name in START} | {"score": names.get(pair.score, pair.score)}
        p_values = {name: getattr(pair, name) for name in P_VALUES}
        low, high = pair.welch or (None, None)
        rows.append({**row, "std": pair.std, "welch_low": low, "welch_high": high, **p_values, "unit": pair.unit})
        in_words = {name: None if p_value is None else p_in_words(p_value) for name, p_value in p_values.items()}
        shown.append({**row, "score": heading(row["score"]), "welch": pair.welch and _text(pair.welch), **in_words})
    inferred = [pair for pair in compared if pair.welch]
    covered = "; intervals and p cover fine-tuning only" if any(pair.unit == FINETUNE_SEED for pair in inferred) else ""
    subject = f"Differences between models at step {settings.steps:,}, in percentage points{covered}"
    headline = heading(names.get(compared[0].score, compared[0].score))
    tested = compared[0].score if compared[0].score in SUITE_SCORES else SUITE_SCORES[0]
    units = [UNITS[unit] for unit in dict.fromkeys(pair.unit for pair in compared)]
    methods = [METHODS.format(tested=heading(tested)), *units] if inferred else [DESCRIPTIVE]
    caption = [captions.of_scores(subject, settings, final), *methods]
    untested = frozenset(at for at, pair in enumerate(compared) if pair.p is None)
    return Table(
        frame_of(rows),
        " ".join(caption),
        f"tab:{'' if suite == 'glue' else f'{suite}_'}statistics",
        readable=frame_of(shown),
        note=" ".join(_note([pair for pair in compared if pair.score == compared[0].score and pair.n], headline)),
        folded=untested,
        folded_as=f"{len(untested)} difference{'' if len(untested) == 1 else 's'} that no test is of",
    )


def _text(interval: Interval) -> str:
    """An interval of percentage points: '[−0.30, 1.54]'."""
    return f"[{two_decimals(interval.low)}, {two_decimals(interval.high)}]"


def _note(differences: list[Comparison], score: str) -> Iterator[str]:
    """What the differences in the headline score support, in plain sentences made from their numbers."""
    compared = [pair for pair in differences if pair.reference == "original"]
    compared = compared or [pair for pair in differences if pair.reference != MAJORITY]
    for n, unit in dict.fromkeys((pair.n, pair.unit) for pair in compared):
        alike = [pair for pair in compared if (pair.n, pair.unit) == (n, unit)]
        if n < FEWEST:
            units = f"one {unit}" if n == 1 else f"{n} {unit}s"
            yield f"With {units} the differences are descriptive only: so few have neither an interval nor a p value."
            continue
        family = min(Counter((pair.size, pair.reference) for pair in alike).values())
        smallest = min(pair.smallest_p for pair in alike)
        of_family = f", {family * smallest:.4f} with Holm's correction for {family} differences" if family > 1 else ""
        limit = f"{of_family}: none can be significant at {LEVEL} by it" if family * smallest > LEVEL else ""
        yield f"With {n} {unit}s of each model the smallest p that the test can give is {smallest:.4f}{limit}."
    for pair in compared:
        if pair.p is not None:
            name = f"{captions.family(pair.size)}, {score}: {pair.model} − {pair.reference}"
            shown = "a difference is shown" if pair.is_significant else "no difference is shown"
            tests = f"p {p_in_words(pair.holm_p)} with Holm's correction, Welch's interval {_text(pair.welch)}"
            yield f"{name} ({two_decimals(pair.difference)} points): {shown} ({tests})."
    if compared:
        yield ONE_PRETRAINING if compared[0].unit == FINETUNE_SEED else SEVERAL_PRETRAININGS
