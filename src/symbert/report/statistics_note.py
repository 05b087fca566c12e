"""What differences between models support, in plain sentences made from their numbers."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from symbert.report.comparisons import FINETUNE_SEED, Comparison
from symbert.report.formats import heading, two_decimals
from symbert.report.inference import FEWEST, NOISE, Interval
from symbert.report.statistics import STAND_IN

LEVEL = 0.05  # below or at which a p value is called significant


def note_of(found: list[Comparison]) -> str:
    """The sentences under the table of all comparisons."""
    if not found:
        return "There is nothing to compare: that takes original and another operator, or models without pre-training."
    headline = [one for one in found if one.score == found[0].score]
    with_original = [one for one in headline if one.reference == "original"]
    others = [one for one in found if one.reference != "original"]
    sentences = [
        *_resolutions(with_original or headline),
        *map(_verdict, with_original),
        *_above(others),
        _reach(found[0]),
    ]
    return " ".join(sentences)


def text_of(interval: Interval) -> str:
    """An interval of percentage points: '[−0.30, 1.54]'."""
    return f"[{two_decimals(interval.low)}, {two_decimals(interval.high)}]"


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
        start = f"With {n} {unit}s the smallest p that a permutation test can give is {smallest:.4f}"
        yield f"{start}{_limit(smallest, family)}"


def _limit(smallest: float, family: int) -> str:
    if smallest > LEVEL:
        return f": no difference can be significant at {LEVEL} by it."
    if family * smallest > LEVEL:
        corrected = f"{family * smallest:.4f} with Holm's correction for {family} differences"
        return f", {corrected}: none can be significant at {LEVEL} by it."
    return "."


def _verdict(one: Comparison) -> str:
    start = f"BERT-{one.size}, {heading(one.score)}:"
    difference = f"{one.model} − {one.reference} ({two_decimals(one.difference)} points)"
    if one.t is None or one.unpaired is None:
        return f"{start} {difference} has no interval."
    intervals = f"is {_placed(one.t)}, the unpaired one {_placed(one.unpaired)}"
    p_values = f"p is {one.p_value:.4f}, {one.holm_p_value:.4f} with Holm's correction"
    return f"{start} the t interval of {difference} {intervals}; {p_values}. {_support(one)}"


def _placed(interval: Interval) -> str:
    return f"{text_of(interval)} and {'includes' if interval.includes(0) else 'excludes'} 0"


def _support(one: Comparison) -> str:
    """Which of the three ways to look at it tell the two models apart."""
    ways = {
        "the t interval": not one.t.includes(0),
        "the unpaired interval": not one.unpaired.includes(0),
        "the permutation test": one.holm_p_value <= LEVEL,
    }
    supporting = [name for name, supports in ways.items() if supports]
    if len(supporting) == len(ways):
        return "All three support a difference."
    return f"A difference is supported by {' and '.join(supporting)} only." if supporting else "No difference is shown."


def _above(others: list[Comparison]) -> Iterator[str]:
    """For each size and reference, the scores in which the whole t interval of each model lies above it."""
    for (size, reference), group in groupby(others, key=lambda one: (one.size, one.reference)):
        inferred = [one for one in group if one.t is not None]
        models = [
            f"{model} in {_scores_above(list(rows))}" for model, rows in groupby(inferred, key=lambda one: one.model)
        ]
        if models:
            yield f"BERT-{size}, whole t interval above {reference}: {'; '.join(models)}."


def _scores_above(rows: list[Comparison]) -> str:
    above = [heading(one.score.removesuffix(STAND_IN)) for one in rows if one.t.low > NOISE]
    return "all scores" if len(above) == len(rows) else ", ".join(above) or "none"


def _reach(one: Comparison) -> str:
    """Of what the differences speak, by their unit."""
    if one.unit == FINETUNE_SEED:
        return (
            "With one pre-training seed all this speaks of the noise of fine-tuning only: another pre-training of the "
            "same operators may give other differences."
        )
    return "The units are whole pre-trainings, so this speaks of the operators, as trained here."
