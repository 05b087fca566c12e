"""Real rows of SuperGLUE's tasks and of SQuAD 2.0, from the mirror: downloaded, prepared, a few steps, scored."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from symbert.glue.finetune import finetune
from symbert.glue.prepare import facts_of, prepare_task
from symbert.glue.sources import download_task, resolve_glue
from symbert.suites import SUITES
from symbert.tasks import task_named

pytestmark = pytest.mark.campaign
FEW = {"max_examples": 48, "max_evaluation_examples": 40}
SQUAD = "rajpurkar/squad_v2/squad_v2/{}-00000-of-00001.parquet"


@pytest.fixture
def vocabulary(mirror):
    """BERT's own: the rows are real text."""
    return mirror / "google-bert/bert-base-uncased/vocab.txt"


@pytest.fixture
def scored(tmp_path, write_section, checkpoint, vocabulary):
    """The record of a task of a mirror, of one epoch of a model of one layer."""

    def make(directory, suite, task, **rows):
        source, raw, data = write_section("glue_source", source="mirror", root=str(directory)), *paths("raw", "data")
        resolve_glue(source, tmp_path / "sources.json")
        download_task(source, tmp_path / "sources.json", task, raw)
        prepare_task(
            raw, task, vocabulary, write_section(f"{suite}_task", allow_partial=True, max_length=64, **rows), data
        )
        settings = write_section(suite, epochs=1, batch_size=8)
        named = {"size": "tiny", "attention": "pairwise", "pretrain_seed": 1, "step": 0, "finetune_seeds": [1]}
        folders = {"state": tmp_path / "state", "output": [tmp_path / "scores.json"], "threads": 1}
        finetune(checkpoint("pairwise"), [data], settings, **named, **folders)
        (record,) = json.loads((tmp_path / "scores.json").read_text())
        assert facts_of(data)["rows"] == record["rows"] and not record["stand_in"] and record["partial"]
        assert record["official_rows"] == task_named(task).official_rows
        return record

    def paths(*names):
        return (tmp_path / f"{name}.parquet" for name in names)

    return make


@pytest.mark.parametrize("task", SUITES["superglue"].tasks)
def test_a_model_learns_and_is_scored_on_real_rows_of_superglue(scored, mirror, task):
    folder = mirror / "aps/super_glue" / (task_named(task).folder_at_hub or task)
    if not folder.is_dir():
        pytest.skip(f"no {task} in ../shared/mirror")
    record = scored(mirror, "superglue", task, **FEW)
    assert record["rows"]["train"] == (32 if task == "boolq" else 48), "of BoolQ the mirror has 32"
    fewest = 30 if task == "multirc" else 40
    assert fewest <= record["rows"]["validation"] <= 40, "of MultiRC as many whole questions as fit"
    assert set(record["details"][task]) == set(task_named(task).metrics)
    assert 0 <= record["metrics"][task] <= 1 and 0.2 < record["majority"][task] < 0.9


def test_a_thousand_real_questions_are_asked(scored, mirror, tmp_path):
    """All of the mirror's rows are for evaluation: those on two contexts in three stand in for training."""
    if not (mirror / SQUAD.format("validation")).is_file():
        pytest.skip("no SQuAD 2.0 in ../shared/mirror")
    rows = pq.read_table(mirror / SQUAD.format("validation"))
    contexts = pc.unique(rows["context"])
    evaluated = pc.is_in(rows["context"], contexts.take(pa.array(range(0, len(contexts), 3))))
    (tmp_path / SQUAD.format("train")).parent.mkdir(parents=True)
    for split, chosen in (("train", pc.invert(evaluated)), ("validation", evaluated)):
        pq.write_table(rows.filter(chosen), tmp_path / SQUAD.format(split))
    record = scored(tmp_path, "squad2", "squad2", max_examples=None, max_evaluation_examples=None)
    assert sum(record["rows"].values()) == rows.num_rows == 1000
    answered = sum(bool(each["text"]) for each in rows.filter(evaluated)["answers"].to_pylist())
    without = 1 - answered / record["rows"]["validation"]
    assert record["majority"]["squad2"] == pytest.approx(without), "no answer is right where there is none"
    assert record["details"]["squad2"].keys() >= {"has_answer_f1", "no_answer_f1"}
