"""The two-constant theory of docs/findings/theory.md: how far weights travel until query and key overlap.

A weight moves by its learning rate per step, so progress is a distance. In one dimension of a head, query q and key k
start as N(0, deviation²), each moves by the sign of the other one, and the plateau ends when the mean of q·k reaches a
target.
"""

import numpy as np
from scipy.optimize import brentq, fsolve
from scipy.stats import norm

NORMAL = norm.ppf((1 + (np.arange(100) + 0.5) / 100) / 2)  # |N(0, 1)| as 100 equally probable values
DEVIATION = 0.07  # of weights at the narrow start
NARROW, WIDE = 64 * DEVIATION**2, 32**0.5 * 64 * DEVIATION**2  # widths of the logits: hidden size 64, heads of 32


def deviation_of(width: float) -> float:
    """The deviation of query and key of `original` whose logits start with a width."""
    return DEVIATION * (width / NARROW) ** 0.5


def overlap(distance: float, deviation: float, tied: bool = False) -> float:
    """The mean of q·k after both sides have moved a distance; k = q where they are tied."""
    if tied:
        return float(np.mean((NORMAL * deviation + distance) ** 2))
    query, key = np.meshgrid(NORMAL * deviation, NORMAL * deviation)
    agreeing = (query + distance) * (key + distance)
    small, large = np.minimum(query, key), np.maximum(query, key)  # of opposite signs, until the small one is zero
    before, after = -(query - distance) * (key - distance), (large - 2 * small + distance) * (distance - small)
    return float(np.mean(agreeing + np.where(distance < small, before, after)) / 2)


def escape(deviation: float, consistency: float, target: float, tied: bool = False) -> float:
    """The integrated learning rate at which the overlap reaches its target."""
    if overlap(0, deviation, tied) >= target:
        return 0.0
    return brentq(lambda distance: overlap(distance, deviation, tied) - target, 0, 9) / consistency


def fitted(narrow: float, wide: float) -> tuple[float, float]:
    """Consistency and target with which `original` escapes at these two integrated rates."""

    def errors(logarithms: np.ndarray) -> list[float]:
        constants = np.exp(logarithms)
        return [escape(deviation_of(NARROW), *constants) - narrow, escape(deviation_of(WIDE), *constants) - wide]

    consistency, target = np.exp(fsolve(errors, np.log([0.4, 0.025]), xtol=1e-10))
    return float(consistency), float(target)
