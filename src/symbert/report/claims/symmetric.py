"""The claims of arXiv 2406.06366, by section.

Each function checks what models of one size give for a claim, or for several; what the claim says stands above it.
"""

import math
from typing import NamedTuple

import pandas as pd

from symbert.report import published
from symbert.report.claims import evidence
from symbert.report.claims.evidence import Finding, MissingEvidence, claim, in_points, listed
from symbert.report.data import Data
from symbert.report.inference import CONFIDENCE, FEWEST, Interval
from symbert.report.statistics import Crossing, spread

VARIANTS = ("symmetric", "pairwise")
ALL = ("original", *VARIANTS)
SCORE_DEVIATIONS = 2  # printed standard deviations between a score and the printed one
EXIT_TOLERANCE = 0.1  # of a printed step, which was read off a plot
STEADY, GROWN = 1.25, 1.5  # exits of base by those of small: at most, at least
HALF = 0.6  # of the steps of original, which counts as half
HALVED = ("pairwise", "original")
LOSS_TOLERANCE = 0.05  # nats: half of the 0.1 that the paper speaks of


def _lead(printed: dict, size: str, attention: str) -> str:
    """The GLUE score of an operator less that of `original`, as it was printed."""
    return evidence.points(printed[size, attention][0] - printed[size, "original"][0])


def _deviations(printed: dict) -> str:
    """Standard deviations over fine-tuning seeds, as they were printed."""
    return listed("{:.2f}", (printed["base", name][1] for name in (*VARIANTS, "original")))


def _raw_loss(attention: str) -> str:
    """The last validation loss of an operator of base less that of `original`, in the authors' files."""
    losses = published.RAW_FINAL_LOSSES
    return listed("{:.3f}", [losses["base", attention] - losses["base", "original"]])


@claim(
    "About 6 % fewer parameters",
    "base: symmetric; pairwise",
    "abstract, §2.4, table 2",
    paper=listed("{:.2f} %", (published.PARAMETERS_SAVED["base", name] for name in VARIANTS)),
    rule="the printed digits",
)
@claim(
    "About 3 % fewer parameters",
    "small: symmetric; pairwise",
    "§2.4, table 2",
    paper=listed("{:.2f} %", (published.PARAMETERS_SAVED["small", name] for name in VARIANTS)),
    rule="the printed digits",
)
def check_parameters(data: Data, size: str) -> Finding:
    """Shares of a model's parameters that the variants save, to the printed digit."""
    shares = [round(evidence.saved(data, size, name), 2) for name in VARIANTS]
    printed = [published.PARAMETERS_SAVED.get((size, name)) for name in VARIANTS]
    return Finding(listed("{:.2f} %", shares), shares == printed)


@claim(
    "A third fewer parameters in query, key and value; with pairwise, towards a third as heads are added",
    "base: symmetric; pairwise",
    "§2.4, §7",
    paper="1/3; towards 1/3",
    rule="symmetric saves a third; pairwise less, and more of it in base than in small",
)
def check_thirds(data: Data, size: str) -> Finding:
    """Shares of query, key and value that the variants save: a third, and towards a third with more heads."""
    symmetric = evidence.saved(data, size, "symmetric", "attention_parameters")
    few, many = (evidence.saved(data, each, "pairwise", "attention_parameters") for each in ("small", size))
    heads = [data.parameters[each]["shape"]["num_attention_heads"] for each in ("small", size)]
    ours = f"{symmetric:.2f} %; {few:.2f} % ({heads[0]} heads) to {many:.2f} % ({heads[1]} heads)"
    return Finding(ours, math.isclose(symmetric, 100 / 3) and few < many < symmetric)


@claim(
    "A GLUE score of 79.36 against 78.74",
    "base: pairwise; original",
    "abstract, §5.2, table 3",
    paper=listed("{:.2f}", (published.SCORES["base", name][0] for name in HALVED)),
    authors=listed("{:.2f}", (published.RAW_SCORES["base", name][0] for name in HALVED)),
    rule="both within two printed standard deviations",
    unless=evidence.other_scores,
)
def check_scores(data: Data, size: str) -> Finding:
    """Mean GLUE scores over all seeds, near the printed ones."""
    scores = {name: spread(evidence.final_scores_of(data, size, name)).mean for name in HALVED}
    printed = {name: published.SCORES.get((size, name), (math.nan, math.nan)) for name in HALVED}
    near = [abs(scores[name] - printed[name][0]) <= SCORE_DEVIATIONS * printed[name][1] for name in HALVED]
    return Finding(listed("{:.2f}", scores.values()), all(near))


@claim(
    "A higher GLUE score",
    "base: pairwise − original",
    "§4.2, table 3",
    paper=_lead(published.SCORES, "base", "pairwise"),
    authors=_lead(published.RAW_SCORES, "base", "pairwise"),
    rule=evidence.HIGHER,
    unless=evidence.other_scores,
)
@claim(
    "A higher GLUE score",
    "small: pairwise − original",
    "§4.2, table 3",
    paper=_lead(published.SCORES, "small", "pairwise"),
    authors=_lead(published.RAW_SCORES, "small", "pairwise"),
    rule=evidence.HIGHER,
    unless=evidence.other_scores,
)
def check_higher(data: Data, size: str) -> Finding:
    """How much higher than `original` pairwise scores, by the primary test."""
    lead = evidence.lead(data, size, "pairwise")
    return Finding(in_points(lead), evidence.is_higher(lead))


@claim(
    "A lower GLUE score",
    "base: symmetric − original",
    "§4.2, table 3",
    paper=_lead(published.SCORES, "base", "symmetric"),
    authors=_lead(published.RAW_SCORES, "base", "symmetric"),
    rule=evidence.LOWER,
    unless=evidence.other_scores,
)
@claim(
    "A lower GLUE score",
    "small: symmetric − original",
    "§4.2, table 3",
    paper=_lead(published.SCORES, "small", "symmetric"),
    authors=_lead(published.RAW_SCORES, "small", "symmetric"),
    rule=evidence.LOWER,
    unless=evidence.other_scores,
)
def check_lower(data: Data, size: str) -> Finding:
    """As `check_higher`, of symmetric, which is claimed to score lower."""
    lead = evidence.lead(data, size, "symmetric")
    return Finding(in_points(lead), evidence.is_lower(lead))


@claim(
    "A lower standard deviation over fine-tuning seeds",
    "base: symmetric; pairwise; original",
    "§4.2, §5.2",
    paper=_deviations(published.SCORES),
    authors=_deviations(published.RAW_SCORES),
    rule="95 % intervals of both ratios to original below 1",
    unless=evidence.other_scores,
)
def check_deviations(data: Data, size: str) -> Finding:
    """Standard deviations of the variants and of `original` over fine-tuning seeds, by intervals of their ratios."""
    *variants, original = (deviation(evidence.final_scores_of(data, size, name)) for name in (*VARIANTS, "original"))
    ratios = [ratio_interval(variant, original) for variant in variants]
    below = [None if ratio is None or ratio.includes(1) else ratio.high < 1 for ratio in ratios]
    return Finding(listed("{:.2f}", (each.value for each in (*variants, original))), evidence.are_all(below))


class Deviation(NamedTuple):
    """Sample standard deviation over fine-tuning seeds, pooled where there are several pre-trained models."""

    value: float  # percentage points
    freedom: int  # degrees of freedom


def deviation(scores: pd.Series) -> Deviation:
    """Spread of the GLUE score of one operator over fine-tuning seeds."""
    seeds = scores.groupby(level="pretrain_seed", sort=False)
    freedom = seeds.count() - 1
    if not freedom.sum():
        raise MissingEvidence("one fine-tuning seed has no spread")
    return Deviation(math.sqrt((seeds.var() * freedom).sum() / freedom.sum()), int(freedom.sum()))


def ratio_interval(first: Deviation, second: Deviation) -> Interval | None:
    """95 % interval of the ratio of two standard deviations of normal values, from quantiles of the F distribution.

    None where both are zero, and where one is of fewer than three values.
    """
    if first.value == second.value == 0 or min(first.freedom, second.freedom) + 1 < FEWEST:
        return None
    from scipy.special import fdtri  # slow to load, and with few seeds nothing needs it

    tail, ratio = (1 - CONFIDENCE) / 2, first.value / second.value if second.value else math.inf
    low, high = (ratio / math.sqrt(fdtri(first.freedom, second.freedom, q)) for q in (1 - tail, tail))
    return Interval(low, high)


@claim(
    "95 % of the final score after half the pre-training steps",
    "base: pairwise; original",
    "abstract, §4.3, figure 3",
    paper="30,000; 65,000",
    authors=evidence.in_steps(*(Crossing(*published.RAW_CROSSINGS["base", name]) for name in HALVED)),
    rule=f"pairwise needs at most {100 * HALF:.0f} % of the steps of original, wherever between its checkpoints each "
    "gets there",
    unless=evidence.other_scores,
)
def check_half(data: Data, size: str) -> Finding:
    """Steps to 95 % of the highest final score with `pairwise` and `original`.

    The checkpoints around each crossing bound their ratio, and the whole of these bounds decides. It must decide the
    same without any one run that predicts one class throughout, or the claim hangs on that run.
    """
    curve = None if data.curve is None else data.curve[data.curve["size"] == size]
    crossings = [evidence.crossing(curve, size, name) for name in HALVED]
    ratio, others = evidence.ratio_of(*crossings), evidence.ratios_without_collapsed(curve, size, HALVED)
    changed = [f"; {evidence.span_of(other)} without {run}" for run, other in others.items() if other != ratio]
    ours, holds = f"{evidence.in_steps(*crossings)}{''.join(changed)}", evidence.is_at_most(ratio, HALF)
    hangs = holds is not None and any(evidence.is_at_most(other, HALF) is not holds for other in others.values())
    return Finding(ours, None, "one collapsed run") if hangs else Finding(ours, holds)


@claim(
    "An initial plateau of the loss until step 25,000, 13,500 and 12,000",
    "base: original; symmetric; pairwise",
    "§4.1, figure 2b",
    paper=listed("{:,}", (published.PLATEAU_EXITS["base", name] for name in ALL)),
    authors=listed("{:,}", (published.RAW_PLATEAU_EXITS["base", name] for name in ALL)),
    rule=f"each within {100 * EXIT_TOLERANCE:.0f} %",
    unless=evidence.other_training,
    arguments={"attentions": ALL},
)
@claim(
    "An initial plateau of the loss until step 12,000",
    "small: original",
    "§4.1, figure 2a",
    paper=listed("{:,}", [published.PLATEAU_EXITS["small", "original"]]),
    authors=listed("{:,}", [published.RAW_PLATEAU_EXITS["small", "original"]]),
    rule=f"within {100 * EXIT_TOLERANCE:.0f} %",
    unless=evidence.other_training,
    arguments={"attentions": ("original",)},
)
def check_exits(data: Data, size: str, attentions: tuple[str, ...]) -> Finding:
    """Steps at which operators leave the initial plateau, near the printed ones."""
    exits = {name: evidence.plateau_exit(data, size, name) for name in attentions}
    printed = {name: published.PLATEAU_EXITS.get((size, name), 0) for name in attentions}
    near = [
        step is not None and abs(step - printed[name]) <= EXIT_TOLERANCE * printed[name] for name, step in exits.items()
    ]
    return Finding(listed("{:,.0f}", exits.values()), all(near))


@claim(
    "A plateau that lengthens from small to base, but hardly with the variants",
    "base: original; symmetric; pairwise",
    "§4.1",
    paper="2.1 ×; hardly; hardly",
    authors=listed(
        "{:.1f} ×",
        (published.RAW_PLATEAU_EXITS["base", name] / published.RAW_PLATEAU_EXITS["small", name] for name in ALL),
    ),
    rule=f"original at least {GROWN} ×, the others at most {STEADY} ×",
    unless=evidence.other_training,
)
def check_growth(data: Data, size: str) -> Finding:
    """By how much the plateau lengthens from small to base, with `original` and with the variants."""
    if size != "base":
        raise MissingEvidence(f"{size} is not what the paper compares with small")
    exits = [(evidence.plateau_exit(data, size, name), evidence.plateau_exit(data, "small", name)) for name in ALL]
    growths = [None if None in pair else pair[0] / pair[1] for pair in exits]
    holds = None not in growths and growths[0] >= GROWN and max(growths[1:]) <= STEADY
    return Finding(listed("{:.1f} ×", growths), holds)


@claim(
    "A final validation loss 0.1 higher",
    "base: symmetric − original",
    "§4.1, §5.2",
    paper="0.1",
    authors=_raw_loss("symmetric"),
    rule=f"from {0.1 - LOSS_TOLERANCE:.2f} to {0.1 + LOSS_TOLERANCE:.2f}",
    unless=evidence.other_training,
    arguments={"attention": "symmetric", "expected": 0.1},
)
@claim(
    "The same final validation loss",
    "base: pairwise − original",
    "§4.1, §5.1",
    paper="0",
    authors=_raw_loss("pairwise"),
    rule=f"from −{LOSS_TOLERANCE} to {LOSS_TOLERANCE}",
    unless=evidence.other_training,
    arguments={"attention": "pairwise", "expected": 0.0},
)
def check_loss(data: Data, size: str, attention: str, expected: float) -> Finding:
    """How much higher than that of `original` an operator's last validation loss is, near what is expected."""
    losses = (evidence.validation_losses(data, size, name) for name in (attention, "original"))
    ours, original = (float(seeds.to_numpy()[:, -1].mean()) for seeds in losses)
    return Finding(listed("{:.3f}", [ours - original]), abs(ours - original - expected) <= LOSS_TOLERANCE)
