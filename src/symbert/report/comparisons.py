"""Differences between two models over the seeds that both have, with intervals, a test, and Holm's correction.

Differences are in percentage points, one per unit. The unit is a fine-tuning seed, the same in both models, where there
is one pre-training seed. Where there are several, the unit is a pre-training seed and its score the mean over
fine-tuning seeds: fine-tunings of one pre-trained model are no independent draws of its operator, and counted as such
they would make every interval too narrow.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from symbert.draws import below, mix, stream
from symbert.report.captions import UNTRAINED
from symbert.report.statistics import MEANS, seed_scores, spread

Values = NDArray[np.float64]

MAJORITY = "majority baseline"
FINETUNE_SEED, PRETRAIN_SEED = "fine-tuning seed", "pre-training seed"
CONFIDENCE = 0.95
FEWEST = 3  # units of which anything is inferred: an interval of two spans 12.7 standard errors, whatever they are
RESAMPLES = 10_000
PATTERNS = 2**14  # of signs: all that 14 differences have; of more differences, so many are drawn
SEED = 1  # of resamples and of patterns; any would do, but the same table must come out of the same scores
DECIMALS = 9  # of percentage points: sums of floating-point numbers that agree in so many are equal
NOISE = 10**-DECIMALS


class Interval(NamedTuple):
    """From the lower to the upper bound."""

    low: float
    high: float

    def includes(self, value: float) -> bool:
        """Whether the value lies inside or, but for floating-point noise, on a bound."""
        return self.low - NOISE <= value <= self.high + NOISE


@dataclass(frozen=True)
class Comparison:
    """A score of a model less that of its reference, in percentage points.

    Of fewer than three units there is neither an interval nor a p value, of one no standard deviation, and of none no
    difference: None.
    """

    size: str
    model: str
    reference: str
    score: str  # its column
    unit: str
    n: int
    difference: float | None  # mean
    std: float | None
    t: Interval | None = None
    unpaired: Interval | None = None
    bootstrap: Interval | None = None
    p_value: float | None = None
    smallest_p_value: float | None = None
    holm_p_value: float | None = None

    @property
    def span(self) -> Interval | None:
        """From the lowest to the highest bound of the paired and the unpaired interval."""
        both = self.t and (*self.t, *self.unpaired)
        return both and Interval(min(both), max(both))


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
    return _corrected(every)


def _models(scores: pd.DataFrame) -> dict[tuple[str, int], pd.DataFrame]:
    """By operator and step: percent, `pretrain_seed finetune_seed` by score."""
    levels = ["attention", "step"]
    models = seed_scores(scores).droplevel("size").groupby(level=levels, sort=False)
    return {model: seeds.droplevel(levels) for model, seeds in models}


def compared(size: str, model: str, reference: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[Comparison]:
    """A comparison per score, over the seeds that both have; p values are not corrected for their number."""
    common, unit = ours.index.intersection(theirs.index), FINETUNE_SEED
    ours, theirs = ours.loc[common], theirs.loc[common]
    if common.unique("pretrain_seed").size > 1:
        unit = PRETRAIN_SEED
        ours, theirs = (scores.groupby(level="pretrain_seed", sort=False).mean() for scores in (ours, theirs))
    for score in ours.columns if len(common) else ():
        pairs = pd.concat([ours[score], theirs[score]], axis=1).dropna()  # of imported scores some may be missing
        values, others = pairs.to_numpy().T
        if not len(pairs):
            yield Comparison(size, model, reference, score, unit, 0, None, None)
            continue
        over = spread((values - others).tolist())
        one = Comparison(size, model, reference, score, unit, over.count, over.mean, over.deviation)
        if over.count >= FEWEST:
            t, unpaired = t_intervals(values, others)
            p_value, smallest = sign_flip_test(values - others)
            bootstrap = bootstrap_interval(values - others)
            one = replace(one, t=t, unpaired=unpaired, bootstrap=bootstrap, p_value=p_value, smallest_p_value=smallest)
        yield one


def t_intervals(ours: Values, theirs: Values) -> tuple[Interval, Interval]:
    """95 % intervals of the difference of two means: of paired values, and of values that are not paired.

    They take differences, or the values of each, for independent and normally distributed (Student, "The probable
    error of a mean", 1908; Welch, "The generalization of Student's problem", 1947).
    """
    from scipy.stats import ttest_ind, ttest_rel  # slow to load, and most tables need no test

    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # values that are all equal
        tests = ttest_rel(ours, theirs), ttest_ind(ours, theirs, equal_var=False)
    return tuple(Interval(*map(float, test.confidence_interval(CONFIDENCE))) for test in tests)


def bootstrap_interval(differences: Values) -> Interval:
    """95 % percentile bootstrap interval of the mean.

    The 2.5 % and 97.5 % quantiles of the means of resamples with replacement (Efron, "Bootstrap methods", 1979). The
    corrected one (BCa) would estimate two more numbers from the same few values. With few of them the percentile
    interval is too narrow, about z·√((n−1)/n)/t of the t interval: 63 % for n = 5 (Hesterberg, "What teachers should
    know about the bootstrap", 2015). Each resample is drawn a second time from the values in reverse order, so that
    neither the order nor the sign of the differences matters, which `scipy.stats.bootstrap` does not give.
    """
    ordered, positions = np.sort(differences), _resamples(len(differences))
    means = np.concatenate([values[positions].mean(axis=1) for values in (ordered, ordered[::-1])])
    return Interval(*np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist())


@cache
def _resamples(count: int) -> NDArray[np.int64]:
    """`resample value`: positions drawn with replacement."""
    return below(stream(mix(np.arange(RESAMPLES), SEED), count), count)


def sign_flip_test(differences: Values) -> tuple[float, float]:
    """p of a two-sided permutation test that paired differences are symmetric around zero, and its smallest p.

    Swapping a pair flips a sign. p is the share of all 2ⁿ patterns of signs whose sum is at least as far from zero as
    the observed one (Fisher, "The design of experiments", 1935, section 21); ties count, and a difference of zero has
    two equal signs. Above n = 14 patterns are drawn, and the observed one is counted among them: (1 + b)/(1 + B)
    (Phipson and Smyth, "Permutation p-values should never be zero", 2010). The smallest p that differences of these
    sizes can give is 2/2ᵐ for m that are not zero.
    """
    from scipy.stats import permutation_test

    def distance(values: Values, axis: int) -> Values:
        return np.abs(values.sum(axis=axis)).round(DECIMALS)

    options = {"permutation_type": "samples", "alternative": "greater", "n_resamples": PATTERNS, "rng": SEED}
    test = permutation_test((differences,), distance, vectorized=True, **options)
    smallest = 2.0 ** (1 - int((np.abs(differences) > NOISE).sum()))
    return float(test.pvalue), max(min(1.0, smallest), 1 / (1 + PATTERNS))


def _corrected(every: list[Comparison]) -> list[Comparison]:
    """The same with p values corrected in families: all comparisons of a size with one reference.

    The GLUE score, the question that the paper asks, is a family of its own, as is the mean of tasks, which weights the
    same scores otherwise; single columns are one family over all models. What has no p value is no question of it.
    """
    families = defaultdict(list)
    for at, one in enumerate(every):
        if one.p_value is not None:
            families[one.size, one.reference, one.score if one.score in MEANS else None].append(at)
    for family in families.values():
        for at, p_value in zip(family, holm([every[at].p_value for at in family]).tolist(), strict=True):
            every[at] = replace(every[at], holm_p_value=p_value)
    return every


def holm(p_values: Sequence[float]) -> Values:
    """p values corrected for their number: of m, the i-th smallest becomes the largest of (m−j+1)·pⱼ up to j = i.

    At most one. Those at or below a level keep the chance of any false finding among the m at or below that level,
    however they depend on each other (Holm, "A simple sequentially rejective multiple test procedure", 1979).
    """
    given = np.asarray(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(1, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return corrected
