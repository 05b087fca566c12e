import numpy as np
import pytest

from pretrain.corpora import SPECIAL, write_corpus
from symbert.errors import IntegrityError, MissingInputError
from symbert.model.masking import Masker
from symbert.pretrain.batches import Rows, training_batch, validation_batches


def masker(seed: int = 1) -> Masker:
    return Masker(seed, 0.15, 60, SPECIAL["mask"], tuple(SPECIAL.values()))


def original_rows(rows: Rows, batch) -> np.ndarray:
    """Undo the corruption: the true ids `batch token`."""
    ids = batch.input_ids.clone()
    ids.view(-1)[batch.positions] = batch.targets
    return ids.numpy()


def test_rows_are_those_of_the_shards_across_their_borders(manifest):
    rows = Rows(manifest, "train")
    whole = np.concatenate([np.load(manifest.parent / f"train-0000{n}.npy") for n in (0, 1)])
    assert len(rows) == 50
    assert (rows[np.array([24, 25, 0, 49])] == whole[[24, 25, 0, 49]]).all()


def test_every_epoch_reads_every_row_once_in_another_order(manifest):
    rows = Rows(manifest, "train")
    read = np.concatenate([original_rows(rows, training_batch(rows, masker(), step, 10)) for step in range(10)])
    first, second = read[:50], read[50:]
    everything = sorted(map(tuple, rows[np.arange(50)]))
    assert sorted(map(tuple, first)) == sorted(map(tuple, second)) == everything
    assert not (first == second).all()


def test_a_batch_is_a_function_of_seed_and_step_alone(manifest):
    rows = Rows(manifest, "train")
    one, again = (training_batch(rows, masker(), 7, 8) for _ in range(2))
    assert (one.input_ids == again.input_ids).all() and (one.positions == again.positions).all()
    other = training_batch(rows, masker(seed=2), 7, 8)
    assert not (one.input_ids == other.input_ids).all()


def test_a_batch_may_span_two_epochs(manifest):
    rows = Rows(manifest, "train")
    crossing = training_batch(rows, masker(), 6, 8)  # positions 48 to 55 of 50 rows
    assert crossing.input_ids.shape == (8, 16)
    last = original_rows(rows, crossing)[:2]
    before = np.concatenate([original_rows(rows, training_batch(rows, masker(), step, 8)) for step in range(6)])
    assert sorted(map(tuple, np.concatenate([before, last]))) == sorted(map(tuple, rows[np.arange(50)]))


def test_validation_masks_are_fixed_and_independent_of_the_batch_size(manifest):
    rows = Rows(manifest, "validation")
    by_three = np.concatenate([batch.input_ids.numpy() for batch in validation_batches(rows, masker(), 3)])
    by_eight = np.concatenate([batch.input_ids.numpy() for batch in validation_batches(rows, masker(), 8)])
    assert (by_three == by_eight).all() and len(by_three) == 8


def test_a_missing_or_shorter_shard_is_named(tmp_path):
    manifest = write_corpus(tmp_path / "shards")
    shard = manifest.parent / "train-00001.npy"
    np.save(shard, np.load(shard)[:-1])
    with pytest.raises(IntegrityError, match=r"train-00001.npy: 24 rows, the manifest says 25"):
        Rows(manifest, "train")
    shard.unlink()
    with pytest.raises(MissingInputError, match=r"train-00001.npy"):
        Rows(manifest, "train")
