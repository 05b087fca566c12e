import json
import os
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from pretrain.corpora import SPECIAL
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import read_json
from symbert.layout import Run
from symbert.model.configuration import configuration_of
from symbert.model.masking import Masker
from symbert.model.network import MaskedModel, initialize
from symbert.operators import OPERATORS
from symbert.pretrain import data as module
from symbert.pretrain.data import (
    IGNORED,
    MaskedBatch,
    PackedRows,
    sequences_of,
    slots_of,
    training_batch,
    validation_batches,
    verify_manifest,
    verify_shards,
)
from symbert.pretrain.train import Trainer
from symbert.settings import PretrainSettings, read_settings


def masker(seed: int = 1, probability: float = 0.15) -> Masker:
    return Masker(seed, probability, 60, SPECIAL["mask"], tuple(SPECIAL.values()))


def original_rows(batch: MaskedBatch) -> np.ndarray:
    """Undo the corruption: the true ids `batch token`."""
    ids = batch.input_ids.clone()
    ids.view(-1)[batch.positions] = batch.targets
    return ids.numpy()


def together(parts: list[MaskedBatch]) -> MaskedBatch:
    """Parts put one after the other again."""
    starts = np.cumsum([0] + [part.input_ids.numel() for part in parts[:-1]])
    positions = [part.positions + int(start) for part, start in zip(parts, starts, strict=True)]
    return MaskedBatch(
        torch.cat([part.input_ids for part in parts]), torch.cat(positions), torch.cat([part.targets for part in parts])
    )


def assert_same(one: MaskedBatch, other: MaskedBatch) -> None:
    for name, tensor in vars(one).items():
        assert torch.equal(tensor, vars(other)[name]), name


def tiny_model(attention: str = "pairwise") -> MaskedModel:
    model = MaskedModel(configuration_of("tiny", attention, 60, dropout=0.0))
    initialize(model, 1)
    return model.double()


def loss_and_gradients(model: MaskedModel, batches: list[MaskedBatch]) -> tuple[Tensor, list[Tensor]]:
    """Summed loss of the batches, and what it adds up to in the parameters."""
    model.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        logits = model.masked_logits(batch.input_ids, batch.positions)
        loss = F.cross_entropy(logits, batch.targets, ignore_index=IGNORED, reduction="sum")
        loss.backward()
        total += loss.detach()
    return total, [parameter.grad.clone() for parameter in model.parameters()]


def test_every_epoch_reads_every_row_once_in_another_order(manifest):
    rows = PackedRows(manifest, "train")
    read = np.concatenate([original_rows(training_batch(rows, masker(), step, 10)) for step in range(10)])
    first, second = read[:50], read[50:]
    everything = sorted(map(tuple, rows[np.arange(50)]))
    assert sorted(map(tuple, first)) == sorted(map(tuple, second)) == everything
    assert not (first == second).all()


def test_a_batch_is_a_function_of_seed_and_step_alone(manifest):
    rows = PackedRows(manifest, "train")
    one, again = (training_batch(rows, masker(), 7, 8) for _ in range(2))
    assert_same(one, again)
    other = training_batch(rows, masker(seed=2), 7, 8)
    assert not torch.equal(one.input_ids, other.input_ids)


def test_the_sequences_of_a_step_are_the_rows_of_its_batch(manifest):
    rows = PackedRows(manifest, "train")
    epoch, sequence = sequences_of(6, 8, len(rows), seed=1)  # positions 48 to 55 of 50 rows
    assert epoch.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert (original_rows(training_batch(rows, masker(), 6, 8)) == rows[sequence]).all()


def test_a_batch_may_span_two_epochs(manifest):
    rows = PackedRows(manifest, "train")
    last = original_rows(training_batch(rows, masker(), 6, 8))[:2]
    before = np.concatenate([original_rows(training_batch(rows, masker(), step, 8)) for step in range(6)])
    assert sorted(map(tuple, np.concatenate([before, last]))) == sorted(map(tuple, rows[np.arange(50)]))


def test_a_sequence_gets_the_same_mask_in_batches_of_any_size(manifest):
    rows = PackedRows(manifest, "train")
    by_ten = together([training_batch(rows, masker(), step, 10) for step in range(12)])
    by_forty = together([training_batch(rows, masker(), step, 40) for step in range(3)])
    assert_same(by_ten, by_forty)


def test_validation_masks_are_fixed_and_independent_of_the_batch_size(manifest):
    rows = PackedRows(manifest, "validation")
    by_three = together(list(validation_batches(rows, masker(), 3)))
    by_eight = together(list(validation_batches(rows, masker(), 8)))
    assert_same(by_three, by_eight)
    assert (original_rows(by_eight) == rows[np.arange(8)]).all()


@given(borders=st.sets(st.integers(1, 11)))
def test_micro_batches_put_together_are_the_batch(borders):
    ids = np.random.default_rng(0).integers(0, 60, (12, 16))
    corrupted, positions = masker(probability=0.1).corrupt(ids, np.zeros(12, int), np.arange(12))
    whole = MaskedBatch(*map(torch.from_numpy, (corrupted, positions, ids.take(positions))))
    edges = [0, *sorted(borders), 12]
    parts = [whole.part(first, last) for first, last in pairwise(edges)]
    assert_same(together(parts), whole)
    for part, (first, last) in zip(parts, pairwise(edges), strict=True):
        assert (original_rows(part) == ids[first:last]).all()


def test_the_parts_of_two_ranks_are_the_batch_and_share_no_copy_of_its_ids(manifest):
    whole = training_batch(PackedRows(manifest, "train"), masker(), 3, 8)
    first, second = whole.part(0, 4), whole.part(4, 8)
    assert_same(together([first, second]), whole)
    assert second.input_ids.data_ptr() == whole.input_ids[4].data_ptr()


@pytest.mark.parametrize(("slots", "expected"), [(64, 64), (7, 21), (20, 20), (1, 20)])
def test_a_padded_batch_has_the_slots_or_a_multiple_of_them(slots, expected):
    batch = MaskedBatch(torch.zeros(4, 16, dtype=torch.int64), torch.arange(20), torch.arange(20))
    padded = batch.padded(slots)
    assert len(padded.positions) == len(padded.targets) == expected
    assert padded.positions[20:].eq(0).all() and padded.targets[20:].eq(IGNORED).all()
    assert torch.equal(padded.positions[:20], batch.positions) and torch.equal(padded.targets[:20], batch.targets)


def test_a_batch_without_a_masked_token_is_padded_too():
    none = torch.zeros(0, dtype=torch.int64)
    padded = MaskedBatch(torch.zeros(1, 4, dtype=torch.int64), none, none).padded(8)
    assert padded.targets.tolist() == 8 * [IGNORED]


@pytest.mark.parametrize("slots", [64, 7])
def test_empty_slots_change_neither_loss_nor_gradients(manifest, slots):
    model, whole = tiny_model(), training_batch(PackedRows(manifest, "train"), masker(), 3, 8)
    loss, gradients = loss_and_gradients(model, [whole])
    padded_loss, padded_gradients = loss_and_gradients(model, [whole.padded(slots)])
    torch.testing.assert_close(padded_loss, loss, rtol=1e-14, atol=0)
    for one, other in zip(gradients, padded_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("attention", OPERATORS)
def test_micro_batches_add_up_to_the_loss_and_gradients_of_the_batch(manifest, attention):
    model, whole = tiny_model(attention), training_batch(PackedRows(manifest, "train"), masker(), 3, 8)
    loss, gradients = loss_and_gradients(model, [whole])
    parts = [whole.part(first, min(first + 3, 8)).padded(16) for first in range(0, 8, 3)]
    added_loss, added_gradients = loss_and_gradients(model, parts)
    torch.testing.assert_close(added_loss, loss, rtol=1e-12, atol=0)
    for one, other in zip(gradients, added_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_the_slots_are_six_deviations_above_the_mean_in_multiples_of_64():
    assert slots_of(256, 512, 0.15) == 20480  # 19,660.8 + 6 · 129.3 = 20,436.4
    assert slots_of(1, 64, 0.15) == 64  # 9.6 + 6 · 2.9 = 26.7


def test_all_operators_of_one_seed_train_on_the_same_batches(manifest, brief, tmp_path):
    settings = read_settings(brief(), PretrainSettings)
    trainers = [Trainer(Run("tiny", attention, 1), settings, manifest, tmp_path) for attention in OPERATORS]
    first, *others = [training_batch(trainer.training, trainer.masker, 5, 8) for trainer in trainers]
    for other in others:
        assert_same(first, other)


def flip_a_bit(path) -> None:
    """Change the file's content, not its size nor its time of change."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@contextmanager
def hashed(monkeypatch):
    """The names of the files whose content is read for a checksum."""
    names, verify = [], module.verify_sha256
    with monkeypatch.context() as patch:
        patch.setattr(module, "verify_sha256", lambda path, *told: names.append(path.name) or verify(path, *told))
        yield names


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data())
def test_rows_are_those_of_the_shards_across_their_borders(tmp_path_factory, sizes, data):
    folder, whole = tmp_path_factory.mktemp("shards"), np.random.default_rng(0).integers(0, 2**16, (sum(sizes), 3))
    pieces = np.split(whole.astype(np.uint16), np.cumsum(sizes)[:-1])
    for number, piece in enumerate(pieces):
        np.save(folder / f"{number}.npy", piece)
    shards = [{"file": f"{number}.npy", "split": "train", "rows": size} for number, size in enumerate(sizes)]
    (folder / "manifest.json").write_text(json.dumps({"shards": shards}))
    rows = PackedRows(folder / "manifest.json", "train")
    index = np.array(data.draw(st.lists(st.integers(0, sum(sizes) - 1), max_size=20)), np.int64)
    assert len(rows) == sum(sizes) and rows.sequence_length == 3
    assert rows[index].dtype == np.int64 and (rows[index] == whole[index]).all()


def test_a_missing_or_shorter_shard_is_named(manifest):
    shard = manifest.parent / "train-00001.npy"
    np.save(shard, np.load(shard)[:-1])
    with pytest.raises(IntegrityError, match=r"train-00001\.npy: 24 rows, the manifest says 25"):
        PackedRows(manifest, "train")
    shard.unlink()
    with pytest.raises(MissingInputError, match=r"train-00001\.npy"):
        PackedRows(manifest, "train")


def test_a_split_without_shards_is_named(manifest):
    with pytest.raises(MissingInputError, match=r"manifest\.json: names no shard of the split 'test'"):
        PackedRows(manifest, "test")


def test_one_flipped_bit_of_a_shard_is_found(manifest, tmp_path):
    flip_a_bit(manifest.parent / "train-00001.npy")
    with pytest.raises(
        IntegrityError, match=r"train-00001\.npy: sha256 expected \w{64}, found \w{64}; run pack_shards"
    ):
        verify_shards(manifest, tmp_path / "shards.json")
    assert list(read_json(tmp_path / "shards.json")) == ["train-00000.npy"]  # the others are not remembered as verified


def test_a_missing_shard_is_named_before_training(manifest, tmp_path):
    (manifest.parent / "validation-00000.npy").unlink()
    with pytest.raises(MissingInputError, match=r"validation-00000\.npy"):
        verify_shards(manifest, tmp_path / "shards.json")


def edited(manifest, **changes) -> None:
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changes}))


def test_a_manifest_that_was_edited_is_not_the_corpus_that_its_hash_names(manifest):
    """It was believed that shards with right sums are the corpus; their list, and how ids are read, were not in it."""
    told = json.loads(manifest.read_text())
    assert verify_manifest(manifest) == told["hash"]
    first, *others = told["shards"]
    for changes in (
        {"sequence_length": 8},
        {"vocabulary_size": 61},
        {"vocabulary_sha256": 64 * "0"},
        {"special_tokens": {**told["special_tokens"], "unk": 9}},
        {"rows": {"train": 49, "validation": 8}},
        {"shards": others},
        {"shards": [{**first, "split": "validation"}, *others]},
        {"shards": [{**first, "sha256": 64 * "0"}, *others]},
        {"hash": "0123456789abcdef"},
    ):
        edited(manifest, **changes)
        with pytest.raises(
            IntegrityError, match=r"manifest\.json: hash expected \w{16}, found \w{16}: edited.*; run pack_s"
        ):
            verify_manifest(manifest)
        edited(manifest, **told)
    for lacking in ("hash", "special_tokens"):
        manifest.write_text(json.dumps({key: value for key, value in told.items() if key != lacking}))
        with pytest.raises(DataError, match=rf"manifest\.json: has no '{lacking}'; run pack_shards again"):
            verify_manifest(manifest)


def test_what_was_verified_is_not_read_again_until_it_changes(manifest, tmp_path, monkeypatch):
    record = tmp_path / "shards.json"
    with hashed(monkeypatch) as names:
        verify_shards(manifest, record)
        assert names == ["train-00000.npy", "train-00001.npy", "validation-00000.npy"]
        verify_shards(manifest, record)
        assert len(names) == 3
        os.utime(manifest.parent / "train-00001.npy")
        verify_shards(manifest, record)
        assert names[3:] == ["train-00001.npy"]


def test_a_shard_of_another_manifest_is_read_again(manifest, tmp_path):
    verify_shards(manifest, tmp_path / "shards.json")
    facts = json.loads(manifest.read_text())
    facts["shards"][0]["sha256"] = 64 * "0"
    manifest.write_text(json.dumps(facts))
    with pytest.raises(IntegrityError, match=r"train-00000\.npy: sha256 expected 0{64}"):
        verify_shards(manifest, tmp_path / "shards.json")
