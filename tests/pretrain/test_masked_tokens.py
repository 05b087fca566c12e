"""Batches of masked tokens: functions of seed and step alone, however they are cut or padded."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from pretrain.corpora import SPECIAL
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import configuration_of
from symbert.model.masking import Masker
from symbert.paths import Run
from symbert.pretrain import tasks
from symbert.pretrain.tasks import IGNORED, MaskedBatch, MaskedTokens, PackedRows, sequences_of


@pytest.fixture
def objective(manifest, brief):
    """What a run is trained on, with batches of so many rows."""

    def make(batch_size: int = 8, seed: int = 1, attention: str = "pairwise") -> MaskedTokens:
        return MaskedTokens(Run("tiny", attention, seed), brief(batch_size=batch_size), manifest)

    return make


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


def test_every_epoch_reads_every_row_once_in_another_order(objective, manifest):
    rows = PackedRows(manifest, "train")
    read = np.concatenate([original_rows(objective(10).training_batch(step)) for step in range(10)])
    first, second = read[:50], read[50:]
    everything = sorted(map(tuple, rows[np.arange(50)]))
    assert sorted(map(tuple, first)) == sorted(map(tuple, second)) == everything
    assert not (first == second).all()


def test_a_batch_is_a_function_of_seed_and_step_alone(objective):
    one, again = (objective(8).training_batch(7) for _ in range(2))
    assert_same(one, again)
    other = objective(8, seed=2).training_batch(7)
    assert not torch.equal(one.input_ids, other.input_ids)


def test_the_sequences_of_a_step_are_the_rows_of_its_batch(objective, manifest):
    rows = PackedRows(manifest, "train")
    epoch, sequence = sequences_of(6, 8, len(rows), seed=1)  # positions 48 to 55 of 50 rows
    assert epoch.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert (original_rows(objective(8).training_batch(6)) == rows[sequence]).all()


def test_a_sequence_gets_the_same_mask_in_batches_of_any_size(objective):
    by_ten = together([objective(10).training_batch(step) for step in range(12)])
    by_forty = together([objective(40).training_batch(step) for step in range(3)])
    assert_same(by_ten, by_forty)


def test_validation_masks_are_fixed_and_independent_of_the_batch_size(objective, manifest):
    rows = PackedRows(manifest, "validation")
    by_three = together([objective().validation_batch(np.arange(8)[first : first + 3]) for first in (0, 3, 6)])
    by_eight = together([objective().validation_batch(np.arange(8))])
    assert_same(by_three, by_eight)
    assert (original_rows(by_eight) == rows[np.arange(8)]).all()


def test_an_unknown_word_is_neither_hidden_nor_predicted(objective, manifest):
    """As docs/deviations.md says; the authors' code masks [UNK] like a word."""
    for shard in manifest.parent.glob("*-*.npy"):
        ids = np.load(shard)
        ids[:, 2:12:2] = SPECIAL["unk"]
        np.save(shard, ids)
    trained = objective(batch_size=50)
    for batch in (trained.training_batch(0), trained.validation_batch(np.arange(8))):
        assert batch.count and SPECIAL["unk"] not in batch.targets.tolist()
        assert (batch.input_ids.numpy()[:, 2:12:2] == SPECIAL["unk"]).all()


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


def padded(batch: MaskedBatch, slots: int, monkeypatch, task: MaskedTokens) -> MaskedBatch:
    """The batch in one shape, where so many slots are enough."""
    monkeypatch.setattr(tasks, "slots_of", lambda *_: slots)
    return task.of_one_shape(batch)


@pytest.mark.parametrize(("slots", "expected"), [(64, 64), (7, 21), (20, 20), (1, 20)])
def test_a_padded_batch_has_the_slots_or_a_multiple_of_them(slots, expected, objective, monkeypatch):
    batch = MaskedBatch(torch.zeros(4, 16, dtype=torch.int64), torch.arange(20), torch.arange(20))
    wide = padded(batch, slots, monkeypatch, objective())
    assert len(wide.positions) == len(wide.targets) == expected
    assert wide.positions[20:].eq(0).all() and wide.targets[20:].eq(IGNORED).all()
    assert torch.equal(wide.positions[:20], batch.positions) and torch.equal(wide.targets[:20], batch.targets)


def test_a_batch_without_a_masked_token_is_padded_too(objective, monkeypatch):
    none = torch.zeros(0, dtype=torch.int64)
    batch = MaskedBatch(torch.zeros(1, 4, dtype=torch.int64), none, none)
    assert padded(batch, 8, monkeypatch, objective()).targets.tolist() == 8 * [IGNORED]


@pytest.mark.parametrize("slots", [64, 7])
def test_empty_slots_change_neither_loss_nor_gradients(objective, slots, monkeypatch):
    model, whole = tiny_model(), objective(8).training_batch(3)
    loss, gradients = loss_and_gradients(model, [whole])
    padded_loss, padded_gradients = loss_and_gradients(model, [padded(whole, slots, monkeypatch, objective(8))])
    torch.testing.assert_close(padded_loss, loss, rtol=1e-14, atol=0)
    for one, other in zip(gradients, padded_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_micro_batches_add_up_to_the_loss_and_gradients_of_the_batch(objective, attention, monkeypatch):
    model, whole = tiny_model(attention), objective(8).training_batch(3)
    loss, gradients = loss_and_gradients(model, [whole])
    parts = [whole.part(first, min(first + 3, 8)) for first in range(0, 8, 3)]
    parts = [padded(part, 16, monkeypatch, objective(8)) for part in parts]
    added_loss, added_gradients = loss_and_gradients(model, parts)
    torch.testing.assert_close(added_loss, loss, rtol=1e-12, atol=0)
    for one, other in zip(gradients, added_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_all_operators_of_one_seed_train_on_the_same_batches(objective):
    first, *others = [
        objective(attention=attention).training_batch(5) for attention in ("original", "pairwise", "shared")
    ]
    for other in others:
        assert_same(first, other)
