"""`symbert score` of robustness: fine-tuned models on noisy and out-of-domain sets."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file, save_file

from glue.laboratory import records_in
from symbert.errors import IntegrityError
from symbert.files import sha256_of, write_json
from symbert.glue import score as module
from symbert.glue.metrics import METRICS, hashed, read_kept
from symbert.glue.score import score_of_set
from symbert.glue.tasks import GLUE

NOISE = {"kind": "noise", "name": "drop", "share": 0.2, "classes": None, "official_rows": 277, "partial": True}
SETS = {
    "drop-20 rte": {**NOISE, "column": "rte", "metrics": ["accuracy"], "rows": 40},
    "shifted": {**NOISE, "kind": "out-of-domain", "column": None, "metrics": ["f1"], "classes": [1, 0], "rows": 24},
}
SLICES = {"drop-20 rte": (64, 40), "shifted": (0, 24)}  # first row and rows of RTE's prepared file
RATE = {"learning_rate": 1e-2}


@pytest.fixture
def sets(laboratory):
    """Writes RTE's file of sets: its evaluation rows under another name, and some of its training rows."""

    def write(facts=SETS):
        table = pq.read_table(laboratory.prepare("rte"))
        tables = [table.slice(*SLICES[name]).set_column(0, "set", pa.array([name] * SLICES[name][1])) for name in facts]
        schema = table.schema.set(0, pa.field("set", pa.string()))
        told = {"symbert": json.dumps({"task": "rte", "stand_in": True, "sets": facts})}
        path = laboratory.rows("rte", "robustness")
        pq.write_table(pa.concat_tables([schema.empty_table(), *tables]).replace_schema_metadata(told), path)
        return path

    return write


@pytest.fixture
def finetuned(laboratory):
    """Fine-tunes RTE; gives the file of scores."""
    return lambda seeds=(1,), keep=False: laboratory.finetune(seeds=seeds, keep=300 if keep else None, **RATE)


@pytest.fixture
def measured(laboratory, sets):
    """Measures RTE's robustness; gives the records."""

    def run(seeds=(1,), file=None, **changes):
        trained = laboratory.suite(laboratory.prepare("rte").parent, **RATE)
        rows = (file or sets(**changes)).parent.name
        settings = {"kind": "robustness", "suite": "glue", "rows": rows, "trained": trained.name}
        suite = laboratory.folder("robustness/glue", settings)
        return records_in(laboratory.score(suite, laboratory.checkpoint(), ["rte"], seeds))

    return run


@pytest.fixture
def trained(monkeypatch):
    """The seeds that were fine-tuned."""
    seen, train = [], module.train
    monkeypatch.setattr(module, "train", lambda *given: seen.append(given[4]) or train(*given))
    return seen


def test_the_evaluation_rows_as_a_set_score_as_they_do_in_the_score_file(finetuned, measured):
    (score,), (record,) = records_in(finetuned()), measured()
    found = record["sets"]["drop-20 rte"]
    assert (found["score"], found["majority"]) == (score["metrics"]["rte"], score["majority"]["rte"])
    assert found["details"] == score["details"]["rte"] and SETS["drop-20 rte"].items() <= found.items()
    assert found["constant_prediction"] == score["constant_prediction"]


def test_kept_weights_are_used_and_give_what_fine_tuning_again_gives(finetuned, measured, trained):
    file = finetuned([1, 2], keep=True)
    known = measured([1, 2])
    assert trained == [1, 2]
    shutil.rmtree(file.parent / "finetuned")
    assert measured([1, 2]) == known and trained == [1, 2] * 2
    assert not (file.parent / "finetuned").exists()


def test_clean_scores_are_of_the_model_that_is_measured(finetuned, measured):
    """Weights that are not those of the record stand for a model that was fine-tuned again, on another device."""
    scores = finetuned(keep=True)
    ((score,), file) = records_in(scores), scores.parent / "finetuned/rte/seed-1.safetensors"
    weights = load_file(file)
    save_file(weights | {name: -weights[name] for name in ("classifier.weight", "classifier.bias")}, file)
    kept = read_kept(file.with_suffix(".json"), {})
    write_json(file.with_suffix(".json"), hashed(kept | {"weights_sha256": sha256_of(file)}))
    (record,) = measured()
    assert record["clean"]["rte"] == pytest.approx(1 - score["metrics"]["rte"]) != score["metrics"]["rte"]
    assert record["sets"]["drop-20 rte"]["score"] == record["clean"]["rte"]


def test_one_more_seed_measures_only_that_seed(measured, trained):
    first = measured([1])
    assert measured([1, 2])[:1] == first and trained == [1, 2]


def test_damaged_weights_are_refused_and_those_of_another_checkpoint_not_taken(
    laboratory, finetuned, measured, trained
):
    weights = finetuned(keep=True).parent / "finetuned/rte/seed-1.safetensors"
    intact = weights.read_bytes()
    weights.write_bytes(intact[:-1] + b"x")
    with pytest.raises(IntegrityError, match=rf"^{weights}: sha256 expected"):
        measured()
    weights.write_bytes(intact)
    shutil.copy(laboratory.checkpoint(weights=2) / "model.safetensors", laboratory.checkpoint())
    measured()
    assert trained == [1, 1]


def test_noise_as_it_is_prepared_is_measured(laboratory, finetuned, measured):
    chosen = {"root": None, "sets": [], "noise": [1e-12, 0.4], "noise_kinds": ["mixed"]}
    (score,) = records_in(finetuned())
    (record,) = measured(file=laboratory.prepare("rte", "robustness", robustness=chosen))
    nothing_struck, struck = record["sets"].values()
    assert nothing_struck["score"] == score["metrics"]["rte"]
    assert (struck["name"], struck["share"], struck["column"], struck["rows"]) == ("mixed", 0.4, "rte", 40)


def test_a_predicted_class_counts_as_the_set_says():
    """HANS knows entailment (0) and the rest (1); the classifier's classes are 0, 1 and 2."""
    facts = {"metrics": ["accuracy", "f1"], "classes": [0, 1, 1]}
    labels, predictions = np.array([0, 1, 1, 0]), np.array([0, 1, 2, 2])
    found = score_of_set(GLUE["mnli"], facts, np.array([0, 1, 2]), labels, predictions)
    counted = np.array([0, 1, 1, 1])
    assert found["details"] == {name: METRICS[name](labels, counted) for name in ("accuracy", "f1")}
    assert found["score"] == pytest.approx((3 / 4 + 4 / 5) / 2)
    assert found["majority"] == pytest.approx((1 / 2 + 2 / 3) / 2) and not found["constant_prediction"]
