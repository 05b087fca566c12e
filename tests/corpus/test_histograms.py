from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symbert.corpus.histograms import EDGES, histogram


def test_edges_are_ten_to_the_decade():
    for edges in EDGES.values():
        assert edges[0] == 1.0
        assert edges[10] == 10.0
        assert np.allclose(np.diff(np.log10(edges)), 0.1, atol=1e-4)


@given(st.sampled_from(sorted(EDGES)), st.lists(st.floats(0, 1e9)), st.lists(st.sampled_from([1.0, 10.0, 1.259])))
def test_every_value_is_counted_in_the_bin_that_begins_at_or_below_it(name, values, edges):
    counts = histogram(name, [*values, *edges])
    bounds = [-np.inf, *EDGES[name], np.inf]
    expected = [sum(low <= value < high for value in [*values, *edges]) for low, high in pairwise(bounds)]
    assert counts == expected
