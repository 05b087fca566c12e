"""What an experiment has to say about models of one size, and what it lacks to say it."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from symbert.report import order
from symbert.report.comparisons import Comparison, compared
from symbert.report.published import COLUMNS
from symbert.report.runs import Model
from symbert.report.statistics import glue_scores, spread
from symbert.report.timings import Timing
from symbert.settings import ReportSettings


class MissingEvidence(Exception):
    """The experiment does not have what a claim is about; the message says what is missing."""


@dataclass(frozen=True)
class Evidence:
    """Everything that a claim may ask for; what an experiment does not have is None or empty.

    `scores` are those of the last step, `curve` those of all checkpoints (tables of `symbert.report.scores`).
    """

    settings: ReportSettings
    parameters: dict[str, Any]
    scores: pd.DataFrame | None = None
    curve: pd.DataFrame | None = None
    models: list[Model] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    robustness: pd.DataFrame | None = None


def sizes_of(evidence: Evidence) -> list[str]:
    """The sizes that were trained or scored, the largest first."""
    scored = [] if evidence.scores is None else list(evidence.scores["size"])
    return order.sizes([*scored, *(model.size for model in evidence.models)])[::-1]


def saved(evidence: Evidence, size: str, attention: str, kind: str = "parameters") -> float:
    """Percentage of parameters that an operator saves against `original`; `kind` is a key of the counts."""
    counts = evidence.parameters.get(size, {}).get(kind, {})
    for name in ("original", attention):
        if name not in counts:
            raise MissingEvidence(f"no {size}-{name} in this experiment")
    return 100 * (1 - counts[attention] / counts["original"])


def final_scores_of(evidence: Evidence, size: str, *attentions: str, columns: tuple[str, ...] = COLUMNS) -> pd.Series:
    """Means in percent of some score columns, as `symbert.report.statistics.glue_scores` gives them, of operators."""
    if evidence.scores is None:
        raise MissingEvidence("no scores")
    scores = evidence.scores[(evidence.scores["size"] == size) & evidence.scores["attention"].isin(attentions)]
    for attention in attentions:
        if attention not in set(scores["attention"]):
            raise MissingEvidence(f"no {size}-{attention} in this experiment")
    for column in columns:
        if column not in set(scores["column"]):
            raise MissingEvidence(f"{column} is not among the tasks")
    return glue_scores(scores[scores["column"].isin(columns)])


def difference(scores: pd.Series, size: str, attention: str) -> Comparison:
    """How much higher than `original` an operator scores, over the seeds that both models have."""
    names = ["size", "attention", "step"]
    models = {model[:2]: seeds.droplevel(names) for model, seeds in scores.to_frame("score").groupby(level=names)}
    for name in ("original", attention):
        if (size, name) not in models:
            raise MissingEvidence(f"no {size}-{name} in this experiment")
    found = list(compared(size, attention, "original", models[size, attention], models[size, "original"]))
    if not found:
        raise MissingEvidence(f"{size}-{attention} and {size}-original have no seed in common")
    return found[0]


def model_of(evidence: Evidence, size: str, attention: str) -> Model:
    """The losses of an operator."""
    for model in evidence.models:
        if (model.size, model.attention) == (size, attention):
            return model
    raise MissingEvidence(f"no losses of {size}-{attention}")


def plateau_exit(evidence: Evidence, size: str, attention: str) -> float | None:
    """Mean step at which runs leave the initial plateau; None where one does not."""
    exits = model_of(evidence, size, attention).exits
    return None if None in exits else spread(exits).mean
