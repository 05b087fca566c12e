"""The demo's stand-ins of GLUE."""

import pyarrow.parquet as pq
import pytest

from symbert.glue.tasks import GLUE, published_split
from symbert.sources import DEMO

SPLITS = [(name, split) for name in GLUE for split in GLUE[name].splits]


def table(name, split):
    return pq.read_table(DEMO / published_split(GLUE[name], split).location)


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_labels_are_balanced(name, split):
    rows = table(name, split)
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


def sentences(name, split):
    column, label = INTACT[name]
    rows = table(name, split).to_pylist()
    return {row[column] for row in rows if label is None or row["label"] == label}


@pytest.mark.parametrize("name", GLUE)
def test_training_and_evaluation_share_no_sentence(name):
    for split in GLUE[name].scores:
        found = sentences(name, split)
        assert len(found) > 50 and not found & sentences(name, "train")


def words(text):
    return [word.rstrip(".,;:?") for word in text.split()]


def test_each_class_is_what_its_rule_says():
    for row in table("mnli", "train").to_pylist():
        premise, hypothesis = words(row["premise"]), words(row["hypothesis"])
        forwards, backwards = (order[: len(hypothesis)] == hypothesis for order in (premise, premise[::-1]))
        assert (forwards, backwards) == [(True, False), (False, False), (False, True)][row["label"]]
    for row in table("qnli", "train").to_pylist():
        question, sentence = words(row["question"]), words(row["sentence"])
        assert sorted(question) == sorted(sentence)
        assert question == sentence or row["label"] == 1
    for row in table("mrpc", "train").to_pylist():
        first, second = words(row["sentence1"]), words(row["sentence2"])
        assert (first[: len(second)] == second) == bool(row["label"])
