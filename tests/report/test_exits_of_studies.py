"""The exits of the studies' secondary analyses: the rule finds what curves were made to do, and is that of a search."""

import math
import random

import numpy as np
import pytest

from studies.exits import plateau_exit


def demo_curve(leaves, end, noise=0.01, seed=0):
    """A curve like the demo's: 6.9, a plateau near 5.6, a fall from step `leaves` to `end` at step 1,800."""
    source = random.Random(seed)
    steps = list(range(50, 1801, 50))
    losses = []
    for step in steps:
        fallen = 1 - math.exp(-max(0, step - leaves) / 900)
        share = fallen / (1 - math.exp(-(1800 - leaves) / 900))
        losses.append(5.6 + 1.3 * math.exp(-step / 60) - (5.6 - end) * share + source.gauss(0, noise))
    return steps, losses


@pytest.mark.parametrize("leaves", [500, 600, 800, 1000, 1400])
@pytest.mark.parametrize("end", [4.7, 4.8, 4.9])
def test_a_demo_curve_leaves_the_plateau_within_two_evaluations_of_where_it_was_made_to(leaves, end):
    for seed in range(5):
        assert abs(plateau_exit(*demo_curve(leaves, end, seed=seed)) - leaves) <= 100


@pytest.mark.parametrize("plateau", [[5.0] * 6, [5.6, 5.3, 5.1, 5.05, 5.02, 5.0]])
def test_a_lone_spike_is_no_exit(plateau):
    """One evaluation of 9.0 stood above every line, so that the run "left its plateau" after it."""
    steps = list(range(50, 1850, 50))
    flat = [*plateau, *[5.0] * 14, *[4.9] * 16]
    assert plateau_exit(steps, flat) is None
    for at in range(1, len(flat) - 1):
        assert plateau_exit(steps, [*flat[:at], 9.0, *flat[at + 1 :]]) is None, at
    assert plateau_exit(steps[:3], [5.0, 9.0, 4.9]) is None


def naive_exit(steps: list[int], losses: list[float]) -> int | None:
    """The evaluation after the highest bulge above a line over log steps, from any evaluation to the last one; None
    where the bulge has at most 2 % of the loss."""
    heights = []
    for at in range(len(steps) - 1):
        lines = [
            np.interp(np.log(steps[at]), np.log([steps[first], steps[-1]]), [losses[first], losses[-1]])
            for first in range(at + 1)
        ]
        heights.append(losses[at] - min(lines))
    last = int(np.argmax(heights))
    return steps[last + 1] if heights[last] > 0.02 * losses[last] else None


def test_the_exit_of_falling_and_of_noisy_curves_is_that_of_a_search_over_all_lines():
    for seed in range(5):
        curve = demo_curve(700, 4.8, noise=0.05, seed=seed)
        assert plateau_exit(*curve) == naive_exit(*curve)
    draw, exits = np.random.default_rng(0), []
    for _ in range(300):
        steps = sorted(draw.choice(np.arange(1, 200), draw.integers(3, 12), replace=False).tolist())
        losses = sorted(draw.uniform(2, 2.0 + draw.choice([0.1, 1, 5]), len(steps)).tolist(), reverse=True)
        exits.append(naive_exit(steps, losses))
        assert plateau_exit(steps, losses) == exits[-1], (steps, losses)
    assert None in exits and len(set(exits)) > 50
