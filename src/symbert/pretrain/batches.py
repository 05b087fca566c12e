"""Which sequences, with which masks, at which step: pure functions of (seed, step).

Nothing here knows the operator, so all operators of one seed see the same batches and masks.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from symbert.draws import permute
from symbert.model.masking import Masker
from symbert.pretrain.rows import Rows

VALIDATION_SEED = 0  # the same masks for every run, so that validation losses compare
IGNORED = -100  # the target of an empty slot, as in Hugging Face and F.cross_entropy
SIGMAS = 6  # above the mean: one batch in a thousand million has more masked tokens than slots
SLOT_MULTIPLE = 64


@dataclass(frozen=True)
class Batch:
    """Corrupted ids `batch token`, the flat positions to predict in rising order, and the true ids there."""

    input_ids: Tensor
    positions: Tensor
    targets: Tensor

    def part(self, first: int, last: int) -> "Batch":
        """The sequences first … last - 1 as a batch of their own (before `padded`: positions must be in order)."""
        tokens = self.input_ids.shape[1]
        borders = torch.tensor([first, last], device=self.positions.device) * tokens
        begin, end = torch.searchsorted(self.positions, borders).tolist()
        return Batch(self.input_ids[first:last], self.positions[begin:end] - first * tokens, self.targets[begin:end])

    def padded(self, slots: int) -> "Batch":
        """The batch with `slots` positions, or the next multiple of them if it has more.

        An empty slot predicts IGNORED at position 0: it costs time, and counts nothing in loss or gradient.
        """
        count = len(self.positions)
        empty = (0, slots * max(1, math.ceil(count / slots)) - count)
        return Batch(self.input_ids, F.pad(self.positions, empty), F.pad(self.targets, empty, value=IGNORED))

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device; a GPU copies it while the process goes on."""
        tensors = vars(self).values()
        if torch.device(device).type == "cuda":
            tensors = [tensor.pin_memory() for tensor in tensors]
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in tensors))


def slots_of(sequences: int, tokens: int, probability: float) -> int:
    """A number of masked tokens that a batch practically never exceeds, so that every batch can have one shape."""
    mean = sequences * tokens * probability
    most = mean + SIGMAS * math.sqrt(mean * (1 - probability))
    return math.ceil(most / SLOT_MULTIPLE) * SLOT_MULTIPLE


def sequences_of(step: int, batch_size: int, rows_count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Epoch and row of each sequence of step `step` (from 0): the next of an endless, reshuffled order."""
    position = np.arange(step * batch_size, (step + 1) * batch_size)
    epoch, place = position // rows_count, position % rows_count
    sequence = np.empty_like(place)
    for number in np.unique(epoch):
        within = epoch == number
        sequence[within] = permute(place[within], rows_count, seed, int(number))
    return epoch, sequence


def training_batch(rows: Rows, masker: Masker, step: int, batch_size: int) -> Batch:
    """The batch of optimizer step `step` (from 0)."""
    return _corrupt(rows, masker, *sequences_of(step, batch_size, len(rows), masker.seed))


def validation_batches(
    rows: Rows, masker: Masker, batch_size: int, share: tuple[int, int] | None = None
) -> Iterator[Batch]:
    """Validation rows in order, each with its own fixed mask: all, or from the first to before the last of `share`."""
    first, last = share or (0, len(rows))
    for start in range(first, last, batch_size):
        sequence = np.arange(start, min(start + batch_size, last))
        yield _corrupt(rows, masker, np.zeros_like(sequence), sequence)


def _corrupt(rows: Rows, masker: Masker, epoch: NDArray[np.int64], sequence: NDArray[np.int64]) -> Batch:
    ids = rows[sequence]
    corrupted, positions = masker.corrupt(ids, epoch, sequence)
    return Batch(torch.from_numpy(corrupted), torch.from_numpy(positions), torch.from_numpy(ids.take(positions)))
