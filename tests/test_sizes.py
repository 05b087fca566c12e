"""A size's parameters follow from its shape."""

from symbert.sizes import SIZES, Shape, by_parameters

DEEP = Shape(12, 2, hidden_size=64, intermediate_size=256, initializer_range=0.07)


def test_sizes_are_ordered_by_their_parameters_whatever_their_names():
    assert by_parameters({"deep": DEEP, **SIZES}) == ["tiny", "deep", "small", "base", "large", "xlarge"]


def test_larger_sizes_need_their_row_alone():
    """335,174,458 are those of bert-large-uncased with its masked-token head."""
    assert (SIZES["large"].parameters(), SIZES["xlarge"].parameters()) == (335_174_458, 1_276_395_322)
