"""What an experiment gives for a claim, in words, and whether that makes the claim hold.

Each function is a check of the evidence on models of one size. What it compares with is printed in the papers
(`symbert.report.published`); what it allows is a constant here, and stands in words beside the claim.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scipy.special import fdtri

from symbert.report.comparisons import CONFIDENCE, FEWEST, Interval
from symbert.report.evidence import Absent, CollapsedRun, Deviation, Difference, Evidence
from symbert.report.published import ATTENTION_SAVED, COLUMNS, PARAMETERS_SAVED, PLATEAU_EXITS, SCORES
from symbert.report.statistics import Crossing

VARIANTS = ("symmetric", "pairwise")
SMALL_TASKS = ("rte", "mrpc", "stsb", "cola")  # fewer than 10,000 training rows
SCORE_DEVIATIONS = 2  # printed standard deviations between a score and the printed one
EXIT_TOLERANCE = 0.1  # of a printed step, which was read off a plot
STEADY, GROWN = 1.25, 1.5  # exits of base by those of small: at most, at least
HALF = 0.6  # of the steps of original, which counts as half
HALVED = ("pairwise", "original")
LOSS_TOLERANCE = 0.05  # nats: half of the 0.1 that the paper speaks of
TIME_SAVED = 5.0  # percent: half of a tenth


@dataclass(frozen=True)
class Finding:
    """What an experiment gives, and whether the claim holds then; None where seeds or checkpoints leave it open.

    `hangs_on` says what the claim would hold or fail by, where that is too little.
    """

    ours: str
    holds: bool | None
    hangs_on: str | None = None


def listed(form: str, values: Iterable[float | None]) -> str:
    """Numbers in words, each written in the same form; a dash for one that there is not."""
    return "; ".join("–" if value is None else form.format(value).replace("-", "−") for value in values)


def bracket(found: Crossing) -> str:
    """A first crossing and the checkpoints around it: '32,799 (30,000–35,000)'; '> 35,000' where there is none."""
    if found.after is None:
        return f"> {found.before:,}"
    return f"{found.step:,.0f} ({found.before:,}–{found.after:,})" if found.before is not None else f"≤ {found.after:,}"


def check_parameters(evidence: Evidence, size: str) -> Finding:
    """Shares of a model's parameters that the variants save, to the printed digit."""
    found = [round(evidence.saved(size, name), 2) for name in VARIANTS]
    return Finding(listed("{:.2f} %", found), found == [PARAMETERS_SAVED.get((size, name)) for name in VARIANTS])


def check_thirds(evidence: Evidence, size: str) -> Finding:
    """Shares of query, key and value that the variants save: a third, and towards a third with more heads."""
    symmetric = evidence.saved(size, "symmetric", "attention_parameters")
    few, many = (evidence.saved(each, "pairwise", "attention_parameters") for each in ("small", size))
    heads = [evidence.heads(each) for each in ("small", size)]
    ours = f"{symmetric:.2f} %; {few:.2f} % ({heads[0]} heads) to {many:.2f} % ({heads[1]} heads)"
    return Finding(ours, math.isclose(symmetric, 100 / 3) and few < many < symmetric)


def check_attention_parameters(evidence: Evidence, size: str) -> Finding:
    """Share of query, key and value that `shared` saves, cut off after two digits as it is printed."""
    saved = evidence.saved(size, "shared", "attention_parameters")
    return Finding(f"{saved:.4f} %", math.floor(100 * saved) / 100 == ATTENTION_SAVED.get((size, "shared")))


def check_scores(evidence: Evidence, size: str) -> Finding:
    """GLUE scores of `pairwise` and `original`, near the printed ones."""
    names = ("pairwise", "original")
    found = [evidence.glue_score(size, name) for name in names]
    near = [
        (size, name) in SCORES and abs(score - SCORES[size, name][0]) <= SCORE_DEVIATIONS * SCORES[size, name][1]
        for name, score in zip(names, found, strict=True)
    ]
    return Finding(listed("{:.2f}", found), all(near))


def check_higher(evidence: Evidence, size: str, attention: str, columns: tuple[str, ...] = COLUMNS) -> Finding:
    """How much higher than `original` an operator scores in the mean of some columns, by its interval."""
    found = evidence.difference(size, attention, columns)
    return Finding(_text(found), _is_above(found.interval, 0))


def check_lower(evidence: Evidence, size: str, attention: str) -> Finding:
    """As `check_higher`, of an operator that is claimed to score lower."""
    found = evidence.difference(size, attention)
    return Finding(_text(found), _is_below(found.interval, 0))


def check_robustness(evidence: Evidence, size: str, attention: str) -> Finding:
    """How much higher than `original` an operator scores on noisy rows, and on out-of-domain sets."""
    noise, domain = evidence.noise_difference(size, attention), evidence.domain_difference(size, attention)
    above = [_is_above(found.interval, 0) for found in (noise, domain)]
    return Finding(f"{_text(noise)} on noise; {_text(domain)} out of domain", _all(above))


def check_deviations(evidence: Evidence, size: str) -> Finding:
    """Standard deviations of the variants and of `original` over fine-tuning seeds, by intervals of their ratios."""
    *variants, original = (evidence.deviation(size, name) for name in (*VARIANTS, "original"))
    below = [_is_below(ratio_interval(variant, original), 1) for variant in variants]
    return Finding(listed("{:.2f}", (each.value for each in (*variants, original))), _all(below))


def ratio_interval(first: Deviation, second: Deviation) -> Interval | None:
    """95 % interval of the ratio of two standard deviations of normal values, from quantiles of the F distribution.

    None where both are zero, and where one is of fewer than three values.
    """
    if first.value == second.value == 0 or min(first.freedom, second.freedom) + 1 < FEWEST:
        return None
    tail, ratio = (1 - CONFIDENCE) / 2, first.value / second.value if second.value else math.inf
    low, high = (ratio / math.sqrt(fdtri(first.freedom, second.freedom, q)) for q in (1 - tail, tail))
    return Interval(low, high)


def check_half(evidence: Evidence, size: str) -> Finding:
    """Steps to 95 % of the highest final score with `pairwise` and `original`.

    The checkpoints around each crossing bound their ratio, and the whole of these bounds decides. It must decide the
    same without any one run that predicts one class throughout, or the claim hangs on that run.
    """
    found = [evidence.crossing(size, name) for name in HALVED]
    ratio = _ratio(*found)
    others = {run: _ratio_without(evidence, size, run) for run in evidence.collapsed(size)}
    changed = [f"; {_span(other)} without {run}" for run, other in others.items() if other != ratio]
    ours, holds = f"{halves(*found)}{''.join(changed)}", _is_at_most(ratio, HALF)
    hangs = holds is not None and any(_is_at_most(other, HALF) is not holds for other in others.values())
    return Finding(ours, None, "one collapsed run") if hangs else Finding(ours, holds)


def halves(pairwise: Crossing, original: Crossing) -> str:
    """Two crossings and their ratio: '32,799 (30,000–35,000); 65,515 (50,000–75,000); ratio 0.40–0.70'."""
    return f"{bracket(pairwise)}; {bracket(original)}; ratio {_span(_ratio(pairwise, original))}"


def _ratio(first: Crossing, second: Crossing) -> Interval:
    """Between what the ratio of two numbers of steps lies, by the checkpoints before and after each crossing."""
    low = (first.before or 0) / (second.after or math.inf)
    return Interval(low, (first.after or math.inf) / second.before if second.before else math.inf)


def _ratio_without(evidence: Evidence, size: str, run: CollapsedRun) -> Interval:
    """As `_ratio`, without a run; anything where an operator has no other."""
    try:
        return _ratio(*(evidence.crossing(size, name, without=run) for name in HALVED))
    except Absent:
        return Interval(0, math.inf)


def _is_at_most(ratio: Interval, value: float) -> bool | None:
    """Whether a ratio, which is above its lower and below its upper bound, is at most a value; None if it may be."""
    return True if ratio.high <= value else False if ratio.low >= value else None


def _span(ratio: Interval) -> str:
    if math.isinf(ratio.high):
        return f"> {ratio.low:.2f}" if ratio.low else "any"
    return f"{ratio.low:.2f}–{ratio.high:.2f}" if ratio.low else f"< {ratio.high:.2f}"


def check_exits(evidence: Evidence, size: str, attentions: tuple[str, ...]) -> Finding:
    """Steps at which operators leave the initial plateau, near the printed ones."""
    found = [evidence.plateau_exit(size, name) for name in attentions]
    printed = [PLATEAU_EXITS.get((size, name), 0) for name in attentions]
    near = [
        step is not None and abs(step - told) <= EXIT_TOLERANCE * told
        for step, told in zip(found, printed, strict=True)
    ]
    return Finding(listed("{:,.0f}", found), all(near))


def check_growth(evidence: Evidence, size: str) -> Finding:
    """By how much the plateau lengthens from small to base, with `original` and with the variants."""
    if size != "base":
        raise Absent(f"{size} is not what the paper compares with small")
    names = ("original", *VARIANTS)
    exits = [(evidence.plateau_exit(size, name), evidence.plateau_exit("small", name)) for name in names]
    growths = [None if None in pair else pair[0] / pair[1] for pair in exits]
    holds = None not in growths and growths[0] >= GROWN and max(growths[1:]) <= STEADY
    return Finding(listed("{:.1f} ×", growths), holds)


def check_loss(evidence: Evidence, size: str, attention: str, expected: float) -> Finding:
    """How much higher than that of `original` an operator's last validation loss is, near what is expected."""
    found = evidence.loss(size, attention) - evidence.loss(size, "original")
    return Finding(listed("{:.3f}", [found]), abs(found - expected) <= LOSS_TOLERANCE)


def check_step_time(evidence: Evidence, size: str) -> Finding:
    """Percentage of the step time of `original` that `shared` saves."""
    saved = 100 - evidence.step_time(size, "shared")
    return Finding(listed("{:.1f} %", [saved]), saved >= TIME_SAVED)


def _is_above(interval: Interval | None, value: float) -> bool | None:
    """Whether the whole interval is above a value; None when it includes the value, or when there is none."""
    return None if interval is None or interval.includes(value) else interval.low > value


def _is_below(interval: Interval | None, value: float) -> bool | None:
    above = _is_above(interval, value)
    return None if above is None else not above


def _all(answers: list[bool | None]) -> bool | None:
    """Whether all are true: false as soon as one is false, None as long as one is open."""
    return False if False in answers else None if None in answers else True


def _text(found: Difference) -> str:
    """A difference in percentage points and its interval: '0.6 [−0.2, 1.4]'."""
    if found.interval is None:
        return _points(found.mean)
    return f"{_points(found.mean)} [{_points(found.interval.low)}, {_points(found.interval.high)}]"


def _points(value: float) -> str:
    return listed("{:.1f}", [round(value, 1) + 0.0])  # adding zero takes the sign from minus zero
