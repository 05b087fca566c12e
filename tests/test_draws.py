import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from symbert.draws import below, mix, permute, stream, uniform


@given(st.integers(1, 3000), st.integers(0, 2**40), st.integers(0, 50))
def test_a_permutation_reaches_every_index_once(size, seed, epoch):
    assert sorted(permute(np.arange(size), size, seed, epoch)) == list(range(size))


def test_a_permutation_differs_between_epochs_and_seeds():
    orders = [tuple(permute(np.arange(1000), 1000, seed, epoch)) for seed in (1, 2) for epoch in (0, 1)]
    assert len(set(orders)) == 4
    for order in orders:
        fixed = sum(index == image for index, image in enumerate(order))
        assert fixed < 10  # a random permutation keeps one index on average


def test_a_permutation_of_part_of_the_range_agrees_with_the_whole():
    assert (permute(np.array([0, 77, 12344]), 12345, 7) == permute(np.arange(12345), 12345, 7)[[0, 77, 12344]]).all()


def test_uniform_numbers_are_uniform_and_independent_of_their_neighbours():
    sample = uniform(3, np.arange(200_000))
    assert sample.min() >= 0 and sample.max() < 1
    assert abs(sample.mean() - 0.5) < 5 * (1 / 12 / len(sample)) ** 0.5
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 5 / len(sample) ** 0.5
    assert uniform(3, np.array([17]))[0] == sample[17]


def test_a_stream_is_the_output_of_splitmix64():
    """First outputs of the reference implementation for seed 1234567 (Vigna, splitmix64.c)."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert stream(np.array([99, 1234567], np.uint64), 4)[1].tolist() == expected


@given(st.integers(1, 2**40))
def test_integers_below_a_limit_share_the_words_evenly(limit):
    edges = np.array([0, 2**63, 2**64 - 1], np.uint64)
    assert below(edges, limit).tolist() == [0, limit // 2, limit - 1]


def test_integers_below_a_limit_are_equally_likely():
    counts = np.bincount(below(mix(1, np.arange(120_000)), 12), minlength=12)
    assert chisquare(counts).pvalue > 1e-6
