"""Score files become one table, or an error that says what is wrong with them."""

import itertools
import json

import pytest

from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.glue.metrics import checked, hashed
from symbert.report.collect import majority_of, read_scores

TASKS, SEEDS = ["mrpc", "mnli"], [1, 2]


@pytest.fixture
def records(record):
    """Two operators, two steps, two seeds, two tasks."""
    axes = itertools.product(["pairwise", "original"], [1800, 300], TASKS, [2, 1])
    return [record("tiny", attention, step, task, seed) for attention, step, task, seed in axes]


def problem(files, *arguments):
    with pytest.raises(DataError) as caught:
        read_scores(files, TASKS, SEEDS, *arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_there_is_a_row_per_score_column_in_a_fixed_order(records, write_scores):
    table = read_scores(write_scores(records), TASKS, SEEDS)
    assert len(table) == 2 * 2 * 2 * 3, "mnli has two columns"
    assert list(table["attention"].unique()) == ["original", "pairwise"]
    assert list(table["step"][:12]) == [300] * 6 + [1800] * 6
    assert list(table["column"][:6]) == [*["mrpc"] * 2, *["mnli_matched", "mnli_mismatched"] * 2]


FIRST = "tiny-pairwise/seed-1/step-1800/mrpc"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda records: records.pop(0), f"scores: missing: {FIRST} finetune_seed 2;"),
        (lambda records: records.append(records[0]), f"duplicate: {FIRST} finetune_seed 2 is there 2 times"),
        (
            lambda records: records.append(records[0] | {"task": "rte"}),
            "unexpected: tiny-pairwise/seed-1/step-1800/rte",
        ),
        (
            lambda records: records[0].update(settings_hash="bbbb"),
            f"other settings_hash: {FIRST} finetune_seed 2 has bbbb",
        ),
        (
            lambda records: records[2]["metrics"].pop("mnli_mismatched"),
            "step-1800/mnli finetune_seed 2 mnli_mismatched",
        ),
        *(
            (
                lambda records, score=score: records[0].update(metrics={"mrpc": score}),
                f"not a score: {FIRST} finetune_seed 2 is {score}",
            )
            for score in (float("nan"), -float("inf"), 87.3)
        ),
    ],
)
def test_a_cell_that_is_missing_twice_stale_or_no_number_is_named(records, write_scores, damage, told):
    damage(records)
    assert told in problem(write_scores(records), "aaaa")


def test_a_table_that_lacks_a_wanted_run_is_refused(records, write_scores):
    """What was asked for was told by the files alone."""
    wanted = [("tiny", "original", 1), ("tiny", "pairwise", 1)]
    assert len(read_scores(write_scores(records), TASKS, SEEDS, runs=wanted)) == 2 * 2 * 2 * 3
    with pytest.raises(DataError, match="missing: tiny-low_rank8/seed-1/step-300/mnli finetune_seed 1 mnli_matched"):
        read_scores(write_scores(records), TASKS, SEEDS, runs=[*wanted, ("tiny", "low_rank8", 1)])


def test_only_the_wanted_seeds_count_and_each_of_them_is_needed(records, write_scores):
    files = write_scores([entry for entry in records if entry["step"] == 1800 or entry["finetune_seed"] == 1])
    assert set(read_scores(files, TASKS, [1])["finetune_seed"]) == {1}
    assert problem(files).count("missing: ") == 6, "two models lack three columns of seed 2 at step 300"


def test_a_score_of_other_settings_than_the_reports_is_stale(records, write_scores):
    """All seeds of a cell may be stale alike, which nothing but the report's settings tells."""
    assert len(read_scores(write_scores(records), TASKS, SEEDS, "aaaa")) == 24
    for entry in records:
        if entry["attention"] == "pairwise" and entry["step"] == 300:
            entry["settings_hash"] = "bbbb"
    files = write_scores(records)
    message = problem(files, "aaaa")
    assert "other settings_hash: tiny-pairwise/seed-1/step-300/mrpc finetune_seed 1 has bbbb" in message
    assert message.count("other settings_hash: ") == len(SEEDS) * 3


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("data_sha256", "has bbbbbbbbbbbbbbbb, expected mrpc rows"),
        ("precision", "has bf16, expected fp32"),
        ("attention_dropout", "has 0.125, expected 0.1"),
    ],
)
def test_a_score_of_other_rows_another_precision_or_dropout_than_the_rest_is_stale(records, write_scores, key, words):
    """Settings do not show it: another file of the same task, or another machine (two dropouts shared a table)."""
    other = {"data_sha256": "b" * 64, "precision": "bf16", "attention_dropout": 0.125}[key]
    for entry in records:
        entry.setdefault("attention_dropout", 0.1)
        if (entry["attention"], entry["step"], entry["task"]) == ("original", 300, "mrpc"):
            entry[key] = other
    message = problem(write_scores(records), "aaaa")
    for seed in SEEDS:
        assert f"other {key}: tiny-original/seed-1/step-300/mrpc finetune_seed {seed} {words}" in message
    for entry in records:
        entry[key] = other
    assert len(read_scores(write_scores(records), TASKS, SEEDS, "aaaa")) == 24


@pytest.mark.parametrize("content", [{"size": "tiny"}, [{}], [None]])
def test_files_of_another_shape_are_refused_by_name(tmp_path, content):
    file = tmp_path / "mrpc.json"
    file.write_text(json.dumps(content))
    with pytest.raises(DataError, match=f"^{file}: "):
        read_scores([file], TASKS, SEEDS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("size", None),
        ("attention", ["original"]),
        ("step", True),
        ("metrics", {"mrpc": "0.5"}),
        ("metrics", {"mrpc": True}),
        ("partial", None),
        ("settings_hash", 7),
    ],
)
def test_a_value_of_another_type_is_named(records, write_scores, key, value):
    records[0][key] = value
    with pytest.raises(DataError, match=rf"\.json: has the \[0\]\.{key}"):
        read_scores(write_scores(records[:1]), TASKS, SEEDS)


@pytest.mark.parametrize("seeds", [[], [3, 4]])
def test_without_a_score_of_the_wanted_seeds_there_is_no_table(records, write_scores, seeds):
    with pytest.raises(MissingInputError) as caught:
        read_scores(write_scores(records), TASKS, seeds)
    assert str(caught.value) == f"scores: no record is of fine-tuning seeds {seeds}; choose among [1, 2]"


def test_a_flipped_digit_of_a_published_score_does_not_go_into_the_tables(records, write_scores):
    """A score of the right type and range was taken for the one that was written; a record without a hash still is."""
    records[0] = hashed(records[0])
    intact = read_scores(write_scores(records), TASKS, SEEDS)
    assert intact.equals(read_scores(write_scores([checked(record, "", "") for record in records]), TASKS, SEEDS))
    column = next(iter(records[0]["metrics"]))
    records[0]["metrics"] = {**records[0]["metrics"], column: 0.123}
    with pytest.raises(IntegrityError, match=r"\.json: record \d+: sha256 expected .*; delete it"):
        read_scores(write_scores(records), TASKS, SEEDS)


def test_the_majority_baseline_is_one_number_per_column(records, write_scores):
    assert majority_of(read_scores(write_scores(records), TASKS, SEEDS)) == dict.fromkeys(
        ["mrpc", "mnli_matched", "mnli_mismatched"], 0.5
    )


def test_models_scored_on_different_rows_are_refused(records, write_scores):
    records[0]["majority"] = {"mrpc": 0.25}
    assert "other majority: " in problem(write_scores(records))
