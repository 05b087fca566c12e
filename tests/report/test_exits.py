"""Exits from the plateau of random falling curves beside a search over all straight lines; last scores."""

import numpy as np
import pandas as pd
import pytest

from symbert.errors import MissingInputError
from symbert.report.statistics import exits_of, final_scores, plateau_exit


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


def test_the_exit_of_falling_curves_is_that_of_a_search_over_all_lines():
    draw, exits = np.random.default_rng(0), []
    for _ in range(300):
        steps = sorted(draw.choice(np.arange(1, 200), draw.integers(3, 12), replace=False).tolist())
        losses = sorted(draw.uniform(2, 2.0 + draw.choice([0.1, 1, 5]), len(steps)).tolist(), reverse=True)
        exits.append(naive_exit(steps, losses))
        assert plateau_exit(steps, losses) == exits[-1], (steps, losses)
    assert None in exits and len(set(exits)) > 50


def test_a_run_that_never_leaves_was_last_seen_on_the_plateau_at_its_last_step():
    leaving, staying = [5.0, 5.0, 5.0, 3.0, 2.0], [5.0] * 5
    exits = exits_of(pd.DataFrame([leaving, staying], index=[1, 2], columns=[10, 20, 30, 40, 50]))
    assert exits.steps.tolist() == [plateau_exit([10, 20, 30, 40, 50], leaving), 50] and exits.steps[0] < 50
    assert exits.left.tolist() == [True, False]


def test_without_any_score_the_last_step_is_said_to_be_missing():
    with pytest.raises(MissingInputError, match="the last step is 0, expected 20"):
        final_scores(pd.DataFrame({"step": []}), 20)
