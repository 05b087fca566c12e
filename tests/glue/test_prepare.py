from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertTokenizerFast

from symbert.errors import DataError
from symbert.glue.encoder import encoder_of
from symbert.glue.prepare import TaskFacts, metadata_of
from symbert.glue.tasks import GLUE
from symbert.steps import File

words = st.lists(st.sampled_from(["matrix", "of", "the", "unseen", "é", "token."]), max_size=30).map(" ".join)


@settings(max_examples=60)
@given(words, words, st.integers(8, 40))
def test_pairs_are_encoded_and_cut_as_hugging_face_does(vocabulary, first, second, max_length):
    reference = BertTokenizerFast(vocab=str(vocabulary), do_lower_case=True)
    ours = encoder_of(File(str(vocabulary)), None)
    for texts in ((first,), (first, second)):
        expected = reference(*([text] for text in texts), truncation=True, max_length=max_length)
        ids, types = ours.rows([texts if texts[1:] else first], max_length)
        assert ids == expected["input_ids"]
        assert types == expected["token_type_ids"]


def test_a_sample_is_spread_over_the_file_and_the_same_each_time(prepared):
    first, again = prepared("cola").read_bytes(), prepared("cola").read_bytes()
    assert first == again
    everything = pq.read_table(prepared("cola", max_examples=None, max_evaluation_examples=None))
    sampled = pq.read_table(prepared("cola", max_examples=300))["input_ids"].to_pylist()[:300]
    places = [everything["input_ids"].to_pylist().index(ids) for ids in sampled]
    assert len(everything) == 512 + 500
    assert max(places) > 460 and min(places) < 50


def test_fewer_or_more_rows_than_official_are_refused_unless_allowed(prepared, monkeypatch):
    """GLUE's older archive has three more rows of qqp than the hub."""
    with pytest.raises(DataError, match=r"mrpc: split 'train' has 512 rows, expected 3,668 .*'glue.allow_partial"):
        prepared("mrpc", allow_partial=False)
    monkeypatch.setitem(GLUE, "mrpc", replace(GLUE["mrpc"], rows=(509, 500)))
    with pytest.raises(DataError, match=r"'train' has 512 rows, expected 509 .*'glue.allow_partial"):
        prepared("mrpc", allow_partial=False, max_examples=None)
    facts = metadata_of(prepared("mrpc"), TaskFacts)
    assert facts.rows == {"train": 64, "validation": 40} and facts.partial and facts.stand_in
    assert facts.official_rows == {"train": 509, "validation": 500}
