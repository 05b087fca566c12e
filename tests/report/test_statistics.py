"""GLUE score, spread, crossing and plateau, against the standard library, the paper and the authors' data."""

import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.errors import MissingInputError
from symbert.report import published
from symbert.report.scores import read_scores
from symbert.report.statistics import (
    Crossing,
    final_scores,
    first_crossing,
    glue_scores,
    plateau_exit,
    spread,
    task_scores,
)

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
finite = st.floats(-1, 1, allow_nan=False)


@given(st.lists(finite, min_size=2, max_size=6), st.randoms())
def test_spread_is_the_standard_librarys_in_any_order(values, order):
    shuffled = order.sample(values, len(values))
    found = spread(shuffled)
    assert (found.mean, found.deviation) == (statistics.mean(values), statistics.stdev(values))
    assert (found.lowest, found.highest, found.count) == (min(values), max(values), len(values))


def test_the_glue_score_counts_mnli_twice_and_the_mean_of_tasks_once(record, write_scores):
    values = dict(zip(published.COLUMNS, [0.1, 0.2, 0.9, 0.7, 0.3, 0.4, 0.5, 0.6, 0.8], strict=True))
    records = []
    for task in TASKS:
        columns = record("tiny", "original", 1, task, 1)["metrics"]
        records.append(record("tiny", "original", 1, task, 1, metrics={key: values[key] for key in columns}))
    table = read_scores(write_scores(records), TASKS, [1])
    assert glue_scores(table).tolist() == pytest.approx([100 * sum(values.values()) / 9])
    assert task_scores(table).tolist() == pytest.approx([100 * (sum(values.values()) - 0.8) / 8])


def test_final_scores_are_those_of_the_last_step_and_of_no_pre_training(record, write_scores):
    table = read_scores(write_scores([record("tiny", "original", step, "rte", 1) for step in (0, 5, 9)]), ["rte"], [1])
    assert final_scores(table, 9)["step"].tolist() == [0, 9]
    for scores in (table, table.head(0)):
        with pytest.raises(MissingInputError, match=r"the last step is \d, expected 12; fine-tune that"):
            final_scores(scores, 12)


def test_wnli_does_not_count(record, write_scores):
    records = [record("tiny", "original", 1, "mrpc", 1, 0.5)]
    records.append(
        record("tiny", "original", 1, "rte", 1) | {"task": "wnli", "metrics": {"wnli": 0.9}, "majority": {"wnli": 0.5}}
    )
    table = read_scores(write_scores(records), ["mrpc", "wnli"], [1])
    assert glue_scores(table).tolist() == task_scores(table).tolist() == [50.0]


def test_the_authors_raw_results_give_table_3_to_the_last_digit(authors_final, write_scores):
    table = read_scores(write_scores(authors_final), TASKS, [1, 2, 3, 4, 5])
    for attention, scores in glue_scores(table).groupby("attention"):
        found = spread(scores)
        columns = 100 * table[table["attention"] == attention].groupby("column")["score"].mean()
        means = [columns[column] for column in published.COLUMNS]
        expected = published.SCORES["base", attention]
        assert [round(value, 2) for value in (found.mean, found.deviation, *means)] == list(expected)
        assert found.count == published.FINETUNE_SEEDS


def test_the_authors_raw_results_give_the_means_of_eight_tasks(authors_final, write_scores):
    means = task_scores(read_scores(write_scores(authors_final), TASKS, [1, 2, 3, 4, 5])).groupby("attention").mean()
    assert means.round(2).to_dict() == {"original": 78.35, "symmetric": 74.31, "pairwise": 79.06}


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=8, unique=True).map(sorted), st.integers(1, 1000))
def test_on_a_curve_that_only_rises_the_crossing_is_that_of_numpys_interpolation(scores, line):
    steps = [10 * number for number in range(1, len(scores) + 1)]
    found = first_crossing(steps, scores, line)
    assert found is None if line > max(scores) else found.step == pytest.approx(np.interp(line, scores, steps))


def test_a_curve_may_start_on_the_line_or_never_reach_it():
    assert first_crossing([5, 6], [3.0, 1.0], 3.0) == Crossing(None, 5, 5.0)
    assert first_crossing([5, 6], [1.0, 2.0], 3.0) is None


@given(st.lists(finite, min_size=1, max_size=8), finite)
def test_a_crossing_lies_between_its_checkpoints_and_everything_before_is_below(scores, line):
    steps = [10 * number for number in range(1, len(scores) + 1)]
    found = first_crossing(steps, scores, line)
    reached = [step for step, score in zip(steps, scores, strict=True) if score >= line]
    assert (found.after if found else None) == (reached[0] if reached else None)
    if found and found.before is not None:
        assert found.before <= found.step <= found.after == found.before + 10


def test_the_authors_curves_leave_the_plateau_where_the_drop_begins(authors_losses):
    steps = list(range(250, 200_001, 250))
    exits = {model: plateau_exit(steps, losses) for model, losses in authors_losses.items()}
    assert [exits["base", name] for name in ("original", "symmetric", "pairwise")] == [26_750, 14_250, 11_750]
    assert [exits["small", name] for name in ("original", "symmetric", "pairwise")] == [12_000, 11_500, 9_500]
    for model, printed in published.PLATEAU_EXITS.items():
        assert abs(exits[model] - printed) <= 1_750, "the paper reads its figure by eye"


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


def test_a_curve_that_stays_on_the_plateau_or_never_had_one_has_no_exit():
    steps = list(range(50, 1801, 50))
    for seed in range(20):
        assert plateau_exit(*demo_curve(1750, 5.6, seed=seed)) is None
    assert plateau_exit(steps, [2 + 5 * (step / 50) ** -0.3 for step in steps]) is None
    assert plateau_exit([50, 100], [6.0, 5.0]) is None


def test_the_exit_is_the_evaluation_after_the_highest_bulge_of_a_naive_search():
    for seed in range(5):
        steps, losses = demo_curve(700, 4.8, noise=0.05, seed=seed)
        heights = {}
        for first in range(len(steps) - 1):
            for at in range(first, len(steps) - 1):
                line = np.interp(math.log(steps[at]), np.log([steps[first], steps[-1]]), [losses[first], losses[-1]])
                heights[at] = max(heights.get(at, 0.0), losses[at] - line)
        assert plateau_exit(steps, losses) == steps[max(heights, key=heights.get) + 1]


@pytest.mark.parametrize("plateau", [[5.0] * 6, [5.6, 5.3, 5.1, 5.05, 5.02, 5.0]])
def test_a_lone_spike_is_no_exit(plateau):
    """One evaluation of 9.0 stood above every line, so that the run "left its plateau" after it."""
    steps = list(range(50, 1850, 50))
    flat = [*plateau, *[5.0] * 14, *[4.9] * 16]
    assert plateau_exit(steps, flat) is None
    for at in range(1, len(flat) - 1):
        assert plateau_exit(steps, [*flat[:at], 9.0, *flat[at + 1 :]]) is None, at
    assert plateau_exit(steps[:3], [5.0, 9.0, 4.9]) is None


def test_a_lone_spike_does_not_move_an_exit():
    steps = list(range(50, 1050, 50))
    losses = [5.6, *[5.5] * 9, *[4.0, 3.0, 2.6, 2.5], *[2.4] * 6]
    assert plateau_exit(steps, losses) == 550
    for at in (1, 4, 8, 12, 15, 18):
        assert plateau_exit(steps, [*losses[:at], 9.0, *losses[at + 1 :]]) == 550, at
