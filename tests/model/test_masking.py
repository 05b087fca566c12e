import numpy as np
import pytest

from symbert.model.masking import Masker

SPECIAL = (0, 1, 2, 3, 4)
MASKER = Masker(seed=1, probability=0.15, vocabulary_size=1000, mask_id=4, special_ids=SPECIAL)


def rows(count: int = 2000) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1000, (count, 64))


def test_the_shares_are_those_of_bert():
    ids = rows()
    corrupted, chosen = MASKER.corrupt(ids, np.zeros(len(ids), int), np.arange(len(ids)))
    candidates = ~np.isin(ids, SPECIAL)
    for share, count, total in [
        (0.15, chosen.sum(), candidates.sum()),
        (0.80, (chosen & (corrupted == 4)).sum(), chosen.sum()),
        (0.10, (chosen & (corrupted != 4) & (corrupted != ids)).sum(), chosen.sum()),
        (0.10, (chosen & (corrupted == ids)).sum(), chosen.sum()),
    ]:
        assert abs(count / total - share) < 5 * (share * (1 - share) / total) ** 0.5 + 0.001, share


def test_special_tokens_are_never_chosen_and_other_positions_never_changed():
    ids = rows()
    corrupted, chosen = MASKER.corrupt(ids, np.zeros(len(ids), int), np.arange(len(ids)))
    assert not chosen[np.isin(ids, SPECIAL)].any()
    assert (corrupted == ids)[~chosen].all()


def test_random_tokens_cover_the_vocabulary():
    ids = rows(4000)
    corrupted, chosen = MASKER.corrupt(ids, np.zeros(len(ids), int), np.arange(len(ids)))
    random = corrupted[chosen & (corrupted != 4) & (corrupted != ids)]
    assert random.min() < 5 and random.max() > 990
    assert len(np.unique(random)) > 950


def test_a_rows_mask_does_not_depend_on_its_batch():
    ids = rows(100)
    whole, chosen = MASKER.corrupt(ids, np.full(100, 3), np.arange(100))
    some = np.array([77, 5, 31])
    part, part_chosen = MASKER.corrupt(ids[some], np.full(3, 3), some)
    assert (part == whole[some]).all() and (part_chosen == chosen[some]).all()


@pytest.mark.parametrize("change", [{"seed": 2}, {"epoch": 1}, {"sequence": 1000}])
def test_seed_epoch_and_sequence_each_change_the_mask(change):
    ids = rows(50)
    masker = Masker(change.get("seed", 1), 0.15, 1000, 4, SPECIAL)
    epoch, sequence = np.full(50, change.get("epoch", 0)), np.arange(50) + change.get("sequence", 0)
    _, before = MASKER.corrupt(ids, np.zeros(50, int), np.arange(50))
    _, after = masker.corrupt(ids, epoch, sequence)
    both = (before & after).sum()
    assert abs(both / before.size - 0.15**2) < 0.01  # as independent draws would overlap
