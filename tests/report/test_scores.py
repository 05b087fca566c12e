"""Score files become one table, or an error that says what is wrong with them."""

import itertools

import pytest

from symbert.errors import DataError, IntegrityError
from symbert.glue.metrics import checked, hashed
from symbert.report.collect import read_scores

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


FIRST = "tiny-pairwise, pretrain_seed 1, step 1800, mrpc"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda records: records.pop(0), f"scores: missing: {FIRST}, finetune_seed 2;"),
        (lambda records: records.append(records[0]), f"duplicate: {FIRST}, finetune_seed 2 is there 2 times"),
        (
            lambda records: records.append(records[0] | {"task": "rte"}),
            "unexpected: tiny-pairwise, pretrain_seed 1, step 1800, rte",
        ),
        (
            lambda records: records[0].update(settings_hash="bbbb"),
            f"other settings_hash: {FIRST}, finetune_seed 2 has bbbb",
        ),
        (
            lambda records: records[0].update(version=2),
            f"other version: {FIRST}, finetune_seed 2 has 2, expected 1",
        ),
        (
            lambda records: records[2]["metrics"].pop("mnli_mismatched"),
            "step 1800, mnli, finetune_seed 2, mnli_mismatched",
        ),
    ],
)
def test_a_cell_that_is_missing_twice_stale_or_no_number_is_named(records, write_scores, damage, told):
    damage(records)
    assert told in problem(write_scores(records))


def test_a_task_of_ones_own_has_settings_of_its_own_beside_those_of_the_suite(records, write_scores):
    """Its rows are another step, of which no other task may be."""
    mine = {"task": "mine", "metrics": {"mine": 0.6}, "majority": {"mine": 0.5}, "data_sha256": "mine"}
    own = [entry | mine | {"settings_hash": "bbbb"} for entry in records if entry["task"] == "mrpc"]
    assert len(read_scores(write_scores(records + own), [*TASKS, "mine"], SEEDS)) == 2 * 2 * 2 * 4
    own[0]["settings_hash"] = "aaaa"
    with pytest.raises(DataError, match="other settings_hash: .* mine, .* has aaaa, expected bbbb"):
        read_scores(write_scores(records + own), [*TASKS, "mine"], SEEDS)


def test_a_table_that_lacks_a_wanted_run_is_refused(records, write_scores):
    """What was asked for was told by the files alone."""
    wanted = [("tiny", "original", 1), ("tiny", "pairwise", 1)]
    assert len(read_scores(write_scores(records), TASKS, SEEDS, runs=wanted)) == 2 * 2 * 2 * 3
    with pytest.raises(
        DataError, match="missing: tiny-low_rank8, pretrain_seed 1, step 300, mnli, finetune_seed 1, mnli_matched"
    ):
        read_scores(write_scores(records), TASKS, SEEDS, runs=[*wanted, ("tiny", "low_rank8", 1)])


def test_a_score_of_other_rows_or_another_precision_than_the_rest_is_stale(records, write_scores):
    """Settings do not show it: another file of the same task, or another machine."""
    for key, other, words in (
        ("data_sha256", "b" * 64, "has bbbbbbbbbbbbbbbb, expected mrpc rows"),
        ("precision", "bf16", "has bf16, expected fp32"),
    ):
        mixed = [dict(entry) for entry in records]
        for entry in mixed:
            if (entry["attention"], entry["step"], entry["task"]) == ("original", 300, "mrpc"):
                entry[key] = other
        message = problem(write_scores(mixed))
        for seed in SEEDS:
            assert (
                f"other {key}: tiny-original, pretrain_seed 1, step 300, mrpc, finetune_seed {seed} {words}" in message
            )
        alike = write_scores([entry | {key: other} for entry in mixed])
        assert len(read_scores(alike, TASKS, SEEDS)) == 24


def test_a_value_of_another_type_or_that_is_no_score_is_named(records, write_scores):
    metrics = [("metrics", {"mrpc": score}) for score in ("0.5", True, -1.5, 87.3)]
    others = ("size", None), ("attention", ["original"]), ("step", True), ("partial", None), ("settings_hash", 7)
    for key, value in (*metrics, *others):
        with pytest.raises(DataError, match=rf"\.json: '\[0\]\.{key}.*': expected"):
            read_scores(write_scores([records[0] | {key: value}]), TASKS, SEEDS)


def test_a_flipped_digit_of_a_published_score_does_not_go_into_the_tables(records, write_scores):
    """A score of the right type and range was taken for the one that was written; a record without a hash still is."""
    records[0] = hashed(records[0])
    intact = read_scores(write_scores(records), TASKS, SEEDS)
    assert intact.equals(read_scores(write_scores([checked(record, "", "") for record in records]), TASKS, SEEDS))
    column = next(iter(records[0]["metrics"]))
    records[0]["metrics"] = {**records[0]["metrics"], column: 0.123}
    with pytest.raises(IntegrityError, match=r"\.json: record \d+: sha256 expected .*; delete it"):
        read_scores(write_scores(records), TASKS, SEEDS)
