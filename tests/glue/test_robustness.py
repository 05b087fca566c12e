import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from symbert.cli import main
from symbert.errors import IntegrityError, UsageError
from symbert.glue import job
from symbert.glue.finetune import finetune
from symbert.glue.metrics import METRICS
from symbert.glue.robustness import measure_robustness, score_of_set
from symbert.glue.robustness_sets import prepare_robustness
from symbert.glue.tasks import GLUE

NOISE = {"kind": "noise", "name": "drop", "share": 0.2, "classes": None, "official_rows": 277, "partial": True}
SETS = {
    "drop-20 rte": {**NOISE, "column": "rte", "metrics": ["accuracy"], "rows": 40},
    "shifted": {**NOISE, "kind": "out-of-domain", "column": None, "metrics": ["f1"], "classes": [1, 0], "rows": 24},
}
FINETUNED = {"size": "tiny", "attention": "pairwise", "pretrain_seed": 1, "step": 300, "threads": 1}


@pytest.fixture
def places(tmp_path, write_section, prepared, checkpoint):
    """What both commands are given."""
    return {
        **FINETUNED,
        "checkpoint": checkpoint(),
        "data": [prepared("rte")],
        "settings": write_section("glue", epochs=1, learning_rate=1e-2),
        "state": tmp_path / "state",
    }


@pytest.fixture
def sets(tmp_path, places):
    """Writes RTE's file of sets: its evaluation rows under another name, and some of its training rows."""

    def write(facts=SETS):
        table = pq.read_table(places["data"][0])
        slices = {"drop-20 rte": (64, 40), "shifted": (0, 24)}
        tables = [table.slice(*slices[name]).set_column(0, "set", pa.array([name] * slices[name][1])) for name in facts]
        schema = table.schema.set(0, pa.field("set", pa.string()))
        told = {"symbert": json.dumps({"task": "rte", "stand_in": True, "sets": facts})}
        path = tmp_path / "rte.robustness.parquet"
        pq.write_table(pa.concat_tables([schema.empty_table(), *tables]).replace_schema_metadata(told), path)
        return path

    return write


@pytest.fixture
def scores(tmp_path, places):
    """Fine-tunes RTE; gives the records."""

    def run(seeds=(1,), keep=False):
        output = tmp_path / "scores.json"
        finetune(**places, finetune_seeds=list(seeds), output=[output], keep_finetuned=keep)
        return json.loads(output.read_text())

    return run


@pytest.fixture
def measured(tmp_path, places, sets):
    """Measures RTE's robustness; gives the records."""

    def run(seeds=(1,), keep=False, facts=SETS):
        output, given = tmp_path / "robustness.json", {"robustness": [sets(facts)], "keep_finetuned": keep}
        measure_robustness(**places, **given, finetune_seeds=list(seeds), output=[output])
        return json.loads(output.read_text())

    return run


@pytest.fixture
def trained(monkeypatch):
    """The seeds that were fine-tuned."""
    seen, train = [], job.train
    monkeypatch.setattr(job, "train", lambda *given: seen.append(given[4]) or train(*given))
    return seen


def test_the_evaluation_rows_as_a_set_score_as_they_do_in_the_score_file(scores, measured):
    (score,), (record,) = scores(), measured()
    found = record["sets"]["drop-20 rte"]
    assert (found["score"], found["majority"]) == (score["metrics"]["rte"], score["majority"]["rte"])
    assert found["details"] == score["details"]["rte"] and SETS["drop-20 rte"].items() <= found.items()
    assert found["constant_prediction"] == score["constant_prediction"]


def test_a_record_says_what_it_is_of(scores, measured):
    (score,), (record,) = scores(), measured()
    same = ("size", "attention", "pretrain_seed", "step", "task", "finetune_seed", "settings_hash", "stand_in")
    for key in (*same, "versions", "recipe", "precision", "origin", "checkpoint_sha256"):
        assert record[key] == score[key]
    assert list(record["sets"]) == list(SETS) and record["reproduced"] is True


def test_kept_weights_are_used_and_give_what_fine_tuning_again_gives(scores, measured, tmp_path, trained):
    scores(seeds=[1, 2])
    again = measured(seeds=[1, 2])
    assert trained == [1, 2, 1, 2]
    for kept in (tmp_path / "state/rte").glob("robustness-*"):
        kept.unlink()
    scores(seeds=[1, 2], keep=True)
    assert measured(seeds=[1, 2]) == again and trained == [1, 2] * 3


def test_one_more_seed_measures_only_that_seed(scores, measured, trained):
    first = measured(seeds=[1])
    assert trained == [1]
    assert measured(seeds=[1, 2])[:1] == first and trained == [1, 2]
    scores(seeds=[1, 2])
    assert trained == [1, 2]  # what robustness fine-tuned first, is scored already


def test_fine_tuning_again_keeps_its_weights_where_they_are_asked_for(scores, measured, tmp_path, trained):
    scores()
    measured(keep=True)
    for kept in (tmp_path / "state/rte").glob("robustness-*"):
        kept.unlink()
    assert measured(keep=True)[0]["reproduced"] and scores(keep=True) and trained == [1, 1]


def test_a_model_that_predicts_otherwise_than_its_record_is_measured_told_and_not_kept(
    scores, measured, tmp_path, capfd
):
    scores()
    (kept,) = (tmp_path / "state/rte").glob("seed-1-*.json")
    result = json.loads(kept.read_text())
    result["predictions"]["validation"][0] ^= 1
    kept.write_text(json.dumps(result))
    (record,) = measured(keep=True)
    assert record["reproduced"] is False and record["sets"]
    assert "rte seed 1: fine-tuned again, it does not predict as its record says" in capfd.readouterr().err
    assert json.loads(kept.read_text()) == result and not kept.with_suffix(".safetensors").exists()
    scores(keep=True)
    assert measured()[0]["reproduced"] is True


def test_damaged_weights_are_refused(scores, measured, tmp_path):
    scores(keep=True)
    (weights,) = (tmp_path / "state/rte").glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(IntegrityError, match=r"seed-1-\w+.safetensors: sha256 is not that in .*; delete both"):
        measured()


def test_a_file_without_sets_gives_a_record_without_sets_and_trains_nothing(measured, trained):
    (record,) = measured(facts={})
    assert record["sets"] == {} and record["reproduced"] is None and trained == []


def test_noise_as_it_is_prepared_is_measured(scores, places, tmp_path, vocabulary, write_section):
    scores()
    chosen = write_section("robustness", root=None, sets=[], noise=[1e-12, 0.4], noise_kinds=["mixed"])
    limits = write_section("task", max_examples=64, max_evaluation_examples=40)
    prepared, output = tmp_path / "prepared.parquet", tmp_path / "robustness.json"
    prepare_robustness(tmp_path / "raw.parquet", "rte", vocabulary, limits, chosen, prepared)
    measure_robustness(**places, robustness=[prepared], finetune_seeds=[1], output=[output])
    (record,), (score,) = (json.loads((tmp_path / name).read_text()) for name in ("robustness.json", "scores.json"))
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


def test_one_file_of_each_kind_is_needed_for_each_task(places, tmp_path):
    with pytest.raises(UsageError, match="1 files in --data, 2 in --robustness, 1 in --output"):
        measure_robustness(**places, robustness=[tmp_path] * 2, finetune_seeds=[1], output=[tmp_path / "out"])


def test_the_command_line_runs_it(places, sets, tmp_path, capfd):
    options = ["--robustness", str(sets()), "--finetune-seeds", "1", "--output", str(tmp_path / "out.json")]
    for name, value in places.items():
        options += [f"--{name.replace('_', '-')}", *map(str, value if isinstance(value, list) else [value])]
    assert main(["measure-robustness", *options, "--keep-finetuned"]) == 0
    assert len(json.loads((tmp_path / "out.json").read_text())) == 1
    assert "finetune tiny-pairwise seed 1 step 300: rte seed 1: 4/4 steps" in capfd.readouterr().err
