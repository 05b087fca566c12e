"""The two-constant theory of docs/findings/theory.md: how far weights travel until query and key overlap.

A weight moves by its learning rate per step, so progress is a distance. In one dimension of a head, query q and key k
start as N(0, deviation²), each moves by the sign of the other one, and the plateau ends when the mean of q·k reaches a
target.
"""

import math

import numpy as np
import pandas as pd
from scipy.optimize import brentq, fsolve
from scipy.stats import norm

from studies.outcomes import COPIES, LAYERS, RATES, at, markdown

NORMAL = norm.ppf((1 + (np.arange(100) + 0.5) / 100) / 2)  # |N(0, 1)| as 100 equally probable values
DEVIATION = 0.07  # of weights at the narrow start
HIDDEN, HEAD = 64, 32
NARROW, WIDE = HIDDEN * DEVIATION**2, HEAD**0.5 * HIDDEN * DEVIATION**2  # widths of the logits of distinct tokens
TIED = NARROW * (1 + (HEAD + 1) / HIDDEN) ** 0.5  # as the diagonal of W Wᵀ is of squares, which add up


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


def numbers_of(runs: pd.DataFrame) -> dict[str, str]:
    """What the theory says after its constants were fitted to `original`, beside what was seen, and widths of a tie."""
    lines, misses = [], []
    for place in (*RATES.values(), COPIES[4], COPIES[8]):
        seen = at(runs, study="plateau", **place).groupby("attention")["distance"].mean()
        constants = fitted(seen["original"], seen["original-wide"])
        ties = [escape(deviation_of(width), *constants, tied=True) for width in (NARROW, WIDE)]
        misses.append(abs(ties[0] / seen["symmetric"] - 1))
        name = f"{LAYERS[place['size']]} layers, rate {place['learning_rate']:g}"
        cells = [f"{ties[0]:.3f}", f"{seen['symmetric']:.3f}", f"{ties[1]:.3f}", f"{seen['symmetric-wide']:.3f}"]
        lines.append([name, f"{constants[0]:.2f}", f"{constants[1]:.3f}", *cells])
    ties_of = ["`symmetric`: predicted", "seen", "`symmetric-wide`: predicted", "seen"]
    seen = at(runs, study="plateau", text="copying-48", size="tiny").groupby(["learning_rate", "attention"])["distance"]
    seen = seen.mean()
    consistency, target = fitted(seen[1e-3, "original"], seen[1e-3, "original-wide"])
    distances = {
        "original-symmetric:predicted": escape(DEVIATION, consistency, target, tied=True),
        "original-symmetric:seen": seen[1e-3, "original-symmetric"],
        "original-unscaled:predicted": escape(DEVIATION, consistency, target / HEAD**0.5),
        "original-unscaled:seen": seen[1e-3, "original-unscaled"],
        "original-5e-4:seen": seen[5e-4, "original"],
        "original-2e-3:seen": seen[2e-3, "original"],
    }
    return {
        "theory": markdown(["runs on copies", "c", "t", *ties_of], lines),
        "theory:largest-miss": f"{math.ceil(100 * max(misses))} %",
        "theory:earliest": f"{seen.min():.2f}",
        **{f"theory:{name}": f"{distance:.3f}" for name, distance in distances.items()},
        "width:symmetric": f"{TIED:.2f}",
        "width:symmetric/original": f"{TIED / NARROW:.2f}",
        "width:pairwise/symmetric": f"{WIDE / TIED:.1f}",
        "width:pairwise/original": f"{WIDE / NARROW:.1f}",
    }
