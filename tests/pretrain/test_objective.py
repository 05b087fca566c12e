"""What all objectives have in common: batches that are cut by sequences, and a summed loss."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from symbert.pretrain.objective import IGNORED, Batch, Loss, sequences_of


@dataclass(frozen=True)
class Pairs(Batch):
    """Numbers, two to a sequence, and a class for each."""

    numbers: Tensor
    targets: Tensor


PAIRS = Pairs(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), torch.tensor([[0, 1], [1, IGNORED], [IGNORED, 0]]))


class Signs:
    """Two classes, whose logits are a number and its negative."""

    def logits(self, model: nn.Module, numbers: Tensor) -> Tensor:
        return torch.stack([model(numbers), -model(numbers)], dim=-1)


def test_a_part_has_the_rows_of_its_sequences_of_all_tensors():
    part = PAIRS.part(1, 3)
    assert part.numbers.tolist() == [[3.0, 4.0], [5.0, 6.0]]
    assert part.targets.tolist() == [[1, IGNORED], [IGNORED, 0]]


def test_ignored_targets_are_not_counted():
    assert (PAIRS.count, PAIRS.part(1, 2).count) == (4, 1)


def test_the_loss_is_the_sum_over_the_targets_that_count():
    """−log σ(±2x) by hand, of the four targets that are not ignored."""
    loss = Loss(Signs(), nn.Identity())(**vars(PAIRS))
    signed = torch.tensor([2.0, -4.0, -6.0, 12.0], dtype=torch.float64)
    assert loss.item() == pytest.approx(torch.log1p(torch.exp(-signed)).sum().item(), rel=1e-6)
    parts = [Loss(Signs(), nn.Identity())(**vars(PAIRS.part(row, row + 1))) for row in range(3)]
    assert sum(parts).item() == pytest.approx(loss.item(), rel=1e-6)


def test_an_epoch_has_every_row_once_and_the_next_one_another_order():
    epochs, rows = sequences_of(0, 20, 10, seed=3)
    assert epochs.tolist() == [0] * 10 + [1] * 10
    assert sorted(rows[:10]) == sorted(rows[10:]) == list(range(10))
    assert rows[:10].tolist() != rows[10:].tolist()
