"""Steps to 95 % of the highest final score, and what checkpoints leave open of the ratio of two operators."""

import math

import pandas as pd

from symbert.report.claims.evidence import MissingEvidence
from symbert.report.comparisons import Interval
from symbert.report.published import COLUMNS
from symbert.report.statistics import Crossing, first_crossing, mean_curves

RUN = ["attention", "pretrain_seed", "step", "finetune_seed"]  # a fine-tuning of a checkpoint
COLLAPSED = (
    "the collapsed run of {attention} at step {step:,} "
    "(pre-training seed {pretrain_seed}, fine-tuning seed {finetune_seed})"
)


def crossing(curve: pd.DataFrame | None, size: str, attention: str) -> Crossing:
    """Where an operator first reaches 95 % of the highest final score among those on the curve of this size.

    One that does not reach it would need more than its last step: `step` is infinite, `after` None.
    """
    means, line = ({}, None) if curve is None else mean_curves(curve)
    if attention not in means:
        raise MissingEvidence(f"no checkpoints of {size}-{attention} were scored")
    steps, scores = list(means[attention].index), list(means[attention])
    return first_crossing(steps, scores, line) or Crossing(int(steps[-1]), None, math.inf)


def ratio_of(first: Crossing, second: Crossing) -> Interval:
    """Between what the ratio of two numbers of steps lies, by the checkpoints before and after each crossing."""
    low = (first.before or 0) / (second.after or math.inf)
    return Interval(low, (first.after or math.inf) / second.before if second.before else math.inf)


def ratios_without_collapsed(curve: pd.DataFrame, size: str, attentions: tuple[str, str]) -> dict[str, Interval]:
    """The ratio of two operators without each run that predicts one class throughout, where that is known.

    A run predicts so in a task that counts for the GLUE score. Without it there is one seed less of its checkpoint or,
    if it is the only one, a checkpoint less; where the operator has no other, the ratio may be anything.
    """
    constant = curve[curve["constant_prediction"].eq(True) & curve["column"].isin(COLUMNS)]
    ratios = {}
    for run in constant[RUN].drop_duplicates().to_dict("records"):
        others = curve[(curve[RUN] != pd.Series(run)).any(axis=1)]
        try:
            ratio = ratio_of(*(crossing(others, size, attention) for attention in attentions))
        except MissingEvidence:
            ratio = Interval(0, math.inf)
        ratios[COLLAPSED.format(**run)] = ratio
    return ratios


def is_at_most(ratio: Interval, value: float) -> bool | None:
    """Whether a ratio, which is above its lower and below its upper bound, is at most a value; None if it may be."""
    return True if ratio.high <= value else False if ratio.low >= value else None


def in_steps(first: Crossing, second: Crossing) -> str:
    """Two crossings and their ratio: '32,799 (30,000–35,000); 65,515 (50,000–75,000); ratio 0.40–0.70'."""
    return f"{_bracket(first)}; {_bracket(second)}; ratio {span_of(ratio_of(first, second))}"


def _bracket(crossing: Crossing) -> str:
    if crossing.after is None:
        return f"> {crossing.before:,}"
    if crossing.before is None:
        return f"≤ {crossing.after:,}"
    return f"{crossing.step:,.0f} ({crossing.before:,}–{crossing.after:,})"


def span_of(ratio: Interval) -> str:
    """The bounds of a ratio in words: '0.40–0.70'."""
    if math.isinf(ratio.high):
        return f"> {ratio.low:.2f}" if ratio.low else "any"
    return f"{ratio.low:.2f}–{ratio.high:.2f}" if ratio.low else f"< {ratio.high:.2f}"
