import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file, save_file

from damage import CONTENTS
from symbert.errors import DataError, IntegrityError, UsageError
from symbert.files import sha256_of
from symbert.glue import finetune as module
from symbert.glue.finetune import finetune
from symbert.glue.metrics import METRICS
from symbert.glue.robustness import measure_robustness, score_of_set
from symbert.glue.robustness_sets import prepare_robustness
from symbert.tasks import GLUE

NOISE = {"kind": "noise", "name": "drop", "share": 0.2, "classes": None, "official_rows": 277, "partial": True}
SETS = {
    "drop-20 rte": {**NOISE, "column": "rte", "metrics": ["accuracy"], "rows": 40},
    "shifted": {**NOISE, "kind": "out-of-domain", "column": None, "metrics": ["f1"], "classes": [1, 0], "rows": 24},
}
SLICES = {"drop-20 rte": (64, 40), "shifted": (0, 24)}  # first row and rows of RTE's prepared file
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

    def write(facts=SETS, slices=SLICES):
        table = pq.read_table(places["data"][0])
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
        step = places["step"] if keep else None
        finetune(**places, finetune_seeds=list(seeds), output=[output], keep_finetuned=step)
        return json.loads(output.read_text())

    return run


@pytest.fixture
def measured(tmp_path, places, sets):
    """Measures RTE's robustness; gives the records."""

    def run(seeds=(1,), keep=False, **changes):
        output, given = tmp_path / "robustness.json", {"robustness": [sets(**changes)], "keep_finetuned": keep}
        measure_robustness(**places, **given, finetune_seeds=list(seeds), output=[output])
        return json.loads(output.read_text())

    return run


@pytest.fixture
def trained(monkeypatch):
    """The seeds that were fine-tuned."""
    seen, train = [], module.train
    monkeypatch.setattr(module, "train", lambda *given: seen.append(given[4]) or train(*given))
    return seen


def test_sets_of_a_larger_vocabulary_are_refused_by_name(places, sets, vocabulary, tmp_path):
    """A model was asked of pieces that it has not, which was a bug of ours: only its task's own rows were compared."""
    file, pieces = sets(), len(vocabulary.read_text().splitlines())
    table = pq.read_table(file)
    ids = table["input_ids"].to_pylist()
    ids[-1][1] = pieces
    column = pa.array(ids, table.schema.field("input_ids").type)
    pq.write_table(table.set_column(table.column_names.index("input_ids"), "input_ids", column), file)
    told = rf"rte\.robustness\.parquet: has token id {pieces}, the model of .* has {pieces} pieces; prepare the"
    with pytest.raises(IntegrityError, match=told):
        measure_robustness(**places, robustness=[file], finetune_seeds=[1], output=[tmp_path / "robustness.json"])


def test_the_evaluation_rows_as_a_set_score_as_they_do_in_the_score_file(scores, measured):
    (score,), (record,) = scores(), measured()
    found = record["sets"]["drop-20 rte"]
    assert (found["score"], found["majority"]) == (score["metrics"]["rte"], score["majority"]["rte"])
    assert found["details"] == score["details"]["rte"] and SETS["drop-20 rte"].items() <= found.items()
    assert found["constant_prediction"] == score["constant_prediction"]


def forget_robustness(tmp_path):
    for kept in (tmp_path / "state/rte").glob("robustness-*"):
        kept.unlink()


def test_kept_weights_are_used_and_give_what_fine_tuning_again_gives(scores, measured, tmp_path, trained):
    scores(seeds=[1, 2], keep=True)
    known = measured(seeds=[1, 2])
    assert trained == [1, 2]
    for kept in (tmp_path / "state/rte").glob("*.safetensors"):
        kept.unlink()
    forget_robustness(tmp_path)
    assert measured(seeds=[1, 2]) == known and trained == [1, 2] * 2


def test_clean_scores_are_of_the_model_that_is_measured(scores, measured, tmp_path):
    """Weights that are not those of the record stand for a model that was fine-tuned again, on another device."""
    (score,) = scores(keep=True)
    (file,) = (tmp_path / "state/rte").glob("*.safetensors")
    weights = load_file(file)
    save_file(weights | {name: -weights[name] for name in ("classifier.weight", "classifier.bias")}, file)
    file.with_suffix(".sha256").write_text(sha256_of(file))
    (record,) = measured()
    assert record["clean"]["rte"] == pytest.approx(1 - score["metrics"]["rte"]) != score["metrics"]["rte"]
    assert record["sets"]["drop-20 rte"]["score"] == record["clean"]["rte"]
    assert scores() == [score]


def test_one_more_seed_measures_only_that_seed(scores, measured, trained):
    first = measured(seeds=[1])
    assert trained == [1]
    assert measured(seeds=[1, 2])[:1] == first and trained == [1, 2]
    scores(seeds=[1, 2])
    assert trained == [1, 2]  # what robustness fine-tuned first, is scored already


def test_fine_tuning_again_keeps_its_weights_where_they_are_asked_for_and_never_the_record(
    scores, measured, tmp_path, trained
):
    (score,) = scores()
    (kept,) = (tmp_path / "state/rte").glob("seed-1-*.json")
    kept.write_text(kept.read_text().replace("finetune", "earlier"))
    content = kept.read_bytes()
    (record,) = measured(keep=True)
    forget_robustness(tmp_path)
    assert measured(keep=True) == [record] and trained == [1, 1] and record["clean"] == score["metrics"]
    assert kept.read_bytes() == content


def test_damaged_weights_are_named_and_made_again(scores, measured, tmp_path, trained, capfd):
    scores(keep=True)
    (weights,) = (tmp_path / "state/rte").glob("*.safetensors")
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + b"x")
    measured(keep=True)
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert line == f"warning: {weights}: sha256 is not that in {weights.stem}.sha256; fine-tuned again"
    assert trained == [1, 1] and weights.read_bytes() == content


def test_other_rows_are_measured_anew(measured, trained):
    first = measured()
    measured(slices={**SLICES, "shifted": (24, 24)})
    assert trained == [1, 1] and measured() == first and trained == [1, 1]


def test_sets_of_another_task_are_refused_before_anything_is_trained(places, prepared, sets, tmp_path, trained):
    tasks = {**places, "data": [*places["data"], prepared("cola")]}
    outputs = [tmp_path / "rte.json", tmp_path / "cola.json"]
    with pytest.raises(UsageError, match=r"rte.robustness.parquet: sets of rte, expected those of cola; give --robust"):
        measure_robustness(**tasks, robustness=[sets()] * 2, finetune_seeds=[1], output=outputs)
    assert trained == []


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


@pytest.mark.parametrize("content", CONTENTS)
def test_a_kept_measurement_that_is_something_else_is_named_with_the_remedy(measured, tmp_path, content):
    """It went into the records as it was."""
    measured()
    (kept,) = (tmp_path / "state/rte").glob("robustness-*.json")
    kept.write_text(content)
    with pytest.raises(DataError, match=rf"{kept.name}: .*; delete it and run again"):
        measured()


def test_a_flipped_digit_of_a_kept_measurement_does_not_go_into_the_records(measured, tmp_path):
    measured()
    (kept,) = (tmp_path / "state/rte").glob("robustness-*.json")
    kept.write_text(kept.read_text().replace('"step": 300', '"step": 301'))
    with pytest.raises(IntegrityError, match=rf"{kept.name}: sha256 expected .*; delete it and run again"):
        measured()
