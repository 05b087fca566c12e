"""Real rows of SuperGLUE's tasks and of SQuAD 2.0, from the mirror: prepared, a few steps, scored."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from glue.laboratory import records_in
from symbert.glue.prepare import facts_of
from symbert.glue.tasks import SUITES, task_named

pytestmark = pytest.mark.campaign
FEW = {"max_examples": 48, "max_evaluation_examples": 40}
SQUAD = "rajpurkar/squad_v2/squad_v2/{}-00000-of-00001.parquet"


@pytest.fixture
def vocabulary(mirror):
    """BERT's own: the rows are real text."""
    return mirror / "google-bert/bert-base-uncased/vocab.txt"


@pytest.fixture
def scored(laboratory):
    """The record of a task of a mirror, of one epoch of a model of one layer."""

    def make(root, task, **rows):
        data = laboratory.prepare(task, root=root, **rows)
        (record,) = records_in(laboratory.finetune([task], rows={"root": root, **rows}, batch_size=8))
        assert facts_of(data)["rows"] == record["rows"] and not record["stand_in"] and record["partial"]
        assert record["official_rows"] == task_named(task).official_rows
        return record

    return make


@pytest.mark.parametrize("task", SUITES["superglue"].tasks)
def test_a_model_learns_and_is_scored_on_real_rows_of_superglue(scored, mirror, task):
    if not (mirror / "aps/super_glue" / (task_named(task).folder or task)).is_dir():
        pytest.skip(f"no {task} in ../shared/mirror")
    record = scored(mirror, task, **FEW)
    assert record["rows"]["train"] == (32 if task == "boolq" else 48), "of BoolQ the mirror has 32"
    fewest = 30 if task == "multirc" else 40
    assert fewest <= record["rows"]["validation"] <= 40, "of MultiRC as many whole questions as fit"
    assert set(record["details"][task]) == set(task_named(task).metrics)
    assert 0 <= record["metrics"][task] <= 1 and 0.2 < record["majority"][task] < 0.9


def test_a_thousand_real_questions_are_asked(scored, mirror, tmp_path):
    """All of the mirror's rows are for evaluation: those on two contexts in three stand in for training."""
    rows = pq.read_table(mirror / SQUAD.format("validation"))
    contexts = pc.unique(rows["context"])
    evaluated = pc.is_in(rows["context"], contexts.take(pa.array(range(0, len(contexts), 3))))
    (tmp_path / SQUAD.format("train")).parent.mkdir(parents=True)
    for split, chosen in (("train", pc.invert(evaluated)), ("validation", evaluated)):
        pq.write_table(rows.filter(chosen), tmp_path / SQUAD.format(split))
    record = scored(tmp_path, "squad2", max_examples=None, max_evaluation_examples=None)
    assert sum(record["rows"].values()) == rows.num_rows == 1000
    answered = sum(bool(each["text"]) for each in rows.filter(evaluated)["answers"].to_pylist())
    without = 1 - answered / record["rows"]["validation"]
    assert record["majority"]["squad2"] == pytest.approx(without), "no answer is right where there is none"
    assert record["details"]["squad2"].keys() >= {"has_answer_f1", "no_answer_f1"}
