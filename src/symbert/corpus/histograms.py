"""Distributions over logarithmic bins that are the same for every part, so that counts of parts add up."""

from collections.abc import Sequence

import numpy as np

BINS_PER_DECADE = 10
DECADES = {"harmful_perplexity": 7, "characters": 7, "tokens": 6}  # from 1 on
EDGES = {
    name: [float(f"{10 ** (step / BINS_PER_DECADE):.4g}") for step in range(decades * BINS_PER_DECADE + 1)]
    for name, decades in DECADES.items()
}
"""Edges of the bins by quantity: harmful perplexity, characters and tokens per document."""


def histogram(name: str, values: Sequence[float]) -> list[int]:
    """Counts of `values` below the first edge, from each edge to the next, and from the last edge on: edges + 1."""
    bins = np.searchsorted(EDGES[name], np.asarray(values, dtype=np.float64), side="right")
    return np.bincount(bins, minlength=len(EDGES[name]) + 1).tolist()
