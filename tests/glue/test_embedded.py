from random import Random

import pyarrow.parquet as pq
import pytest

from glue import documentation
from symbert.glue import embedded
from symbert.glue.sources import published_split
from symbert.task import Task
from symbert.tasks import GLUE

SPLITS = [(name, split) for name in GLUE for split in GLUE[name].splits]


def table(root, name, split):
    return pq.read_table(root / published_split(GLUE[name], split).location)


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_labels_are_balanced(embedded_root, name, split):
    rows = table(embedded_root, name, split)
    counts = [row["counts"] for row in rows["label"].value_counts().to_pylist()]
    assert len(rows) == (1000 if split == "train" else 500)
    assert len(counts) == (len(GLUE[name].labels) or 6) and max(counts) - min(counts) <= 1


# Where a task shows its sentences as the documentation has them: column, and label of those rows (None: any).
INTACT = {
    "mrpc": ("sentence1", 1),
    "cola": ("sentence", 1),
    "mnli": ("premise", 0),
    "qqp": ("question1", 1),
    "rte": ("sentence1", 0),
    "stsb": ("sentence2", None),
    "qnli": ("sentence", None),
    "sst2": ("sentence", 1),
    "wnli": ("sentence1", 1),
}


def sentences(root, name, split):
    column, label = INTACT[name]
    rows = table(root, name, split).to_pylist()
    return {row[column] for row in rows if label is None or row["label"] == label}


@pytest.mark.parametrize("name", GLUE)
def test_training_and_evaluation_share_no_sentence(embedded_root, name):
    for split in GLUE[name].scores:
        found = sentences(embedded_root, name, split)
        assert len(found) > 50 and not found & sentences(embedded_root, name, "train")


def test_the_same_documentation_gives_the_same_bytes(embedded_root, tmp_path):
    embedded.write_embedded_tasks(tmp_path, documentation.write(tmp_path / "documentation.parquet"))
    for path in embedded_root.rglob("*.parquet"):
        assert path.read_bytes() == (tmp_path / path.relative_to(embedded_root)).read_bytes()


def words(text):
    return text.rstrip(".?").split()


def test_each_class_is_what_its_rule_says(embedded_root):
    for row in table(embedded_root, "mnli", "train").to_pylist():
        premise, hypothesis = words(row["premise"]), words(row["hypothesis"])
        forwards, backwards = (order[: len(hypothesis)] == hypothesis for order in (premise, premise[::-1]))
        assert (forwards, backwards) == [(True, False), (False, False), (False, True)][row["label"]]
    for row in table(embedded_root, "qnli", "train").to_pylist():
        question, sentence = words(row["question"]), words(row["sentence"])
        assert sorted(question) == sorted(sentence)
        assert question == sentence or row["label"] == 1
    for row in table(embedded_root, "mrpc", "train").to_pylist():
        first, second = words(row["sentence1"]), words(row["sentence2"])
        assert (first[: len(second)] == second) == bool(row["label"])


def test_a_task_that_names_no_shape_has_stand_ins_of_its_classes_and_columns(tmp_path):
    """So a further task is one row, whatever its shape."""
    sentences = [embedded.Sentence(f"package {number % 2}", tuple("abcdef")) for number in range(20)]
    for columns in (("sentence",), ("question", "sentence")):
        task = Task("new", columns, ("low", "middle", "high"), ("accuracy",), {"validation": "new"})
        rows = embedded.rows_of(task, embedded.Pool(sentences, Random(1)), 30)
        assert len(rows) == 30 and [row[-1] for row in rows[:3]] == [0, 1, 2]
        assert {len(row) for row in rows} == {len(columns) + 1}
        assert [row[0] for row in rows[2::3]] == ["a b c d e f."] * 10, "the highest class is the whole sentence"
