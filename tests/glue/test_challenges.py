import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.glue.challenges import CHALLENGES
from symbert.glue.sources import read_challenge
from symbert.glue.tasks import GLUE

PRESENT = [name for name in CHALLENGES if name != "hans"]  # in the mirror


def test_real_sets_are_complete_and_labelled_as_the_task(mirror):
    for name in PRESENT:
        challenge = CHALLENGES[name]
        table = read_challenge(challenge, mirror / "ood")
        assert len(table) == challenge.official_rows
        assert table.column_names == [*GLUE[challenge.task].columns, "label"]
        assert set(table["label"].to_pylist()) == set(range(len(challenge.labels)))
    labels = read_challenge(CHALLENGES["ax"], mirror / "ood")["label"].to_pylist()
    assert [labels.count(label) for label in range(3)] == [460, 386, 258]  # entailment, neutral, contradiction (paper)


def hans_table(names=("entailment", "non-entailment")):
    features = {"label": {"names": list(names), "_type": "ClassLabel"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    rows = {"premise": ["a b", "c"], "hypothesis": ["b", "d"], "label": [1, 0], "heuristic": ["x", "x"]}
    return pa.table(rows).replace_schema_metadata(metadata)


def test_hans_is_read_as_its_publisher_labels_it(tmp_path):
    pq.write_table(hans_table(), tmp_path / "hans.parquet")
    assert read_challenge(CHALLENGES["hans"], tmp_path).to_pylist() == [
        {"premise": "a b", "hypothesis": "b", "label": 1},
        {"premise": "c", "hypothesis": "d", "label": 0},
    ]
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  hans.parquet\n")
    with pytest.raises(IntegrityError, match=r"hans\.parquet: sha256 expected 0000"):
        read_challenge(CHALLENGES["hans"], tmp_path)


def test_a_missing_unlabelled_or_otherwise_labelled_set_is_refused(tmp_path):
    for challenge in CHALLENGES.values():
        with pytest.raises(MissingInputError, match=re.escape(challenge.publisher)):
            read_challenge(challenge, tmp_path)
    unlabelled = pa.table({"premise": ["a"], "hypothesis": ["b"], "label": [-1]})  # as the hub has the diagnostics
    for name, table in (("ax", unlabelled), ("hans", hans_table(["non-entailment", "entailment"]))):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        with pytest.raises(DataError, match=rf"{name}\.parquet"):
            read_challenge(CHALLENGES[name], tmp_path)
