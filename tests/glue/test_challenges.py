import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue.originals import write_lines
from symbert.errors import DataError, MissingInputError
from symbert.glue.challenges import CHALLENGES
from symbert.glue.sources import read_challenge
from symbert.glue.tasks import GLUE

HANS = "gold_label\tsentence1_binary_parse\tsentence1\tsentence2\tpairID\theuristic\n"
AX = "Lexical Semantics\tDomain\tPremise\tHypothesis\tLabel\n"
PRESENT = [name for name in CHALLENGES if name != "hans"]  # in the mirror


@pytest.mark.parametrize("name", PRESENT)
def test_real_sets_are_complete(mirror, name):
    challenge = CHALLENGES[name]
    table = read_challenge(challenge, mirror / "ood")
    assert len(table) == challenge.official_rows
    assert table.column_names == [*GLUE[challenge.task].columns, "label"]
    assert set(table["label"].to_pylist()) == set(range(len(challenge.labels)))


def test_the_labels_of_the_diagnostics_are_those_of_mnli(mirror):
    rows = read_challenge(CHALLENGES["ax"], mirror / "ood").to_pylist()
    counts = [sum(row["label"] == label for row in rows) for label in range(3)]
    assert counts == [460, 386, 258]  # entailment, neutral, contradiction (Wang et al., ICLR 2019)
    assert rows[0] == {
        "premise": "The cat sat on the mat.",
        "hypothesis": "The cat did not sit on the mat.",
        "label": 2,
    }


def hans_table(names=("entailment", "non-entailment")):
    features = {"label": {"names": list(names), "_type": "ClassLabel"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    rows = {"premise": ["a b", "c"], "hypothesis": ["b", "d"], "label": [1, 0], "heuristic": ["x", "x"]}
    return pa.table(rows).replace_schema_metadata(metadata)


def test_hans_is_read_alike_from_its_text_file_and_as_parquet(tmp_path):
    write_lines(
        tmp_path / "text/heuristics_evaluation_set.txt",
        HANS,
        "non-entailment\t( )\ta b\tb\tex0\tx\n",
        "entailment\t( )\tc\td\tex1\tx\n",
    )
    pq.write_table(hans_table(), tmp_path / "hans.parquet")
    found = read_challenge(CHALLENGES["hans"], tmp_path / "text")
    assert found.to_pylist() == [
        {"premise": "a b", "hypothesis": "b", "label": 1},
        {"premise": "c", "hypothesis": "d", "label": 0},
    ]
    assert read_challenge(CHALLENGES["hans"], tmp_path).equals(found)


def test_the_diagnostics_are_read_as_glue_gives_them_with_labels(tmp_path):
    write_lines(tmp_path / "diagnostic-full.tsv", AX, '\tACL\tThe "cat".\tA dog.\tcontradiction\n')
    assert read_challenge(CHALLENGES["ax"], tmp_path).to_pylist() == [
        {"premise": 'The "cat".', "hypothesis": "A dog.", "label": 2}
    ]


@pytest.mark.parametrize("name", CHALLENGES)
def test_a_missing_set_is_named_with_where_to_get_it(tmp_path, name):
    challenge = CHALLENGES[name]
    with pytest.raises(MissingInputError, match="file not found") as refusal:
        read_challenge(challenge, tmp_path)
    for told in (str(tmp_path / challenge.files[0]), challenge.publisher, f"take '{challenge.collection}' out of"):
        assert told in str(refusal.value)


def test_the_unlabelled_diagnostics_of_the_hub_are_refused(tmp_path):
    pq.write_table(pa.table({"premise": ["a"], "hypothesis": ["b"], "label": [-1]}), tmp_path / "ax.parquet")
    with pytest.raises(
        DataError, match="labels from -1 to -1, expected 0 to 2; an unlabelled .* cannot be scored"
    ) as no:
        read_challenge(CHALLENGES["ax"], tmp_path)
    assert "ax.parquet" in str(no.value) and "with labels (the hub's copy has none)" in str(no.value)


def test_classes_in_another_order_are_refused(tmp_path):
    pq.write_table(hans_table(["non-entailment", "entailment"]), tmp_path / "hans.parquet")
    with pytest.raises(DataError, match="classes are non-entailment, entailment, expected entailment, non-entailment"):
        read_challenge(CHALLENGES["hans"], tmp_path)
