"""Exits from the plateau by the rule that the report had when the studies were declared, and their comparison.

These are secondary analyses of the studies. Today's report has escapes, by a level of the loss.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import CensoredData, logrank

from symbert.report.statistics import LEVEL, RESAMPLES, EscapeComparison, holm, median_escape

PLATEAU_HEIGHT = 0.02  # share of the loss by which a plateau must stand out


def plateau_exit(steps: Sequence[int], losses: Sequence[float]) -> int | None:
    """The first evaluation after the initial plateau, or None for a curve that has none or never leaves it.

    Draw the loss over the logarithm of the step, and a straight line from some evaluation to the last one:
    learning that slows down like a power of the step stays below such lines, a plateau that ends in a fall
    bulges above them. The plateau's last evaluation is where the bulge above the highest-standing line is largest; it
    must be more than 2 % of the loss there, or it is noise. An evaluation that alone is so much above the ones before
    and after it is a spike, and left out.
    """
    loss = np.asarray(losses, dtype=float)
    if len(loss) < 3:
        return None
    above_neighbours = loss[1:-1] - np.maximum(loss[:-2], loss[2:])
    is_kept = np.r_[True, above_neighbours <= PLATEAU_HEIGHT * loss[1:-1], True]
    steps, loss = np.asarray(steps)[is_kept].tolist(), loss[is_kept]
    position = np.log(np.asarray(steps, dtype=float))
    distance, above = (position[-1] - position)[:-1], (loss - loss[-1])[:-1]
    lowest = np.minimum.accumulate(above / distance)  # slope of the line that an evaluation stands highest above
    height = above - lowest * distance
    last = int(height.argmax())
    return steps[last + 1] if height[last] > PLATEAU_HEIGHT * loss[last] else None


Exits = tuple[np.ndarray, np.ndarray]  # of runs: the step of the exit or the last step, and whether the run left


def compare_exits(pairs: Iterable[tuple[Exits, Exits]]) -> list[EscapeComparison]:
    """Compare pairs of models, whose runs have the same seeds in the same order: the ratio of the median exits with a
    percentile bootstrap over seeds, and a log-rank test, corrected for the number of pairs."""
    results = [_compare(*pair) for pair in pairs]
    corrected = holm([result.p_value for result in results])
    return [replace(result, holm_p_value=p_value) for result, p_value in zip(results, corrected, strict=True)]


def _compare(*pair: Exits) -> EscapeComparison:
    first, second = (np.where(left, steps, np.inf) for steps, left in pair)
    drawn = np.random.default_rng(0).integers(0, len(first), (RESAMPLES, len(first)))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = median_escape(first[drawn]) / median_escape(second[drawn])
        ratio = float(median_escape(first) / median_escape(second))
        p_value = float(
            logrank(*(CensoredData(uncensored=steps[left], right=steps[~left]) for steps, left in pair)).pvalue
        )
    if np.isnan(ratios).mean() > LEVEL / 2:  # both medians are never: nothing is known of their ratio
        bounds = [0.0, np.inf, 0.0, np.inf]
    else:
        shares = [LEVEL / 2, 1 - LEVEL / 2, LEVEL, 1 - LEVEL]
        bounds = np.quantile(ratios[~np.isnan(ratios)], shares, method="inverted_cdf").tolist()
    p_value = p_value if np.isfinite(p_value) else 1.0
    return EscapeComparison(len(first), ratio, *bounds, p_value, p_value)
