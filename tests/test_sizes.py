"""A size's threads, memory and GPU follow from its shape."""

import pytest

from symbert.model.parameters import counts_of
from symbert.sizes import SIZES, Shape, by_parameters

DEEP = Shape(12, 2, hidden_size=64, intermediate_size=256, initializer_range=0.07)
LARGE = Shape(24, 16, hidden_size=1024, intermediate_size=4096, initializer_range=0.02)


@pytest.mark.parametrize(
    ("shape", "threads", "memory", "needs_gpu"),
    [
        (SIZES["tiny"], 1, 2000, False),
        (SIZES["small"], 4, 8000, True),
        (SIZES["base"], 8, 16000, True),
        (DEEP, 1, 2000, False),
        (LARGE, 14, 28000, True),
    ],
)
def test_what_a_job_needs_grows_with_the_parameters(shape, threads, memory, needs_gpu):
    assert (shape.threads, shape.memory, shape.needs_gpu) == (threads, memory, needs_gpu)


def test_sizes_are_ordered_by_their_parameters_whatever_their_names(monkeypatch):
    monkeypatch.setitem(SIZES, "deep", DEEP)
    monkeypatch.setitem(SIZES, "a-large-one", LARGE)
    assert by_parameters(SIZES) == ["tiny", "deep", "small", "base", "a-large-one"]


def test_parameters_are_those_of_the_model(monkeypatch):
    monkeypatch.setitem(SIZES, "deep", DEEP)
    assert DEEP.parameters() == counts_of("deep", ["original"])["parameters"]["original"]
