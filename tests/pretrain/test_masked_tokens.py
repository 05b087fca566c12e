"""Batches of masked tokens: functions of seed and step alone, however they are cut or padded."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pretrain.corpora import SPECIAL
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import configuration_of
from symbert.paths import Run
from symbert.pretrain import tasks
from symbert.pretrain.tasks import IGNORED, MaskedBatch, MaskedTokens, PackedRows


@pytest.fixture
def objective(manifest, brief):
    """What a run is trained on, with batches of so many rows."""

    def make(batch_size: int = 8, seed: int = 1, attention: str = "pairwise") -> MaskedTokens:
        return MaskedTokens(Run("tiny", attention, seed), brief(batch_size=batch_size), manifest)

    return make


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


def test_every_epoch_reads_every_row_once_in_another_order_in_batches_across_its_end(objective, manifest):
    rows = PackedRows(manifest, "train")
    batches = [original_rows(objective(8).training_batch(step)) for step in range(13)]
    read = np.concatenate(batches)
    first, second = read[:50], read[50:100]
    everything = sorted(map(tuple, rows[np.arange(50)]))
    assert sorted(map(tuple, first)) == sorted(map(tuple, second)) == everything
    assert not (first == second).all()
    epoch, sequence = objective(8).order(6)  # positions 48 to 55 of 50 rows
    assert epoch.tolist() == [0, 0, 1, 1, 1, 1, 1, 1] and (batches[6] == rows[sequence]).all()


def test_a_batch_is_a_function_of_seed_and_step_alone_whatever_the_operator(objective):
    first = objective(8).training_batch(7)
    for attention in ("pairwise", "original", "shared"):
        assert_same(objective(8, attention=attention).training_batch(7), first)
    for other in (objective(8, seed=2).training_batch(7), objective(8).training_batch(8)):
        assert not torch.equal(first.input_ids, other.input_ids)


def test_masks_do_not_depend_on_the_batch_size_and_those_of_validation_are_fixed(objective, manifest):
    by_ten = together([objective(10).training_batch(step) for step in range(12)])
    assert_same(by_ten, together([objective(40).training_batch(step) for step in range(3)]))
    by_three = together([objective().validation_batch(np.arange(8)[first : first + 3]) for first in (0, 3, 6)])
    by_eight = together([objective().validation_batch(np.arange(8))])
    assert_same(by_three, by_eight)
    assert (original_rows(by_eight) == PackedRows(manifest, "validation")[np.arange(8)]).all()


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


def padded(batch: MaskedBatch, slots: int, monkeypatch, task: MaskedTokens) -> MaskedBatch:
    """The batch in one shape, where so many slots are enough."""
    monkeypatch.setattr(tasks, "slots_of", lambda *_: slots)
    return task.of_one_shape(batch)


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_padded_micro_batches_add_up_to_the_loss_and_gradients_of_the_batch(objective, attention, monkeypatch):
    model = MaskedModel(configuration_of("tiny", attention, 60, dropout=0.0))
    initialize(model, 1)
    model.double()
    whole = objective(8).training_batch(3)
    loss, gradients = loss_and_gradients(model, [whole])
    for size, slots in ((8, 64), (8, 7), (3, 16)):
        parts = [whole.part(first, min(first + size, 8)) for first in range(0, 8, size)]
        parts = [padded(part, slots, monkeypatch, objective(8)) for part in parts]
        added_loss, added_gradients = loss_and_gradients(model, parts)
        torch.testing.assert_close(added_loss, loss, rtol=1e-12, atol=0)
        for one, other in zip(gradients, added_gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
