"""Scores of questions with several answers against a loop over the questions, and records that were damaged."""

import json

import numpy as np
import pytest

from symbert.errors import SymbertError
from symbert.glue.metrics import chosen_credit, chosen_right, hashed, majority, read_kept, whole_groups
from symbert.glue.tasks import task_named

ANSWER = [("group", np.int64), ("label", np.int64), ("credit", np.float64)]


def test_metrics_of_questions_equal_a_loop_over_them():
    draw = np.random.default_rng(0)
    for _ in range(100):
        sizes = draw.integers(1, 5, 6)
        truth = np.zeros(sizes.sum(), ANSWER)
        truth["group"], truth["label"] = np.repeat(np.arange(1, 7), sizes), draw.integers(0, 2, len(truth))
        truth["credit"], ranks = draw.random(len(truth)), draw.permutation(len(truth)).astype(float)
        classes = np.where(draw.random(len(truth)) < 0.8, truth["label"], 1 - truth["label"])
        questions = [np.flatnonzero(truth["group"] == group) for group in range(1, 7)]
        best = [rows[ranks[rows].argmax()] for rows in questions]
        whole = [bool((classes[rows] == truth["label"][rows]).all()) for rows in questions]
        assert whole_groups(truth, classes) == pytest.approx(np.mean(whole))
        assert chosen_right(truth, ranks) == pytest.approx(truth["label"][best].mean())
        assert chosen_credit(truth, ranks) == pytest.approx(truth["credit"][best].mean())


def two_answers(right: list[int]) -> np.ndarray:
    """Questions with two answers each, of which the right one stands at these places."""
    rows = np.zeros(2 * len(right), ANSWER)
    rows["group"], rows["label"] = np.repeat(np.arange(len(right)), 2), np.equal.outer(right, [0, 1]).ravel()
    return rows


@pytest.mark.parametrize(("training", "score"), [([1, 1, 0], 0.75), ([0, 1, 0], 0.25), ([0, 1], 0.75)])
def test_the_baseline_of_choices_takes_the_place_where_right_answers_stand_most_often(training, score):
    """Of places that are equally frequent the better one counts."""
    assert list(majority(task_named("copa"), two_answers(training), two_answers([1, 1, 0, 1])).values()) == [score]


def test_a_record_comes_back_and_a_flipped_digit_is_found(tmp_path):
    file = tmp_path / "seed-1.json"
    file.write_text(json.dumps(hashed({"score": 0.25})))
    assert read_kept(file, {"score": float}) == {"score": 0.25}
    file.write_text(file.read_text().replace("0.25", "0.35"))
    with pytest.raises(SymbertError, match=r"seed-1\.json: sha256 expected .*; delete it and run again"):
        read_kept(file, {"score": float})
    file.write_text(json.dumps(hashed({"score": "high"})))
    with pytest.raises(SymbertError, match=r"seed-1\.json: "):
        read_kept(file, {"score": float})
