import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.corpus.counts import EDGES, count_batch, histogram, is_full
from symbert.files import read_json


@given(st.sampled_from(sorted(EDGES)), st.lists(st.floats(0, 1e9)), st.lists(st.sampled_from([1.0, 10.0, 1.259])))
def test_every_value_is_counted_in_the_bin_that_begins_at_or_below_it(name, values, edges):
    counts = histogram(name, [*values, *edges])
    bounds = [-np.inf, *EDGES[name], np.inf]
    expected = [sum(low <= value < high for value in [*values, *edges]) for low, high in pairwise(bounds)]
    assert counts == expected


@pytest.fixture
def batches(tmp_path):
    """Two batches of two parts each: 10 documents, then 30 in all, of ten tokens."""
    records = []
    for number, documents in enumerate([7, 3, 0, 20]):
        records.append(tmp_path / f"{number}.json")
        records[-1].write_text(json.dumps({"documents": documents, "tokens": 10 * documents, "taken": True}))
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    count_batch(records[:2], first)
    count_batch(records[2:], second, previous=first)
    return first, second


def test_batches_add_up(batches):
    assert [read_json(path) for path in batches] == [
        {"documents": 10, "tokens": 100},
        {"documents": 30, "tokens": 300},
    ]


@pytest.mark.parametrize(("max_documents", "full"), [(31, [False, False]), (30, [False, True]), (10, [True, True])])
def test_documents_fill_the_corpus(batches, write_section, max_documents, full):
    intake = write_section("intake", max_documents=max_documents)
    assert [is_full(batch, intake) for batch in batches] == full
    assert not is_full(None, intake)
