"""How long runs stay on the plateau: right-censored times, as in any study of survival.

A run that leaves the plateau has the step of its exit, by the one rule of the report (`plateau_exit`). One that stays
is censored at its last step: all that is known is that its exit would come later.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbert.report.inference import LEVEL

FEWEST = 5  # seeds of which anything is said
RESAMPLES = 10_000  # of the bootstrap
EQUIVALENT = 1.25  # equivalence margin of the ratio of two medians, either way
WITHIN = "within 25 %"  # the verdict on a ratio whose 90 % interval lies inside the margin

Steps = NDArray[np.float64]


@dataclass(frozen=True)
class Exits:
    """The exits of the runs of one cell, one per seed."""

    steps: Steps  # of the exit, or the last step that a run on the plateau was seen at
    left: NDArray[np.bool_]  # whether a run leaves the plateau

    @classmethod
    def of(cls, exits: Sequence[int | None], last: Sequence[int]) -> "Exits":
        """From exits, None for a run that stays, and the last step that each run was seen at."""
        return cls(
            np.array([seen if step is None else step for step, seen in zip(exits, last, strict=True)], float),
            np.array([step is not None for step in exits]),
        )

    @property
    def censored(self) -> Any:
        """As scipy takes them: `scipy.stats.CensoredData`."""
        from scipy.stats import CensoredData  # slow to load, and one seed per operator needs it not

        return CensoredData(uncensored=self.steps[self.left], right=self.steps[~self.left])

    @property
    def median(self) -> int | None:
        """The first step at which at most half of the runs are on the plateau; None where more than half stay."""
        median = float(median_exit(self.steps, self.left))
        return int(median) if math.isfinite(median) else None

    @property
    def earliest(self) -> int | None:
        """The first exit; None where no run leaves."""
        return int(self.steps[self.left].min()) if self.left.any() else None

    @property
    def latest(self) -> int | None:
        """The last exit; None where a run stays."""
        return int(self.steps.max()) if self.left.all() else None


def survival_curve(exits: Exits) -> tuple[Steps, Steps]:
    """Steps, and the share of runs that is still on the plateau after each (Kaplan and Meier 1958)."""
    from scipy.stats import ecdf

    survival = ecdf(exits.censored).sf
    return survival.quantiles, survival.probabilities


def median_exit(steps: Steps, left: NDArray[np.bool_]) -> Steps:
    """The first step at which at most half of the runs are on the plateau, over the last axis; infinite for never.

    Equal to the median of the Kaplan–Meier curve where all runs have the same length. One that diverged is shorter, and
    counts as never.
    """
    ordered = np.sort(np.where(left, steps, np.inf), axis=-1)
    return ordered[..., (ordered.shape[-1] + 1) // 2 - 1]


@dataclass(frozen=True)
class ExitComparison:
    """Two cells compared."""

    seeds: int  # of each
    ratio: float  # of the medians, the first by the second; infinite or 0 where one of them is never; NaN where both
    low: float  # 95 % bounds of the ratio
    high: float
    narrow_low: float  # 90 % bounds, which decide equivalence
    narrow_high: float
    p_value: float  # of the log-rank test, two-sided

    def verdict(self, corrected: float) -> str:
        """shorter, longer, within 25 % or undecided, by the corrected p value and the bounds of the ratio.

        Only p is corrected for the number of comparisons: "within 25 %" is not.

        Of fewer than five seeds always undecided: a bootstrap of three has ten different draws, and its bounds are too
        narrow.
        """
        if self.seeds < FEWEST:
            return "undecided"
        if corrected <= LEVEL and (self.high < 1 or self.low > 1):
            return "shorter" if self.high < 1 else "longer"
        is_within = self.narrow_low > 1 / EQUIVALENT and self.narrow_high < EQUIVALENT
        return WITHIN if is_within else "undecided"


def compare(first: Exits, second: Exits, seed: int = 0) -> ExitComparison:
    """Compare two cells whose runs have the same seeds in the same order.

    The interval is that of a percentile bootstrap over seeds, which draws the runs of a seed together: they saw the
    same batches and masks. Two one-sided tests of equivalence at 5 % are a 90 % interval within the bounds (Schuirmann
    1987).
    """
    from scipy.stats import logrank

    count = len(first.steps)
    drawn = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = median_exit(first.steps[drawn], first.left[drawn]) / median_exit(
            second.steps[drawn], second.left[drawn]
        )
        ratio = float(median_exit(first.steps, first.left) / median_exit(second.steps, second.left))
    if np.isnan(ratios).mean() > LEVEL / 2:  # both medians are never: nothing is known of their ratio
        bounds = [0.0, np.inf, 0.0, np.inf]
    else:
        shares = [LEVEL / 2, 1 - LEVEL / 2, LEVEL, 1 - LEVEL]
        bounds = np.quantile(ratios[~np.isnan(ratios)], shares, method="inverted_cdf").tolist()
    with np.errstate(invalid="ignore"):  # no run, or every run at once, leaves: there is nothing to compare
        p_value = logrank(first.censored, second.censored).pvalue
    return ExitComparison(count, ratio, *bounds, float(p_value) if np.isfinite(p_value) else 1.0)
