"""Which models are compared with which, over which units, and in which scores.

Differences are in percentage points, one per unit. The unit is a fine-tuning seed where there is one pre-training seed.
Where there are several, the unit is a pre-training seed and its score the mean over fine-tuning seeds: fine-tunings of
one pre-trained model are no independent draws of its operator, and counted as such they would make every interval too
narrow (Hurlbert, "Pseudoreplication and the design of ecological field experiments", 1984; for BERT: Sellam et al.,
"The MultiBERTs", 2022).

One score of each comparison is tested: the GLUE score. The others are described by intervals.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from symbert.report.captions import UNTRAINED
from symbert.report.inference import FEWEST, LEVEL, NOISE, Interval, holm, permutation_test, welch_interval
from symbert.report.statistics import seed_scores, spread

MAJORITY = "majority baseline"
FINETUNE_SEED, PRETRAIN_SEED = "fine-tuning seed", "pre-training seed"


@dataclass(frozen=True)
class PValues:
    """Two-sided p values of the permutation test of one difference."""

    permutation: float
    smallest: float  # that the test of so many units can give
    holm: float | None = None  # with Holm's correction in its family


@dataclass(frozen=True)
class Comparison:
    """A score of a model less that of its reference, in percentage points, over the seeds that both have.

    Of fewer than three units there are neither intervals nor tests, of one no standard deviation, and of none no
    difference: None.
    """

    size: str
    model: str
    reference: str
    score: str  # its column
    unit: str
    n: int  # units of each model
    difference: float | None  # of the means
    std: float | None  # of the differences of equal seeds
    welch: Interval | None = None
    p: PValues | None = None  # of the score that is tested

    @property
    def is_significant(self) -> bool:
        """Whether the test, corrected, shows a difference."""
        return self.p is not None and self.p.holm <= LEVEL + NOISE


def comparisons(scores: pd.DataFrame) -> list[Comparison]:
    """Every operator with `original`; with models that were not pre-trained, also with these and with the majority.

    `scores` is what `symbert.report.statistics.final_scores` gives. Nothing is compared with a majority that is not
    known, as that of imported scores.
    """
    every, has_majority = [], scores["majority"].notna().all()
    for size, part in scores.groupby("size", sort=False):
        models = _models(part)
        last = max(step for _, step in models)
        trained = {attention: model for (attention, step), model in models.items() if step == last}
        others = [name for name in trained if name != "original" and "original" in trained]
        pairs = [(name, "original", trained[name], trained["original"]) for name in others]
        pairs += [(name, UNTRAINED, trained[name], models[name, 0]) for name in trained if (name, 0) in models]
        if has_majority and any(step == 0 for _, step in models):
            for (attention, step), baseline in _models(part.assign(score=part["majority"])).items():
                name = attention if step else f"{attention}, {UNTRAINED}"
                pairs.append((name, MAJORITY, models[attention, step], baseline))
        every += [comparison for pair in pairs for comparison in compared(size, *pair)]
    return corrected(every)


def _models(scores: pd.DataFrame) -> dict[tuple[str, int], pd.DataFrame]:
    """By operator and step: percent, `pretrain_seed finetune_seed` by score."""
    levels = ["attention", "step"]
    models = seed_scores(scores).droplevel("size").groupby(level=levels, sort=False)
    return {model: seeds.droplevel(levels) for model, seeds in models}


def compared(size: str, model: str, reference: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[Comparison]:
    """A comparison per score, over the seeds in which both have it; the first score is tested, and p is not corrected.

    Scores that only one of the two has are dropped before fine-tuning seeds are averaged, so that both means are over
    the same seeds. The majority has no seeds that could be tested with ours: its intervals are those of one sample.
    """
    common = ours.index.intersection(theirs.index)
    unit = PRETRAIN_SEED if common.unique("pretrain_seed").size > 1 else FINETUNE_SEED
    for score in ours.columns if len(common) else ():
        seeds = common[ours.loc[common, score].notna() & theirs.loc[common, score].notna()]
        if not len(seeds):
            yield Comparison(size, model, reference, score, unit, 0, None, None)
            continue
        both = [scores.loc[seeds, score] for scores in (ours, theirs)]
        if unit == PRETRAIN_SEED:
            both = [scores.groupby(level="pretrain_seed", sort=False).mean() for scores in both]
        values, others = (scores.to_numpy() for scores in both)
        over = spread((values - others).tolist())
        one = Comparison(size, model, reference, score, unit, over.count, over.mean, over.deviation)
        if over.count >= FEWEST:
            one = replace(one, welch=welch_interval(values, others))
            if score == ours.columns[0] and reference != MAJORITY:
                one = replace(one, p=PValues(*permutation_test(values, others)))
        yield one


def corrected(every: list[Comparison]) -> list[Comparison]:
    """The same with Holm's correction: a family is all tested differences of one size from one reference."""
    every, families = list(every), defaultdict(list)
    for at, one in enumerate(every):
        if one.p is not None:
            families[one.size, one.reference].append(at)
    for family in families.values():
        p_values = holm([every[at].p.permutation for at in family]).tolist()
        for at, p_value in zip(family, p_values, strict=True):
            every[at] = replace(every[at], p=replace(every[at].p, holm=p_value))
    return every
