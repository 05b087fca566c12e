import itertools
import json

import pyarrow.parquet as pq
import pytest

from glue import documentation
from glue.documentation import PACKAGES
from symbert.glue import embedded
from symbert.glue.sources import published_split
from symbert.glue.tasks import GLUE

SPLITS = [(name, split) for name in embedded.RULES for split in GLUE[name].splits]


def table(root, name, split):
    return pq.read_table(root / published_split(GLUE[name], split).location)


def test_there_is_a_stand_in_for_each_task_of_the_configuration(config):
    assert set(embedded.RULES) == set(config["sweep"]["tasks"])


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_a_file_has_the_columns_types_and_class_names_of_the_hub(embedded_root, mirror, name, split):
    ours = table(embedded_root, name, split).schema
    real = table(mirror, name, split).schema
    assert ours.remove_metadata() == real.remove_metadata()

    def features(schema):
        return json.loads(schema.metadata[b"huggingface"])["info"]["features"]

    assert features(ours) == features(real)
    assert b"stand-in" in ours.metadata and b"stand-in" not in real.metadata


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_labels_are_balanced(embedded_root, name, split):
    rows = table(embedded_root, name, split)
    counts = [row["counts"] for row in rows["label"].value_counts().to_pylist()]
    assert len(rows) == (1000 if split == "train" else 500)
    assert len(counts) == (len(GLUE[name].labels) or 6) and max(counts) - min(counts) <= 1


@pytest.mark.parametrize("name", embedded.RULES)
def test_training_and_evaluation_share_no_first_sentence(embedded_root, name):
    column = GLUE[name].columns[0]
    for split in GLUE[name].scores:
        shared = set(table(embedded_root, name, "train")[column].to_pylist())
        shared &= set(table(embedded_root, name, split)[column].to_pylist())
        assert len(shared) <= (1000 if name == "qnli" else 0)  # a question names an object, and names recur


def test_the_mismatched_genre_is_of_other_packages_than_training(embedded_root):
    package = {p.text.split(". ")[0] + ".": p.package for p in documentation.passages()}
    found = {
        split: {package[text] for text in table(embedded_root, "mnli", split)["premise"].to_pylist()}
        for split in GLUE["mnli"].splits
    }
    assert found["validation_mismatched"] == {"sympy", "networkx"}
    assert found["train"] == found["validation_matched"] == set(PACKAGES) - {"sympy", "networkx"}


def test_the_same_documentation_gives_the_same_bytes(embedded_root, tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "passages", documentation.passages)
    embedded.write_embedded_tasks(tmp_path)
    for path in embedded_root.rglob("*.parquet"):
        assert path.read_bytes() == (tmp_path / path.relative_to(embedded_root)).read_bytes()


def test_each_class_is_what_its_rule_says(embedded_root):
    for row in table(embedded_root, "mnli", "train").to_pylist():
        beginning = row["premise"].startswith(row["hypothesis"].rstrip("."))
        negated = bool(set(row["hypothesis"].rstrip(".").split()) & set(embedded.NEGATIONS))
        assert (beginning, negated) == [(True, False), (False, False), (False, True)][row["label"]]
    for row in table(embedded_root, "mrpc", "train").to_pylist():
        first, second = (row[column].rstrip(".").split() for column in ("sentence1", "sentence2"))
        assert (set(second) <= set(first)) == bool(row["label"])


def test_one_sentence_gives_a_row_of_each_class(embedded_root):
    for name, column in (("mrpc", "sentence1"), ("mnli", "premise"), ("stsb", "sentence1"), ("qnli", "question")):
        rows, classes = table(embedded_root, name, "train"), len(GLUE[name].labels) or 6
        for start in range(0, 60, classes):
            group = rows.slice(start, classes)
            assert len(set(group[column].to_pylist())) == 1
            assert group["label"].to_pylist() == list(range(classes))


def test_a_higher_grade_keeps_more_of_the_sentence(embedded_root):
    rows = table(embedded_root, "stsb", "train").to_pylist()
    for lower, higher in itertools.pairwise(rows):
        if 0 < lower["label"] < higher["label"]:
            assert higher["sentence2"].startswith(lower["sentence2"].rstrip(".,;:"))
    kept = {grade: [len(row["sentence2"]) for row in rows if row["label"] == grade] for grade in range(1, 6)}
    means = [sum(lengths) / len(lengths) for lengths in kept.values()]
    assert means == sorted(means) and means[-1] > 3 * means[0]
