import pytest

from symbert.model.bert import counts_of
from symbert.operators import OPERATORS
from symbert.sizes import SIZES

# `shared` is by its formula: its authors print no count of the whole model.
PUBLISHED = {  # Table 2 of the paper
    "small": {"original": 28_795_194, "symmetric": 27_744_570, "pairwise": 27_875_642, "shared": 26_700_090},
    "base": {"original": 109_514_298, "symmetric": 102_427_194, "pairwise": 103_017_018, "shared": 95_367_738},
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_counts_equal_the_papers_table_2(size):
    assert counts_of(SIZES[size], [OPERATORS[name] for name in PUBLISHED[size]])["parameters"] == PUBLISHED[size]


def test_shared_saves_66_53_percent_of_the_attention_block_of_base():
    """Kowsher et al., arXiv 2412.00359, abstract; query, key and value together."""
    counts = counts_of(SIZES["base"], [OPERATORS["original"], OPERATORS["shared"]])["attention_parameters"]
    assert round(100 * (1 - counts["shared"] / counts["original"]), 4) == 66.5366
