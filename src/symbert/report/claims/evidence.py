"""A claim of a paper, and what an experiment gives for it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from symbert.report import captions, order, published
from symbert.report.comparisons import Comparison, compared, corrected
from symbert.report.data import Data
from symbert.report.inference import LEVEL, Interval, p_in_words
from symbert.report.runs import losses_of, survival_of
from symbert.report.statistics import Crossing, first_crossing, glue_scores, mean_curves

RUN = ["attention", "pretrain_seed", "step", "finetune_seed"]  # a fine-tuning of a checkpoint
COLLAPSED = (
    "the collapsed run of {attention} at step {step:,} "
    "(pre-training seed {pretrain_seed}, fine-tuning seed {finetune_seed})"
)

HIGHER, LOWER = (f"p at most {LEVEL} and the difference {side} 0" for side in ("above", "below"))


@dataclass(frozen=True)
class Finding:
    """What an experiment gives for a claim.

    `holds` is None where seeds or checkpoints leave it open; `hangs_on` names a single run that would decide it.
    """

    ours: str
    holds: bool | None
    hangs_on: str | None = None


Check = Callable[..., Finding]  # of data, a size, and the arguments of a claim


@dataclass
class Claim:
    """A claim about models of one size, in words.

    `paper` and `authors` are the values that the paper prints and that its authors' raw files give, `rule` what makes
    the claim hold. `unless` says why an experiment may not judge it, such as that it was trained otherwise.
    """

    text: str
    models: str  # 'base: symmetric; pairwise', in the order of values, or 'base: pairwise − original'
    source: str
    paper: str
    rule: str
    authors: str | None = None
    unless: Callable[[Data], str | None] | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    check: Check = field(init=False)  # that it is judged by

    @property
    def size(self) -> str:
        """The size of the models."""
        return self.models.partition(":")[0]

    def finding(self, data: Data, size: str) -> Finding:
        """What models of a size give; MissingEvidence says what is missing."""
        return self.check(data, size, **self.arguments)


CLAIMS: list[Claim] = []  # of both papers, each in the order of its file


def claim(text: str, models: str, source: str, **more: Any) -> Callable[[Check], Check]:
    """Declare a claim, by the fields of `Claim`, that the decorated function judges."""
    declared = Claim(text, models, source, **more)
    CLAIMS.append(declared)

    def judged_by(check: Check) -> Check:
        declared.check = check
        return check

    return judged_by


class MissingEvidence(Exception):
    """The experiment does not have what a claim is about; the message says what is missing."""


def sizes_of(data: Data) -> list[str]:
    """The sizes that were trained or scored, the largest first."""
    scored = [] if data.trained is None else list(data.trained["size"])
    return order.sizes([*scored, *data.runs["size"]])[::-1]


def saved(data: Data, size: str, attention: str, kind: str = "parameters") -> float:
    """Percentage of parameters that an operator saves against `original`; `kind` is a key of the counts."""
    counts = data.parameters.get(size, {}).get(kind, {})
    for name in ("original", attention):
        if name not in counts:
            raise MissingEvidence(f"no {size}-{name} in this experiment")
    return 100 * (1 - counts[attention] / counts["original"])


def final_scores_of(data: Data, size: str, *attentions: str, columns: tuple[str, ...] = published.COLUMNS) -> pd.Series:
    """The mean of some score columns (percent) per operator and seed; MissingEvidence names what was not scored."""
    if data.trained is None:
        raise MissingEvidence("no scores")
    scores = data.trained[(data.trained["size"] == size) & data.trained["attention"].isin(attentions)]
    for attention in attentions:
        if attention not in set(scores["attention"]):
            raise MissingEvidence(f"no {size}-{attention} in this experiment")
    for column in columns:
        if column not in set(scores["column"]):
            raise MissingEvidence(f"{column} is not among the tasks")
    means = glue_scores(scores[scores["column"].isin(columns)]).dropna()
    for attention in attentions:
        if attention not in means.index.unique("attention"):
            raise MissingEvidence(f"no seed of {size}-{attention} has every column")
    return means


def lead(data: Data, size: str, attention: str, columns: tuple[str, ...] = published.COLUMNS) -> Comparison:
    """How much higher than `original` an operator scores in the mean of some score columns."""
    final_scores_of(data, size, "original", attention, columns=columns)  # or it says what is missing
    scores = data.trained[(data.trained["size"] == size) & data.trained["column"].isin(columns)]
    return lead_in(glue_scores(scores).dropna(), size, attention)


def lead_in(scores: pd.Series, size: str, attention: str) -> Comparison:
    """How much higher than `original` an operator scores, over the seeds that both models have.

    Its p value is corrected for the number of operators that are compared with `original`.
    """
    names = ["size", "attention", "step"]
    models = {model[:2]: seeds.droplevel(names) for model, seeds in scores.to_frame("score").groupby(level=names)}
    for name in ("original", attention):
        if (size, name) not in models:
            raise MissingEvidence(f"no {size}-{name} in this experiment")
    original, others = models[size, "original"], {name for of, name in models if of == size} - {"original"}
    leads = corrected(
        [one for name in others for one in compared(size, name, "original", models[size, name], original)]
    )
    for one in leads:
        if one.model == attention and one.n:
            return one
    raise MissingEvidence(f"{size}-{attention} and {size}-original have no seed in common")


def validation_losses(data: Data, size: str, attention: str) -> pd.DataFrame:
    """The losses of an operator: a row per pre-training seed, a column per step."""
    losses = losses_of(data.runs)
    if (size, attention) not in losses:
        raise MissingEvidence(f"no losses of {size}-{attention}")
    return losses[size, attention]


def plateau_exit(data: Data, size: str, attention: str) -> int | None:
    """Median step at which runs leave the initial plateau; None where more than half stay on it."""
    return survival_of(validation_losses(data, size, attention)).median


def other_training(data: Data) -> str | None:
    """Why losses are not comparable with the paper's; None where they are."""
    return captions.wording_of(data.settings).other_training


def other_scores(data: Data) -> str | None:
    """Why scores are not comparable with the paper's; None where they are."""
    tables = [table for table in (data.trained, data.curve) if table is not None]
    counted = [table[table["column"].isin(published.COLUMNS)] for table in tables]
    if any(table["stand_in"].any() for table in counted):
        return "the tasks are stand-ins"
    if any(table["partial"].any() for table in counted):
        return "tasks have other rows than GLUE’s"
    return other_training(data) or captions.wording_of(data.settings).other_finetuning


def other_robustness(data: Data) -> str | None:
    """As `other_scores`; out-of-domain sets must be whole, too."""
    partial = data.robustness is not None and data.robustness["partial"].any()
    return other_scores(data) or ("out-of-domain sets have other rows than published" if partial else None)


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
    constant = curve[curve["constant_prediction"].eq(True) & curve["column"].isin(published.COLUMNS)]
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


def is_higher(lead: Comparison) -> bool | None:
    """Whether the primary test shows that a model scores higher than its reference; None where it shows nothing."""
    return lead.difference > 0 if lead.is_significant else None


def is_lower(lead: Comparison) -> bool | None:
    """As `is_higher`, lower."""
    return lead.difference < 0 if lead.is_significant else None


def are_all(answers: list[bool | None]) -> bool | None:
    """Whether all are true: false as soon as one is false, None as long as one is open."""
    return False if False in answers else None if None in answers else True


def listed(form: str, values: Iterable[float | None]) -> str:
    """Numbers in words, each written in the same form; a dash for None."""
    return "; ".join("–" if value is None else form.format(value).replace("-", "−") for value in values)


def points(value: float) -> str:
    """A difference in percentage points."""
    return listed("{:.1f}", [round(value, 1) + 0.0])  # adding zero takes the sign from minus zero


def in_points(lead: Comparison) -> str:
    """A difference, Welch's interval, and the primary p with Holm's correction: '0.6 [−0.2, 1.4], p 0.143'."""
    if lead.welch is None:
        return points(lead.difference)
    bounds = f"{points(lead.difference)} [{points(lead.welch.low)}, {points(lead.welch.high)}]"
    return f"{bounds}, p {p_in_words(lead.p.holm, 3)}"
