"""The claims of the abstract of arXiv 2412.00359 about `shared`, tested by the protocol of the other paper."""

import math

from symbert.report.claims import evidence
from symbert.report.claims.evidence import Finding, MissingEvidence, are_all, claim, in_points, is_higher, listed
from symbert.report.data import Data
from symbert.report.inference import FEWEST, paired_interval
from symbert.report.published import ATTENTION_SAVED, SHARED_PAPER
from symbert.report.robustness import ADVERSARIAL_MEAN, domain_scores, noise_scores
from symbert.report.statistics import spread

SMALL_TASKS = ("rte", "mrpc", "stsb", "cola")  # fewer than 10,000 training rows
TIME_SAVED = 5.0  # percent: half of a tenth


@claim(
    "66.53 % fewer parameters in query, key and value",
    "base: shared",
    SHARED_PAPER,
    paper=listed("{:.2f} %", [ATTENTION_SAVED["base", "shared"]]),
    rule="the printed digits, cut off",
)
def check_attention_parameters(data: Data, size: str) -> Finding:
    """Share of query, key and value that `shared` saves, cut off after two digits as it is printed."""
    share = evidence.saved(data, size, "shared", "attention_parameters")
    return Finding(f"{share:.4f} %", math.floor(100 * share) / 100 == ATTENTION_SAVED.get((size, "shared")))


@claim(
    "About a tenth less training time",
    "base: shared",
    SHARED_PAPER,
    paper="10 %",
    rule=f"95 % interval over rounds of steps in turns above {TIME_SAVED:.0f} % of a step",
    unless=evidence.other_training,
)
def check_step_time(data: Data, size: str) -> Finding:
    """Percentage of the step time of `original` that `shared` saves, measured in turns on one device."""
    speeds = data.speeds[data.speeds["size"] == size].set_index("attention")
    for name in ("shared", "original"):
        if name not in speeds.index:
            raise MissingEvidence(f"no step times of {size}-{name}")
    saved = 100 * (1 - speeds.at["shared", "ratios"])
    mean = listed("{:.1f} %", [spread(saved.tolist()).mean])
    if len(saved) < FEWEST:
        return Finding(mean, None)
    interval = paired_interval(saved)
    holds = None if interval.includes(TIME_SAVED) else interval.low > TIME_SAVED
    return Finding(f"{mean} [{listed('{:.1f}', [interval.low])}, {listed('{:.1f}', [interval.high])}]", holds)


@claim(
    "Higher accuracy on small tasks of GLUE",
    "base: shared − original",
    SHARED_PAPER,
    paper="up to 5.81 %",
    rule=f"{evidence.HIGHER}, in the mean of {', '.join(SMALL_TASKS)}",
    unless=evidence.other_scores,
)
def check_small_tasks(data: Data, size: str) -> Finding:
    """How much higher than `original` it scores in the mean of small tasks, by the primary test."""
    lead = evidence.lead(data, size, "shared", SMALL_TASKS)
    return Finding(in_points(lead), is_higher(lead))


@claim(
    "Better generalisation on noisy and out-of-domain data",
    "base: shared − original",
    SHARED_PAPER,
    paper="no number in its abstract",
    rule=f"{evidence.HIGHER}, on both",
    unless=evidence.other_robustness,
)
def check_robustness(data: Data, size: str) -> Finding:
    """How much higher than `original` it scores in the means over all kinds and shares of noise, and over all sets."""
    if data.robustness is None:
        raise MissingEvidence("robustness was not measured")
    levels, sets = noise_scores(data.robustness), domain_scores(data.robustness)
    if levels.empty:
        raise MissingEvidence("no noise was measured")
    noise = evidence.lead_in(levels.drop(columns="clean").mean(axis=1), size, "shared")
    if sets.empty:
        raise MissingEvidence("no out-of-domain set was measured")
    domain = evidence.lead_in(sets.drop(columns=ADVERSARIAL_MEAN, errors="ignore").mean(axis=1), size, "shared")
    higher = [is_higher(lead) for lead in (noise, domain)]
    return Finding(f"{in_points(noise)} on noise; {in_points(domain)} out of domain", are_all(higher))
