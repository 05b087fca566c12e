"""What an experiment has to say about a claim, what it lacks for it, and why it may not judge it."""

import pandas as pd

from symbert.report import captions, order, published
from symbert.report.comparisons import Comparison, compared
from symbert.report.data import Data
from symbert.report.runs import Model, models_of
from symbert.report.statistics import glue_scores, spread
from symbert.sources import is_stand_in


class MissingEvidence(Exception):
    """The experiment does not have what a claim is about; the message says what is missing."""


def sizes_of(data: Data) -> list[str]:
    """The sizes that were trained or scored, the largest first."""
    scored = [] if data.trained is None else list(data.trained["size"])
    return order.sizes([*scored, *(run.size for run in data.runs)])[::-1]


def saved(data: Data, size: str, attention: str, kind: str = "parameters") -> float:
    """Percentage of parameters that an operator saves against `original`; `kind` is a key of the counts."""
    counts = data.parameters.get(size, {}).get(kind, {})
    for name in ("original", attention):
        if name not in counts:
            raise MissingEvidence(f"no {size}-{name} in this experiment")
    return 100 * (1 - counts[attention] / counts["original"])


def final_scores_of(data: Data, size: str, *attentions: str, columns: tuple[str, ...] = published.COLUMNS) -> pd.Series:
    """Means in percent of some score columns, as `symbert.report.statistics.glue_scores` gives them, of operators."""
    if data.trained is None:
        raise MissingEvidence("no scores")
    scores = data.trained[(data.trained["size"] == size) & data.trained["attention"].isin(attentions)]
    for attention in attentions:
        if attention not in set(scores["attention"]):
            raise MissingEvidence(f"no {size}-{attention} in this experiment")
    for column in columns:
        if column not in set(scores["column"]):
            raise MissingEvidence(f"{column} is not among the tasks")
    return glue_scores(scores[scores["column"].isin(columns)])


def lead(data: Data, size: str, attention: str, columns: tuple[str, ...] = published.COLUMNS) -> Comparison:
    """How much higher than `original` an operator scores in the mean of some score columns."""
    return lead_in(final_scores_of(data, size, "original", attention, columns=columns), size, attention)


def lead_in(scores: pd.Series, size: str, attention: str) -> Comparison:
    """How much higher than `original` an operator scores, over the seeds that both models have."""
    names = ["size", "attention", "step"]
    models = {model[:2]: seeds.droplevel(names) for model, seeds in scores.to_frame("score").groupby(level=names)}
    for name in ("original", attention):
        if (size, name) not in models:
            raise MissingEvidence(f"no {size}-{name} in this experiment")
    differences = list(compared(size, attention, "original", models[size, attention], models[size, "original"]))
    if not differences:
        raise MissingEvidence(f"{size}-{attention} and {size}-original have no seed in common")
    return differences[0]


def model_of(data: Data, size: str, attention: str) -> Model:
    """The losses of an operator."""
    for model in models_of(data.runs):
        if (model.size, model.attention) == (size, attention):
            return model
    raise MissingEvidence(f"no losses of {size}-{attention}")


def plateau_exit(data: Data, size: str, attention: str) -> float | None:
    """Mean step at which runs leave the initial plateau; None where one does not."""
    exits = model_of(data, size, attention).exits
    return None if None in exits else spread(exits).mean


def other_training(data: Data) -> str | None:
    """Why losses are not comparable with the paper's; None where they are."""
    settings = data.settings
    if captions.shows_the_papers_losses(settings):
        return None
    if captions.is_imported(settings):
        return f"pre-training took {settings.steps:,} steps, the paper’s {published.TRAINING[0]:,}"
    return "the corpus is a stand-in" if is_stand_in(settings.corpus_source) else "pre-training is not the paper’s"


def other_scores(data: Data) -> str | None:
    """Why scores are not comparable with the paper's; None where they are."""
    tables = [table for table in (data.trained, data.curve) if table is not None]
    counted = [table[table["column"].isin(published.COLUMNS)] for table in tables]
    if any(table["stand_in"].any() for table in counted):
        return "the tasks are stand-ins"
    if any(table["partial"].any() for table in counted):
        return "tasks have other rows than GLUE’s"
    other = other_training(data)
    if other or captions.shows_the_papers_scores(data.settings):
        return other
    return "fine-tuning is not the paper’s"


def other_robustness(data: Data) -> str | None:
    """As `other_scores`; out-of-domain sets must be whole, too."""
    partial = data.robustness is not None and data.robustness["partial"].any()
    return other_scores(data) or ("out-of-domain sets have other rows than published" if partial else None)
