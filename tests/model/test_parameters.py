import pytest

from symbert.model.parameters import counts_of
from symbert.sizes import SIZES

PUBLISHED = {  # Table 2 of the paper
    "small": {"original": 28_795_194, "symmetric": 27_744_570, "pairwise": 27_875_642},
    "base": {"original": 109_514_298, "symmetric": 102_427_194, "pairwise": 103_017_018},
}
SHARED = {"small": 26_700_090, "base": 95_367_738}  # by its formula; its authors print no count of the whole model


@pytest.mark.parametrize("size", PUBLISHED)
def test_counts_equal_the_papers_table_2(size):
    assert counts_of(size, list(PUBLISHED[size]))["parameters"] == PUBLISHED[size]


@pytest.mark.parametrize("size", SHARED)
def test_shared_leaves_out_two_of_three_projections_and_adds_three_diagonals(size):
    counts = counts_of(size, ["original", "shared"])["parameters"]
    shape = SIZES[size]
    h = shape.hidden_size
    assert counts["shared"] == SHARED[size]
    assert counts["original"] - counts["shared"] == shape.num_hidden_layers * (2 * (h * h + h) - 3 * h)


def test_shared_saves_66_53_percent_of_the_attention_block_of_base():
    """Kowsher et al., arXiv 2412.00359, abstract; query, key and value together."""
    counts = counts_of("base", ["original", "shared"])["attention_parameters"]
    assert round(100 * (1 - counts["shared"] / counts["original"]), 4) == 66.5366
