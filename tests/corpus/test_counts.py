from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symbert.corpus.counts import EDGES, histogram


@given(st.sampled_from(sorted(EDGES)), st.lists(st.floats(0, 1e9)), st.lists(st.sampled_from([1.0, 10.0, 1.259])))
def test_every_value_is_counted_in_the_bin_that_begins_at_or_below_it(name, values, edges):
    counts = histogram(name, [*values, *edges])
    bounds = [-np.inf, *EDGES[name], np.inf]
    expected = [sum(low <= value < high for value in [*values, *edges]) for low, high in pairwise(bounds)]
    assert counts == expected
