"""Against scipy, and bit for bit against scikit-learn."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from symbert.errors import SymbertError
from symbert.glue.metrics import METRICS, hashed, macro_f1, majority, read_kept
from symbert.glue.tasks import GLUE, SUITES

grades = st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=2, max_size=40)


@given(grades)
def test_correlations_are_those_of_scipy_and_zero_for_constants(pairs):
    labels, predictions = (np.array(side, float) for side in zip(*pairs, strict=True))
    constant = len(set(labels)) == 1 or len(set(predictions)) == 1
    for name, theirs in (("pearson", pearsonr), ("spearman", spearmanr)):
        expected = 0.0 if constant else theirs(labels, predictions).statistic
        assert METRICS[name](labels, predictions) == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40))
def test_metrics_of_classes_are_those_of_scikit_learn_to_the_last_bit(pairs):
    """Scores of before came from scikit-learn: those of today stand beside them."""
    labels, predictions = (np.array(side) for side in zip(*pairs, strict=True))
    assert METRICS["accuracy"](labels, predictions) == accuracy_score(labels, predictions)
    assert METRICS["matthews"](labels, predictions) == matthews_corrcoef(labels, predictions)
    assert macro_f1(labels, predictions) == pytest.approx(
        f1_score(labels, predictions, average="macro", zero_division=0)
    )
    labels, predictions = labels % 2, predictions % 2
    assert METRICS["f1"](labels, predictions) == f1_score(labels, predictions, zero_division=0)


def test_the_baseline_is_the_majority_class_of_training_rows_of_equal_ones_that_which_scores_best():
    """It used to take the first, which has no F1: half of what always answering "equivalent" gets."""
    training, labels = np.array([0, 0, 1]), np.array([1, 1, 1, 0])
    assert majority(GLUE["rte"], training, labels) == {"accuracy": 0.25}
    assert majority(GLUE["cola"], training, labels) == {"matthews": 0.0}
    assert majority(GLUE["stsb"], training, labels) == {"pearson": 0.0, "spearman": 0.0}
    balanced = np.array([0, 1] * 10)
    assert majority(GLUE["mrpc"], balanced, balanced) == {"accuracy": 0.5, "f1": pytest.approx(2 / 3)}


def test_the_baseline_of_choices_is_the_place_where_the_right_answer_stands_most_often_in_training():
    training, truth = (
        np.array([(at // 3, at % 3 == right[at // 3]) for at in range(9)], [("group", int), ("label", int)])
        for right in ([1, 0, 1], [1, 1, 0])
    )
    assert majority(SUITES["superglue"].tasks["copa"], training, truth) == {"chosen_right": pytest.approx(2 / 3)}


def test_a_record_comes_back_and_a_flipped_digit_is_found(tmp_path):
    file = tmp_path / "seed-1.json"
    file.write_text(json.dumps(hashed({"score": 0.25})))
    kind = msgspec.defstruct("Content", [("score", float)])
    assert read_kept(file, kind) == kind(0.25)
    file.write_text(file.read_text().replace("0.25", "0.35"))
    with pytest.raises(SymbertError, match=r"seed-1\.json: sha256 expected .*; delete it and run again"):
        read_kept(file, kind)
