"""What is computed from scores and losses: means over seeds, tests, crossings, and escapes from the plateau.

Scores are compared by differences in points over units: fine-tuning seeds or, where there are several, pre-training
seeds with the means of their fine-tuning seeds, which are no independent draws of an operator (Hurlbert,
"Pseudoreplication and the design of ecological field experiments", 1984; for BERT: Sellam et al., "The MultiBERTs",
2022). The GLUE score is tested by `permutation_test`; the others are described by intervals. docs/report.md says why.
Models from elsewhere are one checkpoint each: `paired_comparisons` says what their differences are tested for.

A run escapes the plateau at its first evaluation whose validation loss is at or below a level that all runs of the
comparison share. So an escape is a time between two evaluations, and nothing here is finer than these: before the first
one it is left-censored, after the last one right-censored.
"""

import math
import statistics
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from symbert.errors import MissingInputError
from symbert.experiment.power import (
    ARRANGEMENTS,
    FEWEST,
    FEWEST_ESCAPES,
    LEVEL,
    detectable_effect,
    smallest_sign_flip_p,
)
from symbert.glue.tasks import BESIDE_GLUE
from symbert.report.names import UNTRAINED
from symbert.report.published import COLUMNS

Values = NDArray[np.float64]

SEEDS = ["size", "attention", "pretrain_seed", "step", "finetune_seed"]
OTHER_COLUMNS = {column: suite.score for suite in BESIDE_GLUE for column in suite.columns}
COUNTED = (*COLUMNS, *OTHER_COLUMNS)  # score columns that count for the mean of their suite
STAND_IN = " (stand-in)"  # ends the name of a score that is not GLUE's
TARGET = 0.95  # share of the highest final score that figure 3 asks for

CONFIDENCE = 1 - LEVEL
SEED = 1  # of splits that are drawn; any would do, but the same table must come out of the same scores
DECIMALS = 9  # of percentage points: sums of floating-point numbers that agree in so many are equal
NOISE = 10**-DECIMALS
FINETUNE_SEED, PRETRAIN_SEED = "fine-tuning seed", "pre-training seed"

RESAMPLES = 10_000  # of the bootstrap
EQUIVALENT = 1.25  # equivalence margin of the ratio of two medians, either way
WITHIN = "within 25 %"  # the verdict on a ratio whose 90 % interval lies inside the margin


def final_scores(scores: pd.DataFrame, steps: int) -> pd.DataFrame:
    """The scores at the last step, and at step 0 those of models without pre-training; MissingInputError when they do
    not end at `steps`."""
    last = int(scores["step"].max()) if len(scores) else 0
    if last != steps:
        raise MissingInputError(f"scores: the last step is {last}, expected {steps}; fine-tune that checkpoint first")
    return scores[scores["step"].isin([0, steps])]


def glue_scores(scores: pd.DataFrame) -> pd.Series:
    """GLUE score in percent of each model, step and fine-tuning seed, or of another suite: the mean of its columns.

    The paper averages nine columns, MNLI's two as two; a column outside them (wnli, the user's own) is left out.
    """
    return mean_scores(scores[scores["column"].isin(COUNTED)])


def mean_scores(scores: pd.DataFrame) -> pd.Series:
    """The mean of all score columns in percent of each model, step and fine-tuning seed; NaN for a seed that lacks a
    column of the others."""
    seeds = scores.groupby(SEEDS, sort=False)["score"]
    return 100 * seeds.mean().where(seeds.count() == scores["column"].nunique())


def seed_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """All scores in percent, a row per model, step and fine-tuning seed.

    Columns are `glue_score` (of another suite's scores `<suite>_score`), where a column counts for it, and the score
    columns.
    """
    columns = 100 * scores.pivot(index=SEEDS, columns="column", values="score")
    name, mean = mean_of(scores), glue_scores(scores)
    rows = pd.MultiIndex.from_frame(scores[SEEDS].drop_duplicates())
    names = [*([name] if len(mean) else []), *dict.fromkeys(scores["column"])]
    return columns.assign(**{name: mean}).reindex(index=rows, columns=names)


def mean_of(scores: pd.DataFrame) -> str:
    """The name of the mean over the score columns of a table."""
    others = scores["column"].map(OTHER_COLUMNS).dropna()
    return others.iloc[0] if len(others) else "glue_score"


def stand_in_names(scores: pd.DataFrame) -> dict[str, str]:
    """New names for the score columns of stand-ins, and for the mean, where one of them counts for it."""
    stand_ins = dict.fromkeys(scores.loc[scores["stand_in"].astype(bool), "column"])
    means = [] if stand_ins.keys().isdisjoint(COUNTED) else [mean_of(scores)]
    return {name: f"{name}{STAND_IN}" for name in (*means, *stand_ins)}


@dataclass(frozen=True)
class Spread:
    """Mean over seeds, and the sample standard deviation (n−1), which one seed does not have."""

    mean: float
    deviation: float | None
    count: int


def spread(values: Iterable[float]) -> Spread:
    """Mean and sample standard deviation; any order of the same values gives the same numbers."""
    values = list(values)
    return Spread(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


class Interval(NamedTuple):
    """From the lower to the upper bound."""

    low: float
    high: float

    def includes(self, value: float) -> bool:
        """Whether the value lies inside or, but for floating-point noise, on a bound."""
        return self.low - NOISE <= value <= self.high + NOISE


def welch_interval(ours: Values, theirs: Values) -> Interval:
    """95 % interval of the difference of two means of normal values with variances of their own (Welch, "The
    generalization of Student's problem when several different population variances are involved", 1947)."""
    from scipy.stats import ttest_ind  # slow to load, and most tables need no test

    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # values that are all equal
        return Interval(*map(float, ttest_ind(ours, theirs, equal_var=False).confidence_interval(CONFIDENCE)))


def paired_interval(differences: Values) -> Interval:
    """95 % interval of the mean of paired differences (Student, "The probable error of a mean", 1908)."""
    from scipy.stats import ttest_1samp

    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        return Interval(*map(float, ttest_1samp(differences, 0).confidence_interval(CONFIDENCE)))


class Error(NamedTuple):
    """Of a difference of means: its standard error, and the degrees of freedom of that."""

    size: float
    freedom: float


def welch_error(ours: Values, theirs: Values) -> Error:
    """That of two groups, as Welch's interval has it."""
    squares = [float(values.var(ddof=1)) / len(values) for values in (ours, theirs)]
    if not sum(squares):
        return Error(0.0, len(ours) + len(theirs) - 2)
    parts = [square**2 / (len(values) - 1) for square, values in zip(squares, (ours, theirs), strict=True)]
    return Error(math.sqrt(sum(squares)), sum(squares) ** 2 / sum(parts))


def paired_error(differences: Values) -> Error:
    """That of paired differences, as Student's interval has it."""
    return Error(float(differences.std(ddof=1)) / math.sqrt(len(differences)), len(differences) - 1)


def permutation_test(ours: Values, theirs: Values) -> tuple[float, float]:
    """p of a two-sided test that the units of both models come from one distribution, and its smallest p.

    p is the share of all splits of the units into two groups of these sizes, 252 for 5 and 5, whose means are at least
    as far apart (Pitman, "Significance tests which may be applied to samples from any populations", 1937); ties count.
    Above 16,384 splits so many are drawn, and the observed one is counted among them: (1 + b)/(1 + B) (Phipson and
    Smyth, "Permutation p-values should never be zero", 2010). Of two groups of one size the test holds its level for
    large numbers of units even where the variances differ (Romano, "On the behavior of randomization tests without a
    group invariance assumption", 1990).
    """
    test = _permuted("independent", ours, theirs)
    if math.comb(len(ours) + len(theirs), len(ours)) > ARRANGEMENTS:
        return float(test.pvalue), 1 / (1 + ARRANGEMENTS)
    distances = test.null_distribution
    return float(test.pvalue), float((distances == distances.max()).mean())


def sign_flip_test(differences: Values) -> float:
    """p of a two-sided test that paired differences are as likely below zero as above.

    It is the share of all choices of signs, 32 of five differences, whose mean is at least as far from zero (Fisher,
    "The Design of Experiments", 1935); ties count. Of more than 14 differences choices are drawn as splits are.
    """
    return float(_permuted("samples", differences).pvalue)


def _permuted(kind: str, *samples: Values) -> Any:
    """The test of the distance of two means, or of one mean from zero, by scipy."""
    from scipy.stats import permutation_test  # slow to load, and most tables need no test

    def distance(*samples: Values, axis: int) -> Values:
        means = [sample.mean(axis=axis) for sample in samples]
        return np.abs(means[0] - (means[1] if len(means) > 1 else 0)).round(DECIMALS)

    # In the order of their values, so that drawn arrangements do not hang on the order of seeds.
    options = {"permutation_type": kind, "alternative": "greater", "n_resamples": ARRANGEMENTS, "rng": SEED}
    return permutation_test(tuple(map(np.sort, samples)), distance, vectorized=True, **options)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected for their number: of m, the i-th smallest becomes the largest of (m−j+1)·pⱼ up to j = i.

    At most one. Those at or below a level keep the chance of any false finding among the m at or below that level,
    however they depend on each other (Holm, "A simple sequentially rejective multiple test procedure", 1979).
    """
    given = np.asarray(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(1, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return corrected.tolist()


def p_in_words(p_value: float, decimals: int = 4) -> str:
    """A p value as cells and sentences have it: '0.0079', or '< 0.0001', as none is zero."""
    smallest = 10**-decimals
    return f"< {smallest:.{decimals}f}" if p_value < smallest else f"{p_value:.{decimals}f}"


@dataclass(frozen=True)
class Comparison:
    """A score of a model less that of its reference, in percentage points, over the seeds that both have; or a loss, in
    nats. Of fewer than three units there are neither intervals nor tests, of one no standard deviation, of none no
    difference."""

    size: str
    model: str
    reference: str
    score: str  # its column
    unit: str
    n: int  # units of each model
    difference: float | None = None  # of the means
    std: float | None = None  # of the differences of equal seeds
    interval: Interval | None = None  # 95 %: Welch's, of what is paired Student's
    errors: tuple[Error, ...] = ()  # of that interval; of scores paired by task, that of all fine-tunings, too
    p: float | None = None  # of the score that is tested: two-sided, of the permutation or the sign-flip test
    smallest_p: float | None = None  # that the test of so many units can give
    fine_tunings: int | None = None  # of each model, whose differences the test of scores paired by task counts
    holm_p: float | None = None  # with Holm's correction among the tested differences of a size from a reference
    detectable: float | None = None  # difference that a t test of so many units of this spread, at the level of the
    # smallest p in Holm's correction, finds with 80 % power; None where no difference can reach that level

    @property
    def is_significant(self) -> bool:
        """Whether the test, corrected, shows a difference; one of scores paired by task, which takes the tasks of a
        seed as independent, beside an interval over seeds, which does not."""
        shows = self.holm_p is not None and self.holm_p <= LEVEL + NOISE
        return shows and not (self.fine_tunings and self.interval and self.interval.includes(0))


def comparisons(scores: pd.DataFrame) -> list[Comparison]:
    """Every operator with `original`, and with the same operator without pre-training, where that was scored."""
    every = []
    for size, part in scores.groupby("size", sort=False):
        levels = ["attention", "step"]
        models = seed_scores(part).droplevel("size").groupby(level=levels, sort=False)
        models = {model: seeds.droplevel(levels) for model, seeds in models}
        last = max(step for _, step in models)
        trained = {attention: model for (attention, step), model in models.items() if step == last}
        others = [name for name in trained if name != "original" and "original" in trained]
        pairs = [(name, "original", trained[name], trained["original"]) for name in others]
        pairs += [(name, UNTRAINED, trained[name], models[name, 0]) for name in trained if (name, 0) in models]
        every += [comparison for pair in pairs for comparison in compared(size, *pair)]
    return corrected(every)


def headlines(pairs: Iterable[Comparison]) -> dict[str, str]:
    """The score of each size that is tested, its first: imported sizes may have different columns."""
    headline: dict[str, str] = {}
    for pair in pairs:
        headline.setdefault(pair.size, pair.score)
    return headline


def compared(size: str, model: str, reference: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[Comparison]:
    """A comparison per score, over the seeds in which both have it; the first score is tested, and p is not corrected.

    Scores that only one of the two has are dropped before fine-tuning seeds are averaged, so that both means are over
    the same seeds.
    """
    common = ours.index.intersection(theirs.index)
    unit = PRETRAIN_SEED if common.unique("pretrain_seed").size > 1 else FINETUNE_SEED
    for score in ours.columns if len(common) else ():
        both = pd.DataFrame({"ours": ours.loc[common, score], "theirs": theirs.loc[common, score]}).dropna()
        if unit == PRETRAIN_SEED:
            both = both.groupby(level="pretrain_seed", sort=False).mean()
        values, others, tests = both["ours"].to_numpy(), both["theirs"].to_numpy(), {}
        if len(both):
            over = spread((values - others).tolist())
            tests = {"difference": over.mean, "std": over.deviation}
        if len(both) >= FEWEST:
            tests |= {"interval": welch_interval(values, others), "errors": (welch_error(values, others),)}
            if score == ours.columns[0]:
                tests["p"], tests["smallest_p"] = permutation_test(values, others)
        yield Comparison(size, model, reference, score, unit, len(both), **tests)


def corrected(every: Iterable[Comparison], family: Sequence[str] = ("size", "reference")) -> list[Comparison]:
    """The same with Holm's correction and with what the tests can find; a family is all tested differences that are the
    same in some fields."""
    of = attrgetter(*family)
    every, families = list(every), defaultdict(list)
    for pair in every:
        families[of(pair)] += [] if pair.p is None else [pair.p]
    p_values = {key: iter(holm(of_family)) for key, of_family in families.items()}
    return [
        pair
        if pair.p is None
        else replace(pair, holm_p=next(p_values[of(pair)]), detectable=_detectable(pair, len(families[of(pair)])))
        for pair in every
    ]


def _detectable(pair: Comparison, count: int) -> float | None:
    """The difference that a test finds with 80 % power among so many; None where none can be significant, and where
    nothing varies."""
    if not any(error.size for error in pair.errors) or count * pair.smallest_p > LEVEL + NOISE:
        return None
    return max(detectable_effect(*error, LEVEL / count) for error in pair.errors)


def paired_comparisons(scores: pd.DataFrame, foreign: Sequence[str]) -> list[Comparison]:
    """Each foreign model, and each model of ours at the last step, less the first foreign one, which is the reference.

    `scores` are of one suite, `foreign` the names of foreign models in their order. The unit is a fine-tuning seed: of
    an equal one both models see a task's rows in the same order, and draw the head from the same numbers. The score of
    several pre-training seeds is their mean. So all is said of these checkpoints on these tasks: neither tasks nor
    pre-trainings are sampled.

    The interval is Student's, of the mean difference over fine-tuning seeds. The first score, the mean of the columns
    that count where some do, has a sign-flip test over all fine-tunings, one per seed and task. Its null hypothesis is
    "no difference on any of these tasks": each difference is as likely below zero as above, and independent of the
    others. Then all choices of signs are as likely, and p is the share of those whose mean is at least as far from
    zero. Columns of one fine-tuning (MNLI's two) have one sign. Of the wider hypothesis that differences of tasks
    cancel out in their mean, p is too large rather than too small: what tasks differ in counts as noise.

    The test takes fine-tunings of one seed on several tasks as independent, although their heads are drawn from the
    same numbers. The interval does not, so `is_significant` asks for both.
    """
    is_foreign = scores["size"].eq("") & scores["attention"].isin(foreign)
    chosen = scores[is_foreign | (scores["step"].eq(scores["step"].max()) & scores["size"].ne(""))]
    seeds = seed_scores(chosen).groupby(level=["size", "attention", "finetune_seed"], sort=False)
    means = seeds.agg(lambda runs: runs.mean(skipna=False))
    models = {model: of.droplevel([0, 1]) for model, of in means.groupby(level=[0, 1], sort=False)}
    present = [name for name in foreign if ("", name) in models]
    if not present:
        return []
    (first, *rest), tasks = present, dict(zip(chosen["column"], chosen["task"], strict=True))
    ours = [*(("", name) for name in rest), *(model for model in models if model[0])]
    every = [pair for model in ours for pair in _paired(*model, first, models[model] - models["", first], tasks)]
    return corrected(every, family=["reference"])


def _paired(
    size: str, model: str, reference: str, differences: pd.DataFrame, tasks: Mapping[str, str]
) -> Iterator[Comparison]:
    """A comparison per score, from differences by fine-tuning seed; the first score is tested by the columns that count
    for it, of these tasks."""
    headline = differences.columns[0]
    counted = [headline] if headline in tasks else [column for column in differences if column in COUNTED]
    known = differences[counted].dropna()
    of_tasks = known.T.groupby(tasks).sum().to_numpy().ravel()  # a value per fine-tuning
    for score in differences:
        values, tests = differences[score].dropna().to_numpy(), {}
        if len(values):
            over = spread(values.tolist())
            tests = {"difference": over.mean, "std": over.deviation}
        if len(values) >= FEWEST:
            tests |= {"interval": paired_interval(values), "errors": (paired_error(values),)}
            if score == headline:
                tests["errors"] += (paired_error(of_tasks * (len(of_tasks) / known.size)),)  # each as part of the mean
                tests |= {"p": sign_flip_test(of_tasks), "smallest_p": smallest_sign_flip_p(len(of_tasks))}
                tests["fine_tunings"] = len(of_tasks)
        yield Comparison(size, model, reference, score, FINETUNE_SEED, len(values), **tests)


def curves_of(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """GLUE scores of one size by operator: a row per pre-training seed, a column per step, means over fine-tuning."""
    means = glue_scores(scores).groupby(["attention", "pretrain_seed", "step"], sort=False).mean().dropna()
    curves = means.groupby(level="attention", sort=False)
    return {attention: curve.droplevel("attention").unstack("step").sort_index(axis=1) for attention, curve in curves}


def mean_curves(scores: pd.DataFrame) -> tuple[dict[str, pd.Series], float]:
    """GLUE scores of one size by operator and step, means over seeds, and the line of Figure 3: 95 % of the highest
    final score among the operators compared; NaN where nothing counts."""
    means = {attention: seeds.mean().dropna() for attention, seeds in curves_of(scores).items()}
    last = scores["step"].max()
    return means, TARGET * max([mean[last] for mean in means.values() if last in mean], default=math.nan)


@dataclass(frozen=True)
class Crossing:
    """The first pair of neighbouring checkpoints between which a curve reaches the line."""

    before: int | None  # last step below the line; None when the first checkpoint is on or above it
    after: int | None  # first step on or above the line; None when no checkpoint is
    step: float  # where the straight line between the two meets it

    @property
    def in_words(self) -> str:
        """'32,799 (30,000–35,000)'."""
        if self.after is None:
            return f"> {self.before:,}"
        if self.before is None:
            return f"≤ {self.after:,}"
        return f"{self.step:,.0f} ({self.before:,}–{self.after:,})"


def first_crossing(steps: Sequence[int], scores: Sequence[float], line: float) -> Crossing | None:
    """Where the curve first reaches the line, or None; later returns below the line do not matter."""
    reached = next((index for index, score in enumerate(scores) if score >= line), None)
    if reached is None:
        return None
    if reached == 0:
        return Crossing(None, steps[0], float(steps[0]))
    before, after = steps[reached - 1], steps[reached]
    share = (line - scores[reached - 1]) / (scores[reached] - scores[reached - 1])
    return Crossing(before, after, before + share * (after - before))


def crossing_of(curve: pd.Series, line: float) -> Crossing:
    """Where a curve over steps first reaches the line; where it does not, after its last step: `step` is infinite."""
    return first_crossing(list(curve.index), list(curve), line) or Crossing(int(curve.index[-1]), None, math.inf)


class Escape(NamedTuple):
    """When a run escapes the plateau: later than one evaluation, and not later than the next."""

    before: float  # step; 0 where there is no evaluation before, the last step where there is none after
    at: float  # step; infinite where it has not escaped

    @property
    def step(self) -> int | None:
        """The step of the evaluation; None where it has not escaped."""
        return int(self.at) if math.isfinite(self.at) else None

    @property
    def in_words(self) -> str:
        """'825', '≤ 500' of an escape before the first evaluation, '> 1,800' of none within so many steps."""
        if self.step is None:
            return f"> {self.before:,.0f}"
        return f"{'' if self.before else '≤ '}{self.step:,}"

    @property
    def in_a_sentence(self) -> str:
        """'at step 825', 'at or before step 500' or 'not within 1,800 steps'."""
        if self.step is None:
            return f"not within {self.before:,.0f} steps"
        return f"at {'' if self.before else 'or before '}step {self.step:,}"


@dataclass(frozen=True)
class Escapes:
    """The escapes of the runs of a model from the plateau, one per pre-training seed, each between two evaluations."""

    before: Values  # as in `Escape`
    at: Values
    diverged: NDArray[np.bool_]  # whether a run has escaped and its last loss is above the level again

    @property
    def escaped(self) -> NDArray[np.bool_]:
        """Which runs have escaped."""
        return np.isfinite(self.at)

    @property
    def median(self) -> Escape:
        """Between which evaluations at least half of the runs have escaped for the first time."""
        return Escape(float(median_escape(self.before)), float(median_escape(self.at)))

    @property
    def range(self) -> tuple[Escape, Escape]:
        """The first escape and the last one."""
        return Escape(self.before.min(), self.at.min()), Escape(self.before.max(), self.at.max())

    @property
    def in_words(self) -> str:
        """The median escape and its range over seeds: '825 (700 to > 1,800)'."""
        median, earliest, latest = (escape.in_words for escape in (self.median, *self.range))
        return median if earliest == latest else f"{median} ({earliest} to {latest})"


def escapes_of(losses: pd.DataFrame, level: float) -> Escapes:
    """The escapes of the seeds of a model, from losses by seed and step: each at its first evaluation at or below the
    level (nats)."""
    is_below = losses.to_numpy() <= level
    first = np.c_[is_below, np.ones(len(losses), bool)].argmax(axis=1)
    steps = np.array([0, *losses.columns, math.inf])
    return Escapes(steps[first], steps[first + 1], is_below.any(axis=1) & ~is_below[:, -1:].any(axis=1))


def median_escape(steps: Values) -> Values:
    """The first step at which at least half of the runs have escaped, over the last axis. Equal to the median of the
    Kaplan–Meier curve where all runs have the same length."""
    ordered = np.sort(steps, axis=-1)
    return ordered[..., (ordered.shape[-1] + 1) // 2 - 1]


@dataclass(frozen=True)
class EscapeComparison:
    """The escapes of two models compared."""

    seeds: int  # of each
    ratio: float  # of the medians, the first by the second; NaN where one is not between two evaluations
    low: float  # 95 % bounds of the ratio, wherever the escapes lie between their evaluations
    high: float
    narrow_low: float  # 90 % bounds, which decide equivalence
    narrow_high: float
    p_value: float  # of the log-rank test, two-sided
    holm_p_value: float  # with Holm's correction over the comparisons that belong together
    detectable_ratio: float = math.nan  # that so many seeds of this spread find with 80 % power; NaN: not known

    @property
    def in_words(self) -> str:
        """'ratio of medians 0.70, 95 % interval 0.66 to 0.73', or 'ratio of medians, 95 % interval below 0.28'."""
        bounds = f"{self.low:.2f} to {self.high:.2f}"
        if math.isinf(self.high) or not self.low:
            bounds = f"above {self.low:.2f}" if self.low else f"below {self.high:.2f}"
        return f"ratio of medians{'' if math.isnan(self.ratio) else f' {self.ratio:.2f}'}, 95 % interval {bounds}"

    @property
    def verdict(self) -> str:
        """shorter, longer, within 25 % or undecided, by the corrected p value and the bounds of the ratio.

        Only p is corrected for the number of comparisons: "within 25 %" is not. Of few seeds always undecided.
        """
        if self.seeds < FEWEST_ESCAPES:
            return "undecided"
        if self.holm_p_value <= LEVEL and (self.high < 1 or self.low > 1):
            return "shorter" if self.high < 1 else "longer"
        is_within = self.narrow_low > 1 / EQUIVALENT and self.narrow_high < EQUIVALENT
        return WITHIN if is_within else "undecided"


def compare_escapes(pairs: Iterable[tuple[Escapes, Escapes]]) -> list[EscapeComparison]:
    """Compare pairs of models, whose runs have the same seeds in the same order; p is corrected for their number.

    The bounds are those of a percentile bootstrap over seeds, which draws the runs of a seed together: they saw the
    same batches and masks. The lower one is of ratios of the evaluation before the first median escape to that at the
    second, the higher one of the evaluation at the first to that before the second. Two one-sided tests of equivalence
    at 5 % are a 90 % interval within the bounds (Schuirmann 1987).
    """
    pairs = list(pairs)
    results = [_compare(*pair) for pair in pairs]
    corrected = holm([result.p_value for result in results])
    ratios = [_detectable_ratio(*pair, LEVEL / len(pairs)) for pair in pairs]
    return [
        replace(result, holm_p_value=p_value, detectable_ratio=ratio)
        for result, p_value, ratio in zip(results, corrected, ratios, strict=True)
    ]


def _detectable_ratio(first: Escapes, second: Escapes, level: float) -> float:
    """The ratio below one, or above one its inverse, that a paired t test of the logarithms of escapes finds with 80 %
    power; NaN where a run has not escaped, or before the first evaluation, where nothing varies, and of fewer than five
    seeds."""
    steps = np.array([[each.before, each.at] for each in (first, second)])
    if len(first.at) < FEWEST_ESCAPES or not (steps.all() and np.isfinite(steps).all()):
        return math.nan
    error = paired_error(np.log(steps[0, 1] / steps[1, 1]))
    return math.exp(-detectable_effect(*error, level)) if error.size else math.nan


def _compare(first: Escapes, second: Escapes) -> EscapeComparison:
    from scipy.stats import CensoredData, logrank  # slow to load, and most reports compare nothing

    def bounds_of(ours: Values, theirs: Values, *shares: float) -> list[float]:
        ratios = median_escape(ours[drawn]) / median_escape(theirs[drawn])
        return np.quantile(ratios, shares, method="inverted_cdf").tolist()

    count = len(first.at)
    drawn = np.random.default_rng(0).integers(0, count, (RESAMPLES, count))
    medians = first.median, second.median
    are_known = all(median.before and median.step is not None for median in medians)
    ratio = medians[0].at / medians[1].at if are_known else math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        low, narrow_low = bounds_of(first.before, second.at, LEVEL / 2, LEVEL)
        high, narrow_high = bounds_of(first.at, second.before, 1 - LEVEL / 2, 1 - LEVEL)
        censored = (
            CensoredData(uncensored=each.at[each.escaped], right=each.before[~each.escaped]) for each in (first, second)
        )
        p_value = float(logrank(*censored).pvalue)  # NaN where no run, or every run at once, escapes
    p_value = p_value if np.isfinite(p_value) else 1.0
    return EscapeComparison(count, ratio, low, high, narrow_low, narrow_high, p_value, p_value)


def shared_escapes(first: tuple[pd.DataFrame, float], second: tuple[pd.DataFrame, float]) -> tuple[Escapes, Escapes]:
    """The escapes of two models, of the losses and the level of each, by the evaluations that both have."""
    steps = first[0].columns.intersection(second[0].columns)
    return escapes_of(first[0][steps], first[1]), escapes_of(second[0][steps], second[1])


Losses = Mapping[tuple[str, str], pd.DataFrame]  # by size and operator: a row per pre-training seed, a column per step
Contrast = tuple[str, str, str]  # size, operator and reference


def escape_contrasts(
    losses: Losses, level: float, named: Sequence[Sequence[str]] | None
) -> dict[Contrast, EscapeComparison]:
    """The escapes of models compared, corrected within a size.

    `named` are the pairs that were named beforehand; None compares each operator with the first of its size.
    """
    contrasts: dict[Contrast, EscapeComparison] = {}
    for _, group in groupby(_pairs(losses, named), key=lambda pair: pair[0][0]):
        pairs = {pair: shared_escapes((ours, level), (theirs, level)) for pair, ours, theirs in group}
        contrasts |= zip(pairs, compare_escapes(pairs.values()), strict=True)
    return contrasts


def loss_contrasts(losses: Losses, named: Sequence[Sequence[str]] | None) -> list[Comparison]:
    """The last validation losses (nats) of the pairs of `escape_contrasts`, paired by pre-training seed: runs of a seed
    start from equal shared parameters, and see the same batches and masks."""
    return corrected([_of_losses(*pair) for pair in _pairs(losses, named)], family=["size"])


def loss_differences(pairs: Iterable[tuple[pd.DataFrame, pd.DataFrame]]) -> list[Comparison]:
    """The last validation losses (nats) of pairs of models, whose runs have the same seeds in the same order; p is
    corrected for their number."""
    return corrected([_of_losses(("", "", ""), *pair) for pair in pairs])


def _of_losses(names: Contrast, ours: pd.DataFrame, theirs: pd.DataFrame) -> Comparison:
    values = (ours.iloc[:, -1] - theirs.iloc[:, -1]).to_numpy()
    over, tests = spread(values), {"interval": paired_interval(values), "p": sign_flip_test(values)}
    tests |= {"errors": (paired_error(values),), "smallest_p": smallest_sign_flip_p(len(values))}
    unit = ("validation_loss", PRETRAIN_SEED, over.count)
    return Comparison(*names, *unit, over.mean, over.deviation, **tests)


def _pairs(
    losses: Losses, named: Sequence[Sequence[str]] | None
) -> Iterator[tuple[Contrast, pd.DataFrame, pd.DataFrame]]:
    """The losses of operators and their references, size by size, where both have the same three seeds or more."""
    for size, model, other in contrasts_of(losses, named):
        ours, theirs = losses[size, model], losses[size, other]
        if len(ours) >= FEWEST and ours.index.equals(theirs.index):
            yield (size, model, other), ours, theirs


def contrasts_of(losses: Losses, named: Sequence[Sequence[str]] | None) -> Iterator[Contrast]:
    """The operators and references that were named, or each operator and the first, size by size."""
    for size in dict.fromkeys(size for size, _ in losses):
        names = [name for of, name in losses if of == size]
        for model, other in [(name, names[0]) for name in names[1:]] if named is None else named:
            yield size, model, other
