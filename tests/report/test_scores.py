"""Score files become one table, or an error that says what is wrong with them."""

import itertools
import json
import random

import pytest

from symbert.errors import DataError
from symbert.report.scores import majority_of, read_scores

TASKS, SEEDS = ["mrpc", "mnli"], [1, 2]


@pytest.fixture
def records(record):
    """Two operators, two steps, two seeds, two tasks."""
    axes = itertools.product(["pairwise", "original"], [1800, 300], TASKS, [2, 1])
    return [record("tiny", attention, step, task, seed) for attention, step, task, seed in axes]


def problem(files):
    with pytest.raises(DataError) as caught:
        read_scores(files, TASKS, SEEDS)
    assert "\n" not in str(caught.value) and str(caught.value).endswith("run the finetune rule for these again")
    return str(caught.value)


def test_there_is_a_row_per_score_column_in_a_fixed_order(records, write_scores):
    table = read_scores(write_scores(records), TASKS, SEEDS)
    assert len(table) == 2 * 2 * 2 * 3, "mnli has two columns"
    assert list(table["attention"].unique()) == ["original", "pairwise"]
    assert list(table["step"][:12]) == [300] * 6 + [1800] * 6
    assert list(table["column"][:6]) == [*["mrpc"] * 2, *["mnli_matched", "mnli_mismatched"] * 2]


def test_the_order_of_files_and_records_does_not_matter(records, write_scores):
    expected = read_scores(write_scores(records), TASKS, SEEDS)
    random.Random(1).shuffle(records)
    files = write_scores(records)
    assert read_scores(files[::-1], TASKS, SEEDS).equals(expected)


def test_a_missing_cell_is_named(records, write_scores):
    lost = records.pop(5)
    name = f"tiny-{lost['attention']}/seed-1/step-{lost['step']}/{lost['task']} finetune_seed {lost['finetune_seed']}"
    assert problem(write_scores(records)).startswith(f"scores: missing: {name};")


def test_a_model_that_lacks_a_checkpoint_is_named(records, write_scores):
    message = problem(write_scores([r for r in records if (r["attention"], r["step"]) != ("original", 300)]))
    assert message.count("missing: tiny-original/seed-1/step-300/") == 4


def test_only_the_wanted_seeds_count_and_each_of_them_is_needed(records, write_scores):
    files = write_scores([entry for entry in records if entry["step"] == 1800 or entry["finetune_seed"] == 1])
    assert set(read_scores(files, TASKS, [1])["finetune_seed"]) == {1}
    assert problem(files).count("missing: ") == 4, "two models and two tasks lack seed 2 at step 300"


def test_a_duplicate_cell_is_named(records, write_scores):
    assert "duplicate: tiny-pairwise/seed-1/step-1800/mrpc finetune_seed 2 is there 2 times" in problem(
        write_scores([*records, records[0]])
    )


def test_seeds_of_different_settings_are_stale(records, write_scores):
    records[0]["settings_hash"] = "bbbb"
    assert "stale: tiny-pairwise/seed-1/step-1800/mrpc has settings aaaa and bbbb" in problem(write_scores(records))


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), 87.3, None, "0.5"])
def test_a_score_that_is_no_number_between_minus_one_and_one_is_named(records, write_scores, score):
    records[0]["metrics"] = {"mrpc": score}
    message = problem(write_scores(records))
    assert f"not a score: tiny-pairwise/seed-1/step-1800/mrpc finetune_seed 2 mrpc is {score}" in message


def test_a_record_without_one_of_its_columns_is_named(records, write_scores):
    del records[2]["metrics"]["mnli_mismatched"]
    assert "incomplete: tiny-pairwise/seed-1/step-1800/mnli finetune_seed 2 has columns mnli_matched" in problem(
        write_scores(records)
    )


def test_a_task_outside_the_experiment_is_named(records, record, write_scores):
    message = problem(write_scores([*records, record("tiny", "original", 300, "rte", 1)]))
    assert "unexpected: tiny-original/seed-1/step-300/rte finetune_seed 1 is not among" in message


def test_many_problems_are_counted_not_all_listed(record, write_scores):
    records = [record("tiny", "original", step, "mrpc", 1) for step in range(10)]
    assert "; and 10 more; run" in problem(write_scores(records)), "per step, mrpc lacks a seed and mnli two"


def test_files_of_another_shape_are_refused_by_name(tmp_path):
    file = tmp_path / "mrpc.json"
    for content, expected in (
        ({"size": "tiny"}, "a list of score records, found dict"),
        ([{}], "record 1 has no 'size'"),
    ):
        file.write_text(json.dumps(content))
        with pytest.raises(DataError, match=expected) as caught:
            read_scores([file], TASKS, SEEDS)
        assert str(file) in str(caught.value)


def test_the_majority_baseline_is_one_number_per_column(records, write_scores):
    assert majority_of(read_scores(write_scores(records), TASKS, SEEDS)) == dict.fromkeys(
        ["mrpc", "mnli_matched", "mnli_mismatched"], 0.5
    )


def test_models_scored_on_different_rows_are_refused(records, write_scores):
    records[0]["majority"] = {"mrpc": 0.25}
    with pytest.raises(DataError, match=r"column mrpc has majority baselines 0\.2500 and 0\.5000"):
        majority_of(read_scores(write_scores(records), TASKS, SEEDS))
