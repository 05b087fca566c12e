"""Differences between two models over the seeds that both have, with intervals, a test, and Holm's correction.

The unit is a fine-tuning seed, the same in both models, where there is one pre-training seed. Where there are several,
the unit is a pre-training seed and its score the mean over fine-tuning seeds: fine-tunings of one pre-trained model are
no independent draws of its operator, and counted as such they would make every interval too narrow.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from symbert.report.captions import UNTRAINED
from symbert.report.inference import (
    FEWEST,
    Interval,
    Values,
    bootstrap_interval,
    holm,
    sign_flip_test,
    t_interval,
    welch_interval,
)
from symbert.report.statistics import MEANS, seed_scores, spread

MAJORITY = "majority baseline"
FINETUNE_SEED, PRETRAIN_SEED = "fine-tuning seed", "pre-training seed"

Models = dict[tuple[str, int], pd.DataFrame]  # by operator and step: percent, `pretrain_seed finetune_seed` by score
Pair = tuple[str, str, str, pd.DataFrame, pd.DataFrame]  # size, names and scores of a model and its reference


@dataclass(frozen=True)
class Comparison:
    """A score of a model less that of its reference, in percentage points.

    Of fewer than three units there is neither an interval nor a p value, of one no standard deviation: None.
    """

    size: str
    model: str
    reference: str
    score: str  # its column
    unit: str
    n: int
    difference: float  # mean
    std: float | None
    t: Interval | None
    unpaired: Interval | None
    bootstrap: Interval | None
    p_value: float | None
    smallest_p_value: float | None
    holm_p_value: float | None


def comparisons(scores: pd.DataFrame) -> list[Comparison]:
    """Every operator with `original`; with models that were not pre-trained, also with these and with the majority.

    `scores` is what `symbert.report.statistics.final_scores` gives. Nothing is compared with a majority that is not
    known, as that of imported scores.
    """
    models, majority = _models(scores), {}
    if scores["majority"].notna().all():
        majority = _models(scores.assign(score=scores["majority"]))
    pairs = (pair for size in models for pair in _pairs(size, models[size], majority.get(size, {})))
    return _corrected([comparison for pair in pairs for comparison in compared(*pair)])


def _models(scores: pd.DataFrame) -> dict[str, Models]:
    models = defaultdict(dict)
    levels = ["size", "attention", "step"]
    for (size, attention, step), part in seed_scores(scores).groupby(level=levels, sort=False):
        models[size][attention, step] = part.droplevel(levels)
    return models


def _pairs(size: str, models: Models, majority: Models) -> Iterator[Pair]:
    """What of one size is compared; the majority is if there are models without pre-training."""
    last = max(step for _, step in models)
    trained = {attention: model for (attention, step), model in models.items() if step == last}
    for attention, model in trained.items():
        if attention != "original" and "original" in trained:
            yield size, attention, "original", model, trained["original"]
    for attention, model in trained.items():
        if (attention, 0) in models:
            yield size, attention, UNTRAINED, model, models[attention, 0]
    if any(step == 0 for _, step in models):
        for (attention, step), reference in majority.items():
            name = attention if step else f"{attention}, {UNTRAINED}"
            yield size, name, MAJORITY, models[attention, step], reference


def compared(size: str, model: str, reference: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[Comparison]:
    """A comparison per score, over the seeds that both have."""
    common = ours.index.intersection(theirs.index)
    several = common.unique("pretrain_seed").size > 1
    unit = PRETRAIN_SEED if several else FINETUNE_SEED
    ours, theirs = (_units(scores.loc[common], several) for scores in (ours, theirs))
    for score in ours.columns if len(common) else ():
        yield _comparison((size, model, reference, score, unit), ours[score].to_numpy(), theirs[score].to_numpy())


def _units(scores: pd.DataFrame, several: bool) -> pd.DataFrame:
    return scores.groupby(level="pretrain_seed", sort=False).mean() if several else scores


def _comparison(names: tuple[str, str, str, str, str], ours: Values, theirs: Values) -> Comparison:
    differences = ours - theirs
    found = spread(differences.tolist())
    described = Comparison(*names, found.count, found.mean, found.deviation, *(None,) * 6)
    if found.count < FEWEST:
        return described
    test = sign_flip_test(differences)
    return replace(
        described,
        t=t_interval(differences),
        unpaired=welch_interval(ours, theirs),
        bootstrap=bootstrap_interval(differences),
        p_value=test.p_value,
        smallest_p_value=test.smallest,
        holm_p_value=test.p_value,
    )


def _corrected(found: list[Comparison]) -> list[Comparison]:
    """The same with p values corrected in families: all comparisons of a size with one reference.

    The GLUE score, the question that the paper asks, is a family of its own, as is the mean of tasks, which weights the
    same scores otherwise; single columns are one family over all models. What has no p value is no question of it.
    """
    families = defaultdict(list)
    tested = [(at, one) for at, one in enumerate(found) if one.p_value is not None]
    for at, one in tested:
        families[one.size, one.reference, one.score if one.score in MEANS else None].append(at)
    corrected = {}
    for family in families.values():
        corrected |= dict(zip(family, holm([found[at].p_value for at in family]).tolist(), strict=True))
    return [replace(one, holm_p_value=corrected.get(at)) for at, one in enumerate(found)]
