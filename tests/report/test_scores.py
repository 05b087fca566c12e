"""Score files become one table, or an error that says what is wrong with them."""

import itertools
import json

import pytest

from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.glue.metrics import checked, hashed
from symbert.report.scores import majority_of, read_scores

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
        (lambda records: records.append(records[0] | {"task": "rte"}), "step-1800/rte finetune_seed 2 is not among"),
        (lambda records: records[0].update(settings_hash="bbbb"), f"stale: {FIRST} has settings aaaa and bbbb"),
        (lambda records: records[0].update(settings_hash=None), f"stale: {FIRST} has settings None and aaaa"),
        (lambda records: records[2]["metrics"].pop("mnli_mismatched"), "finetune_seed 2 has columns mnli_matched"),
        *(
            (
                lambda records, score=score: records[0].update(metrics={"mrpc": score}),
                f"not a score: {FIRST} finetune_seed 2 mrpc is {score}",
            )
            for score in (float("nan"), -float("inf"), 87.3, None, "0.5", True)
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
    with pytest.raises(DataError, match="missing: tiny-low_rank8/seed-1, every score"):
        read_scores(write_scores(records), TASKS, SEEDS, runs=[*wanted, ("tiny", "low_rank8", 1)])


def test_only_the_wanted_seeds_count_and_each_of_them_is_needed(records, write_scores):
    files = write_scores([entry for entry in records if entry["step"] == 1800 or entry["finetune_seed"] == 1])
    assert set(read_scores(files, TASKS, [1])["finetune_seed"]) == {1}
    assert problem(files).count("missing: ") == 4, "two models and two tasks lack seed 2 at step 300"


def test_a_score_of_other_settings_than_the_reports_is_stale(records, write_scores):
    """All seeds of a cell may be stale alike, which nothing but the report's settings tells."""
    assert len(read_scores(write_scores(records), TASKS, SEEDS, "aaaa")) == 24
    for entry in records:
        if entry["attention"] == "pairwise" and entry["step"] == 300:
            entry["settings_hash"] = "bbbb"
    files = write_scores(records)
    message = problem(files, "aaaa")
    assert "stale: tiny-pairwise/seed-1/step-300/mrpc has settings bbbb, expected aaaa; " in message
    assert message.count("stale: ") == len(TASKS)
    assert len(read_scores(files, TASKS, SEEDS)) == 24, "a report without settings of its own compares none"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("data_sha256", "tiny-original/seed-1/step-300/mrpc has data_sha256 bbbbbbbb, most have mrpc row;"),
        ("precision", "tiny-original/seed-1/step-300/mrpc has precision bf16, most have fp32;"),
        ("attention_dropout", "tiny-original/seed-1/step-300/mrpc has attention_dropout 0.125, most have 0.1;"),
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
    assert f"stale: {words}" in message and message.count("stale: ") == 1
    for entry in records:
        entry[key] = other
    assert len(read_scores(write_scores(records), TASKS, SEEDS, "aaaa")) == 24


@pytest.fixture
def imported_records(records):
    """The same scores, as they are imported."""
    unknown = dict.fromkeys(("settings_hash", "majority", "constant_prediction"))
    own = ("checkpoint_sha256", "data_sha256", "precision")
    return [{key: value for key, value in entry.items() if key not in own} | unknown for entry in records]


def test_imported_scores_have_no_settings_no_majority_and_no_constant_predictions(imported_records, write_scores):
    scores = read_scores(write_scores(imported_records), TASKS, SEEDS)
    assert majority_of(scores) == {} and scores["majority"].isna().all()
    assert scores["constant_prediction"].isna().all() and not scores["stand_in"].any()


def test_an_imported_score_may_be_missing_and_one_of_several_columns_too(imported_records, write_scores):
    """It was the end of every table."""
    *others, last = (entry for entry in imported_records[1:] if entry["task"] == "mnli")
    last["metrics"] = {"mnli_matched": 0.25}
    scores = read_scores(write_scores([*others, last]), TASKS, SEEDS)
    assert len(scores) == 2 * len(others) + 1
    assert scores.loc[scores["score"] == 0.25, "column"].tolist() == ["mnli_matched"]


def test_an_imported_score_that_is_there_twice_or_of_no_column_is_refused(imported_records, write_scores):
    remedy = "these scores are imported: import a directory that has each of them once"
    with pytest.raises(DataError, match=f"duplicate: .*; {remedy}"):
        read_scores(write_scores([*imported_records, imported_records[0]]), TASKS, SEEDS)
    for metrics in ({}, {"mrpc": 0.5, "other": 0.5}):
        imported_records[0]["metrics"] = metrics
        with pytest.raises(DataError, match=f"incomplete: .* has columns .*; {remedy}"):
            read_scores(write_scores(imported_records), TASKS, SEEDS)


def test_missing_cells_may_be_allowed_and_nothing_else(records, write_scores):
    files = write_scores([entry for entry in records if entry != records[3]])
    lost = 2 if records[3]["task"] == "mnli" else 1
    assert len(read_scores(files, TASKS, SEEDS, "aaaa", True)) == 24 - lost
    records[0]["metrics"] = {"mrpc": float("nan")}
    assert problem(write_scores(records), "aaaa", True).startswith("scores: not a score: ")


def test_files_of_another_shape_are_refused_by_name(tmp_path):
    file = tmp_path / "mrpc.json"
    for content, expected in (
        ({"size": "tiny"}, "a list of score records, found dict"),
        ([{}], "score record 1 has no 'size'"),
        ([None], "score record 1 is None, expected an object"),
    ):
        file.write_text(json.dumps(content))
        with pytest.raises(DataError, match=expected) as caught:
            read_scores([file], TASKS, SEEDS)
        assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("size", None),
        ("attention", ["original"]),
        ("step", True),
        ("metrics", None),
        ("partial", None),
        ("settings_hash", 7),
    ],
)
def test_a_value_of_another_type_is_named(records, write_scores, key, value):
    records[0][key] = value
    with pytest.raises(DataError, match="score record 1 has the") as caught:
        read_scores(write_scores(records[:1]), TASKS, SEEDS)
    assert f" has the {key} {value!r}" in str(caught.value)


@pytest.mark.parametrize("seeds", [[], [3, 4]])
def test_without_a_score_of_the_wanted_seeds_there_is_no_table(records, write_scores, seeds):
    for allow_missing in (False, True):
        with pytest.raises(MissingInputError) as caught:
            read_scores(write_scores(records), TASKS, seeds, None, allow_missing)
        assert str(caught.value) == f"scores: no record is of fine-tuning seeds {seeds}; choose among [1, 2]"


def test_a_flipped_digit_of_a_published_score_does_not_go_into_the_tables(records, write_scores):
    """A score of the right type and range was taken for the one that was written; a record without a hash still is."""
    records[0] = hashed(records[0])
    intact = read_scores(write_scores(records), TASKS, SEEDS)
    assert intact.equals(read_scores(write_scores([checked(record, "", "") for record in records]), TASKS, SEEDS))
    column = next(iter(records[0]["metrics"]))
    records[0]["metrics"] = {**records[0]["metrics"], column: 0.123}
    with pytest.raises(IntegrityError, match=r"\.json: score record \d+: sha256 expected .*; delete it"):
        read_scores(write_scores(records), TASKS, SEEDS)


def test_the_majority_baseline_is_one_number_per_column(records, write_scores):
    assert majority_of(read_scores(write_scores(records), TASKS, SEEDS)) == dict.fromkeys(
        ["mrpc", "mnli_matched", "mnli_mismatched"], 0.5
    )


def test_models_scored_on_different_rows_are_refused(records, write_scores):
    records[0]["majority"] = {"mrpc": 0.25}
    with pytest.raises(DataError, match=r"column mrpc has majority baselines 0\.2500 and 0\.5000"):
        majority_of(read_scores(write_scores(records), TASKS, SEEDS))
