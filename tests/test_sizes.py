"""A size's threads, memory and GPU follow from its shape."""

import pytest

from symbert.model.parameters import counts_of
from symbert.operators import OPERATORS
from symbert.sizes import SIZES, Shape, by_parameters

DEEP = Shape(12, 2, hidden_size=64, intermediate_size=256, initializer_range=0.07)


def test_sizes_are_ordered_by_their_parameters_whatever_their_names(monkeypatch):
    monkeypatch.setitem(SIZES, "deep", DEEP)
    assert by_parameters(sorted(SIZES)) == ["tiny", "deep", "small", "base", "large", "xlarge"]


@pytest.mark.parametrize(("size", "parameters"), [("large", 335_174_458), ("xlarge", 1_276_395_322)])
def test_larger_sizes_need_their_row_alone(size, parameters):
    """335,174,458 are those of bert-large-uncased with its masked-token head."""
    counted = counts_of(size, ["original", "symmetric", "pairwise"])
    assert SIZES[size].parameters() == counted["parameters"]["original"] == parameters
    for attention, count in counted["attention_parameters"].items():
        assert count == OPERATORS[attention].count(SIZES[size].hidden_size, SIZES[size].num_attention_heads)
