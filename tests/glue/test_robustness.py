"""Noisy and out-of-domain sets, and `symbert score` of fine-tuned models on them."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from msgspec import to_builtins
from safetensors.torch import load_file, save_file

from glue.laboratory import records_in
from symbert.errors import DataError, IntegrityError
from symbert.files import sha256_of, write_json
from symbert.glue.finetuning import score_of_set
from symbert.glue.metrics import METRICS, hashed, read_kept
from symbert.glue.prepare import RobustnessFacts, SetFacts, metadata_of
from symbert.glue.score import Kept
from symbert.glue.tasks import GLUE

RATE = {"learning_rate": 1e-2}
NOISE = {"noise": [1e-12, 0.4], "kinds": ["drop"]}  # the first strikes no letter


@pytest.fixture
def finetuned(laboratory):
    """Fine-tunes RTE; gives the file of scores."""
    return lambda seeds=(1,), keep=False: laboratory.finetune(seeds=seeds, keep=300 if keep else None, **RATE)


@pytest.fixture
def measured(laboratory):
    """Measures RTE's robustness; gives the records."""

    def run(seeds=(1,)):
        laboratory.prepare("rte")
        sets = laboratory.sets(rows := laboratory.rows("rte"), **NOISE)
        laboratory.prepared(sets, "rte")
        how = laboratory.robustness(sets, laboratory.protocol(rows, **RATE))
        return records_in(laboratory.score(how, laboratory.checkpoint(), ["rte"], seeds))

    return run


def test_rows_of_which_no_letter_is_struck_score_as_they_do_in_the_score_file(finetuned, measured):
    (score,), (record,) = records_in(finetuned()), measured()
    found, struck = record["sets"].values()
    assert (found["score"], found["majority"]) == (score["metrics"]["rte"], score["majority"]["rte"])
    assert found["details"] == score["details"]["rte"]
    assert found["constant_prediction"] == score["constant_prediction"]
    assert (struck["name"], struck["share"], struck["column"], struck["rows"]) == ("drop", 0.4, "rte", 40)


def test_kept_weights_are_used_and_give_what_fine_tuning_again_gives(finetuned, measured, counted):
    file = finetuned([1, 2], keep=True)
    known = measured([1, 2])
    assert counted == [1, 2]
    shutil.rmtree(file.parent / "finetuned")
    assert measured([1, 2]) == known and counted == [1, 2] * 2
    assert not (file.parent / "finetuned").exists()


def test_clean_scores_are_of_the_model_that_is_measured(finetuned, measured):
    """Weights that are not those of the record stand for a model that was fine-tuned again, on another device."""
    scores = finetuned(keep=True)
    ((score,), file) = records_in(scores), scores.parent / "finetuned/rte/seed-1.safetensors"
    weights = load_file(file)
    save_file(weights | {name: -weights[name] for name in ("classifier.weight", "classifier.bias")}, file)
    kept = read_kept(file.with_suffix(".json"), Kept)
    kept.weights_sha256 = sha256_of(file)
    write_json(file.with_suffix(".json"), hashed(to_builtins(kept)))
    (record,) = measured()
    assert record["clean"]["rte"] == pytest.approx(1 - score["metrics"]["rte"]) != score["metrics"]["rte"]
    intact, _ = record["sets"].values()
    assert intact["score"] == record["clean"]["rte"]


def test_one_more_seed_measures_only_that_seed(measured, counted):
    first = measured([1])
    assert measured([1, 2])[:1] == first and counted == [1, 2]


def test_damaged_weights_are_refused_and_those_of_another_checkpoint_not_taken(
    laboratory, finetuned, measured, counted
):
    weights = finetuned(keep=True).parent / "finetuned/rte/seed-1.safetensors"
    intact = weights.read_bytes()
    weights.write_bytes(intact[:-1] + b"x")
    with pytest.raises(IntegrityError, match=rf"^{weights}: sha256 expected"):
        measured()
    weights.write_bytes(intact)
    shutil.copy(laboratory.checkpoint(weights=2) / "model.safetensors", laboratory.checkpoint())
    measured()
    assert counted == [1, 1]


def test_a_predicted_class_counts_as_the_set_says():
    """HANS knows entailment (0) and the rest (1); the classifier's classes are 0, 1 and 2."""
    hans = {"kind": "out-of-domain", "name": "hans", "share": None, "column": None}
    rows = {"rows": 4, "official_rows": 4, "partial": False}
    facts = SetFacts(**hans, **rows, metrics=("accuracy", "f1"), classes=(0, 1, 1))
    labels, predictions = np.array([0, 1, 1, 0]), np.array([0, 1, 2, 2])
    found = score_of_set(GLUE["mnli"], facts, np.array([0, 1, 2]), labels, predictions)
    counted = np.array([0, 1, 1, 1])
    assert found["details"] == {name: METRICS[name](labels, counted) for name in ("accuracy", "f1")}
    assert found["score"] == pytest.approx((3 / 4 + 4 / 5) / 2)
    assert found["majority"] == pytest.approx((1 / 2 + 2 / 3) / 2) and not found["constant_prediction"]


@pytest.fixture
def robustness(laboratory):
    """Prepares a task's sets from the stand-in's rows, with changes of the settings; gives the file."""

    def prepare(name, limit=30, allow_partial=True, **chosen):
        sets = laboratory.sets(laboratory.rows(name, max_evaluation_examples=limit), **chosen)
        return laboratory.prepared(sets, name, allow_partial)

    return prepare


def test_noise_makes_a_set_of_each_kind_and_share_of_each_evaluation_split(robustness):
    output = robustness("mnli", noise=[0.1, 0.2], kinds=["mixed", "drop"])
    facts, table = metadata_of(output, RobustnessFacts), pq.read_table(output)
    splits, kinds = ("mnli_matched", "mnli_mismatched"), ("mixed", "drop")
    expected = [f"{kind}-{percent} {split}" for split in splits for kind in kinds for percent in (10, 20)]
    assert list(facts.sets) == expected
    assert [row["values"] for row in table["set"].value_counts().to_pylist()] == expected and len(table) == 8 * 30
    told = facts.sets["drop-20 mnli_mismatched"]
    assert (told.kind, told.share, told.column, told.metrics) == ("noise", 0.2, splits[1], ("accuracy",))
    assert (told.rows, told.official_rows, told.partial) == (30, 9832, True)


def test_noise_changes_the_rows_that_are_scored_clean(robustness, laboratory):
    output = robustness("rte", noise=[1e-12, 0.4], kinds=["mixed"])
    clean = (
        pq.read_table(laboratory.prepare("rte", max_evaluation_examples=30))
        .filter(pc.field("split") == "validation")
        .drop_columns("split")
    )
    table, sets = pq.read_table(output), list(metadata_of(output, RobustnessFacts).sets)
    untouched, noisy = (table.filter(pc.field("set") == name).drop_columns("set") for name in sets)
    assert len(clean) == 30 and untouched.to_pylist() == clean.to_pylist()
    assert noisy["label"].to_pylist() == clean["label"].to_pylist()
    ids = [rows["input_ids"].to_pylist() for rows in (noisy, clean)]
    assert all(struck != intact for struck, intact in zip(*ids, strict=True))


def test_a_task_without_sets_has_a_valid_file_without_rows(robustness, tmp_path):
    output = robustness("stsb", sets=["hans", "ax", "advglue"], root=tmp_path)
    table = pq.read_table(output)
    assert len(table) == 0 and table.column_names == ["set", "input_ids", "token_type_ids", "label"]
    assert metadata_of(output, RobustnessFacts) == RobustnessFacts(task="stsb", stand_in=True, sets={})


def test_a_limited_challenge_set_is_spread_over_its_file_and_partial(robustness, tmp_path):
    """HANS has all entailments first."""
    rows = {"premise": ["the matrix"] * 60, "hypothesis": ["a matrix"] * 60, "label": [0] * 30 + [1] * 30}
    pq.write_table(pa.table(rows), tmp_path / "hans.parquet")
    hans = {"root": tmp_path, "sets": ["hans"]}
    output = robustness("mnli", limit=40, **hans)
    told, labels = metadata_of(output, RobustnessFacts).sets["hans"], pq.read_table(output)["label"].to_pylist()
    assert (told.rows, told.official_rows, told.partial) == (40, 30000, True)
    assert told.classes == (0, 1, 1)
    assert labels == sorted(labels) and 10 <= sum(labels) <= 30
    with pytest.raises(DataError, match=r"the set 'hans' has 60 rows, expected 30,000 .*'glue.allow_partial"):
        robustness("mnli", allow_partial=False, **hans)
