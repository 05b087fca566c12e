"""What an experiment has to say about a claim: one number per question, or what it lacks to answer."""

import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import pandas as pd

from symbert.report import order
from symbert.report.comparisons import Interval, compared
from symbert.report.published import COLUMNS
from symbert.report.robustness import ADVERSARIAL_MEAN, domain_scores, noise_scores
from symbert.report.runs import Model
from symbert.report.statistics import Crossing, curves_of, first_crossing, glue_scores, spread, target_line
from symbert.report.timings import Timing, of_original
from symbert.settings import ReportSettings


class Absent(Exception):
    """The experiment does not have what a question is about; the message says what is missing."""


@dataclass(frozen=True)
class Difference:
    """An operator's score less that of `original`, in percentage points.

    The interval reaches over both 95 % intervals of `symbert.report.comparisons`, the paired and the unpaired one; None
    where there are fewer than three seeds.
    """

    mean: float
    interval: Interval | None


@dataclass(frozen=True)
class Deviation:
    """Sample standard deviation over fine-tuning seeds, pooled where there are several pre-trained models."""

    value: float  # percentage points
    freedom: int  # degrees of freedom


@dataclass(frozen=True)
class CollapsedRun:
    """A fine-tuning of a checkpoint that predicts one class throughout in a task that counts for the GLUE score."""

    attention: str
    pretrain_seed: int
    step: int
    finetune_seed: int

    def __str__(self) -> str:
        seeds = f"pre-training seed {self.pretrain_seed}, fine-tuning seed {self.finetune_seed}"
        return f"the collapsed run of {self.attention} at step {self.step:,} ({seeds})"


@dataclass(frozen=True)
class Evidence:
    """Everything that a claim may ask for; what an experiment does not have is None or empty.

    `scores` are those of the last step, `curve` those of all checkpoints (tables of `symbert.report.scores`). Questions
    are about models of one size; `Absent` is the answer when there is nothing to tell.
    """

    settings: ReportSettings
    parameters: dict[str, Any]
    scores: pd.DataFrame | None = None
    curve: pd.DataFrame | None = None
    models: list[Model] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    robustness: pd.DataFrame | None = None

    @cached_property
    def sizes(self) -> list[str]:
        """The sizes that were trained or scored, the largest first."""
        scored = [] if self.scores is None else list(self.scores["size"])
        return order.sizes([*scored, *(model.size for model in self.models)])[::-1]

    def saved(self, size: str, attention: str, kind: str = "parameters") -> float:
        """Percentage of parameters that an operator saves against `original`; `kind` is a key of the counts."""
        counts = self.parameters.get(size, {}).get(kind, {})
        for name in ("original", attention):
            if name not in counts:
                raise Absent(f"no {size}-{name} in this experiment")
        return 100 * (1 - counts[attention] / counts["original"])

    def heads(self, size: str) -> int:
        """Attention heads of a size."""
        return self.parameters[size]["shape"]["num_attention_heads"]

    def glue_score(self, size: str, attention: str) -> float:
        """Mean GLUE score over all seeds, in percent."""
        return spread(self._glue_scores(size, attention)).mean

    def deviation(self, size: str, attention: str) -> Deviation:
        """Spread of the GLUE score over fine-tuning seeds."""
        seeds = self._glue_scores(size, attention).groupby(level="pretrain_seed", sort=False)
        freedom = seeds.count() - 1
        if not freedom.sum():
            raise Absent("one fine-tuning seed has no spread")
        return Deviation(math.sqrt((seeds.var() * freedom).sum() / freedom.sum()), int(freedom.sum()))

    def difference(self, size: str, attention: str, columns: tuple[str, ...] = COLUMNS) -> Difference:
        """How much higher than `original` an operator scores in the mean of some score columns."""
        scores = self._scores(size, ("original", attention), columns)
        return _difference(glue_scores(scores), size, attention)

    def noise_difference(self, size: str, attention: str) -> Difference:
        """As `difference`, in the mean over all kinds and shares of noise."""
        levels = noise_scores(self._robustness())
        if levels.empty:
            raise Absent("no noise was measured")
        return _difference(levels.drop(columns="clean").mean(axis=1), size, attention)

    def domain_difference(self, size: str, attention: str) -> Difference:
        """As `difference`, in the mean over all out-of-domain sets."""
        sets = domain_scores(self._robustness())
        if sets.empty:
            raise Absent("no out-of-domain set was measured")
        return _difference(sets.drop(columns=ADVERSARIAL_MEAN, errors="ignore").mean(axis=1), size, attention)

    def loss(self, size: str, attention: str) -> float:
        """Validation loss at the last step, mean over pre-training seeds."""
        return float(self._model(size, attention).losses[:, -1].mean())

    def plateau_exit(self, size: str, attention: str) -> float | None:
        """Mean step at which runs leave the initial plateau; None where one does not."""
        exits = self._model(size, attention).exits
        return None if None in exits else spread(exits).mean

    def crossing(self, size: str, attention: str, without: CollapsedRun | None = None) -> Crossing:
        """Where an operator first reaches 95 % of the highest final score among those on the curve.

        Of one that does not, it is told that this would take more than its last step: `step` is infinite, `after` None.
        A run that is left out is one seed less of its checkpoint or, if it is the only one, a checkpoint less.
        """
        scores = self._curve(size)
        curves = {} if scores is None else curves_of(scores if without is None else scores[~_is_of(scores, without)])
        if attention not in curves:
            raise Absent(f"no checkpoints of {size}-{attention} were scored")
        means = {name: seeds.mean() for name, seeds in curves.items()}
        last = scores["step"].max()
        own, line = means[attention], target_line(mean[last] for mean in means.values() if last in mean)
        return first_crossing(list(own.index), list(own), line) or Crossing(int(own.index[-1]), None, math.inf)

    def collapsed(self, size: str) -> list[CollapsedRun]:
        """The runs on the curve that predict one class throughout, where that is known."""
        scores = self._curve(size)
        if scores is None:
            return []
        constant = scores[scores["constant_prediction"].eq(True) & scores["column"].isin(COLUMNS)]
        runs = constant[[field.name for field in fields(CollapsedRun)]].drop_duplicates()
        return [CollapsedRun(*run) for run in runs.itertuples(index=False)]

    def step_time(self, size: str, attention: str) -> float:
        """Step time in percent of that of `original` on the same machine."""
        share = of_original(self._timings(size, attention), self._timings(size, "original"))
        if share is None:
            raise Absent(f"{size}-{attention} and {size}-original were not timed on one machine")
        return share

    def _glue_scores(self, size: str, attention: str) -> pd.Series:
        return glue_scores(self._scores(size, (attention,), COLUMNS))

    def _scores(self, size: str, attentions: tuple[str, ...], columns: tuple[str, ...]) -> pd.DataFrame:
        """Scores of some operators in some columns, each of which must be there."""
        if self.scores is None:
            raise Absent("no scores")
        scores = self.scores[(self.scores["size"] == size) & self.scores["attention"].isin(attentions)]
        for attention in attentions:
            if attention not in set(scores["attention"]):
                raise Absent(f"no {size}-{attention} in this experiment")
        for column in columns:
            if column not in set(scores["column"]):
                raise Absent(f"{column} is not among the tasks")
        return scores[scores["column"].isin(columns)]

    def _curve(self, size: str) -> pd.DataFrame | None:
        return None if self.curve is None else self.curve[self.curve["size"] == size]

    def _robustness(self) -> pd.DataFrame:
        if self.robustness is None:
            raise Absent("robustness was not measured")
        return self.robustness

    def _model(self, size: str, attention: str) -> Model:
        for model in self.models:
            if (model.size, model.attention) == (size, attention):
                return model
        raise Absent(f"no losses of {size}-{attention}")

    def _timings(self, size: str, attention: str) -> list[Timing]:
        found = [timing for timing in self.timings if (timing.size, timing.attention) == (size, attention)]
        if not found:
            raise Absent(f"no step times of {size}-{attention}")
        return found


def _is_of(scores: pd.DataFrame, run: CollapsedRun) -> pd.Series:
    """Whether each row is of a run."""
    cell = vars(run)
    return (scores[list(cell)] == pd.Series(cell)).all(axis=1)


def _difference(scores: pd.Series, size: str, attention: str) -> Difference:
    """Of scores with the index of `glue_scores`, over the seeds that both models have."""
    names = ["size", "attention", "step"]
    models = {model[:2]: seeds.droplevel(names) for model, seeds in scores.to_frame("score").groupby(level=names)}
    for name in ("original", attention):
        if (size, name) not in models:
            raise Absent(f"no {size}-{name} in this experiment")
    found = list(compared(size, attention, "original", models[size, attention], models[size, "original"]))
    if not found:
        raise Absent(f"{size}-{attention} and {size}-original have no seed in common")
    return Difference(found[0].difference, found[0].span)
