from dataclasses import replace
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertTokenizerFast

from symbert.errors import DataError
from symbert.glue import prepare
from symbert.glue.prepare import facts_of, pair_encoder, tokenise, write_prepared
from symbert.glue.tasks import GLUE, published_split

words = st.lists(st.sampled_from(["matrix", "of", "the", "unseen", "é", "token."]), max_size=30).map(" ".join)


@settings(max_examples=60)
@given(words, words, st.integers(8, 40))
def test_pairs_are_encoded_and_cut_as_hugging_face_does(vocabulary, first, second, max_length):
    reference = BertTokenizerFast(vocab=str(vocabulary), do_lower_case=True)
    ours = pair_encoder(vocabulary, max_length)
    for texts in ((first,), (first, second)):
        expected = reference(*([text] for text in texts), truncation=True, max_length=max_length)
        found = ours.encode(*texts)
        assert [found.ids] == expected["input_ids"]
        assert [found.type_ids] == expected["token_type_ids"]


@pytest.mark.parametrize("max_length", [9, 40])
def test_rows_that_share_texts_have_the_ids_of_each_pair_alone(vocabulary, max_length):
    reference = BertTokenizerFast(vocab=str(vocabulary), do_lower_case=True)
    texts = ["matrix of the", 6 * "unseen token. ", 5 * "the é of "]
    firsts, seconds = zip(*product(texts, texts), strict=True)
    rows = pa.table({"sentence1": firsts, "sentence2": seconds, "label": [0] * 9})
    found = tokenise(GLUE["mrpc"], rows, pair_encoder(vocabulary, max_length))
    expected = reference(list(firsts), list(seconds), truncation=True, max_length=max_length)
    assert found["input_ids"].to_pylist() == expected["input_ids"]
    assert found["token_type_ids"].to_pylist() == expected["token_type_ids"]


def test_the_facts_say_what_was_used_and_that_it_is_partial(prepared):
    facts = facts_of(prepared("mrpc"))
    assert facts == {
        "task": "mrpc",
        "stand_in": True,
        "rows": {"train": 64, "validation": 40},
        "official_rows": {"train": 3668, "validation": 408},
        "partial": True,
    }


def test_a_sample_is_spread_over_the_file_and_the_same_each_time(prepared):
    first, again = prepared("cola").read_bytes(), prepared("cola").read_bytes()
    assert first == again
    everything = pq.read_table(prepared("cola", max_examples=None, max_evaluation_examples=None))
    sampled = pq.read_table(prepared("cola", max_examples=300))["input_ids"].to_pylist()[:300]
    places = [everything["input_ids"].to_pylist().index(ids) for ids in sampled]
    assert len(everything) == 1500
    assert max(places) > 900 and min(places) < 100


def test_fewer_rows_than_official_are_refused_unless_allowed(prepared):
    with pytest.raises(
        DataError, match=r"mrpc: split 'train' has 1,000 rows, expected 3,668 as its publisher has; set"
    ):
        prepared("mrpc", allow_partial=False)


def test_more_rows_than_official_are_not_complete_either(prepared, monkeypatch):
    """GLUE's older archive has three more rows of qqp than the hub."""
    monkeypatch.setitem(GLUE, "mrpc", replace(GLUE["mrpc"], official_rows={"train": 997, "validation": 500}))
    everything = {"max_examples": None, "max_evaluation_examples": None}
    with pytest.raises(DataError, match=r"'train' has 1,000 rows, expected 997 .*'glue.allow_partial: true' to go on"):
        prepared("mrpc", allow_partial=False, **everything)
    facts = facts_of(prepared("mrpc", **everything))
    assert facts["rows"] == {"train": 1000, "validation": 500} and facts["partial"]


@pytest.fixture
def prepared_from_mirror(mirror, laboratory):
    """Prepares all rows of a task of a mirror; gives the file."""
    laboratory.vocabulary = mirror / "google-bert/bert-base-uncased/vocab.txt"

    def prepare(name, root=mirror):
        complete = {"max_examples": None, "max_evaluation_examples": None, "max_length": 128}
        return laboratory.prepare(name, allow_partial=False, root=root, **complete)

    return prepare


@pytest.mark.parametrize(("name", "rows", "longest"), [("rte", (2490, 277), 128), ("wnli", (635, 71), 108)])
def test_real_rows_of_a_complete_task_are_not_partial(prepared_from_mirror, name, rows, longest):
    table, facts = pq.read_table(prepared_from_mirror(name)), facts_of(prepared_from_mirror(name))
    assert facts["rows"] == facts["official_rows"] == dict(zip(("train", "validation"), rows, strict=True))
    assert facts["partial"] is False and facts["stand_in"] is False
    assert max(len(ids) for ids in table["input_ids"].to_pylist()) == longest


def test_one_missing_real_row_is_noticed(prepared_from_mirror, mirror, tmp_path):
    for split in GLUE["wnli"].splits:
        table, file = (root / published_split(GLUE["wnli"], split).location for root in (mirror, tmp_path / "mirror"))
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pq.read_table(table).slice(split == "validation"), file)
    with pytest.raises(DataError, match=r"wnli: split 'validation' has 70 rows, expected 71 as"):
        prepared_from_mirror("wnli", tmp_path / "mirror")


def test_rows_that_nobody_prepared_are_named_and_no_bug(tmp_path):
    """A table without what prepare-task says of it ended with 70."""
    file = tmp_path / "rte.parquet"
    for write in (lambda: pq.write_table(pa.table({"label": [1]}), file), lambda: file.write_bytes(b"PAR1")):
        write()
        with pytest.raises(DataError, match=r"rte\.parquet: no prepared rows, or damaged; delete it and run again"):
            facts_of(file)


def test_rows_are_written_as_they_come_and_no_row_group_is_larger_than_was_said(tmp_path, monkeypatch):
    """All rows of a task were held until the last was tokenised: of ReCoRD a million."""
    monkeypatch.setattr(prepare, "ROW_GROUP", 1000)
    made, written = [], []

    def tables():
        for number in range(10):
            made.append(number)
            written.append(sum(file.stat().st_size for file in tmp_path.iterdir()))
            yield pa.table(
                {"split": ["train"] * 20, "label": pa.array(range(20 * number, 20 * number + 20), pa.int64())}
            )

    write_prepared(tmp_path / "rows.parquet", tables(), {"task": "rte"})
    assert made == list(range(10)) and written[-1] > written[0]
    assert pq.read_table(tmp_path / "rows.parquet")["label"].to_pylist() == list(range(200))
    groups = pq.read_metadata(tmp_path / "rows.parquet")
    counts = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
    assert counts == [60, 60, 60, 20], "20 rows are 345 bytes: a group is closed by the first table beyond its size"
    assert facts_of(tmp_path / "rows.parquet") == {"task": "rte"}
