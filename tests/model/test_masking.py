from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbert.draws import ROWS_AT_ONCE, Masker

GOLDEN = 0x9E3779B97F4A7C15
MASK = 4
SPECIAL = (0, 1, 2, 3, MASK)
MASKER = Masker(seed=1, probability=0.15, vocabulary_size=1000, mask_id=MASK, special_ids=SPECIAL)


def rows(count: int = 2000, tokens: int = 64) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1000, (count, tokens))


def corrupt(ids: np.ndarray, masker: Masker = MASKER, epoch: int = 0, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Corrupted ids, and whether each was chosen, both `batch token`; rows are the sequences from `first` on."""
    corrupted, positions = masker.corrupt(ids, np.full(len(ids), epoch), first + np.arange(len(ids)))
    chosen = np.zeros(ids.shape, bool)
    chosen.reshape(-1)[positions] = True
    return corrupted, chosen


def assert_share(count: int, total: int, share: float) -> None:
    assert abs(count - total * share) < 5 * (total * share * (1 - share)) ** 0.5, (count / total, share)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**63), epoch=st.integers(0, 200), first=st.integers(0, 2**40))
def test_the_shares_are_those_of_bert(seed, epoch, first):
    ids = rows()
    masker = Masker(seed, 0.15, 1000, MASK, SPECIAL)
    corrupted, chosen = corrupt(ids, masker, epoch, first)
    assert_share(chosen.sum(), (~np.isin(ids, SPECIAL)).sum(), 0.15)
    total, same = chosen.sum(), corrupted == ids
    assert_share((chosen & same).sum(), total, 0.1 + 0.1 / 1000)  # a random token may be the true one
    assert_share((chosen & (corrupted == MASK)).sum(), total, 0.8 + 0.1 / 1000)
    assert_share((chosen & ~same & (corrupted != MASK)).sum(), total, 0.1 * (1 - 2 / 1000))


@given(seed=st.integers(0, 2**63), ids=st.lists(st.integers(0, 30), min_size=40, max_size=40))
def test_special_tokens_are_never_chosen_and_other_positions_never_changed(seed, ids):
    ids = np.array(ids).reshape(5, 8)
    corrupted, chosen = corrupt(ids, Masker(seed, 0.5, 31, MASK, SPECIAL))
    assert not chosen[np.isin(ids, SPECIAL)].any()
    assert (corrupted == ids)[~chosen].all()


def test_positions_rise_over_blocks_of_rows_and_the_given_ids_are_not_touched():
    ids = rows(2 * ROWS_AT_ONCE + 1)
    before = ids.copy()
    corrupted, positions = MASKER.corrupt(ids, np.zeros(len(ids), int), np.arange(len(ids)))
    assert (np.diff(positions) > 0).all() and positions[-1] >= 2 * ROWS_AT_ONCE * 64
    assert set(np.flatnonzero(corrupted != ids)) <= set(positions) and (ids == before).all()


@given(some=st.lists(st.integers(0, 149), min_size=1, max_size=90), epoch=st.integers(0, 5))
def test_a_rows_mask_does_not_depend_on_its_batch_nor_on_its_length(some, epoch):
    ids = rows(150, 16)
    whole, chosen = corrupt(ids, epoch=epoch)
    part, positions = MASKER.corrupt(ids[some], np.full(len(some), epoch), np.array(some))
    assert (part == whole[some]).all() and (positions == np.flatnonzero(chosen[some])).all()
    short, chosen_in_short = corrupt(ids[:, :9], epoch=epoch)
    assert (short == whole[:, :9]).all() and (chosen_in_short == chosen[:, :9]).all()


@pytest.mark.parametrize("change", [{"masker": replace(MASKER, seed=2)}, {"epoch": 1}, {"first": 1000}])
def test_seed_epoch_and_sequence_each_change_the_mask(change):
    ids = np.full((1000, 64), 7)
    _, before = corrupt(ids)
    _, after = corrupt(ids, **change)
    assert_share((before & after).sum(), before.size, 0.15**2)  # as independent draws overlap


def finalised(word: int) -> int:
    """SplitMix64's output function in Python's integers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def folded(*words: int) -> int:
    state = 0
    for word in words:
        state = finalised((state + GOLDEN + word) % 2**64)
    return state


def test_the_masks_are_these_draws_and_no_others():
    """A run that is resumed with another version goes on with the masks it began with."""
    ids = np.full((3, 64), 7)
    corrupted, positions = MASKER.corrupt(ids, np.full(3, 2), np.array([0, 5, 137_000_000]))
    expected = {}
    for row, sequence in enumerate([0, 5, 137_000_000]):
        key = folded(1, 2, sequence)
        for token in range(64):
            word = finalised((key + (token + 1) * GOLDEN) % 2**64)
            if word < 0.15 * 2**64:
                kind, random = divmod(folded(word) * 10_000 >> 64, 1000)
                expected[64 * row + token] = MASK if kind < 8 else random if kind == 8 else 7
    assert dict(zip(positions.tolist(), corrupted.reshape(-1)[positions].tolist(), strict=True)) == expected
    assert len(expected) > 20
