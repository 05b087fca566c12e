"""Which sequences, with which masks, at which step: pure functions of (seed, step)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symbert.draws import permute
from symbert.errors import IntegrityError, MissingInputError
from symbert.files import read_json
from symbert.model.masking import Masker

VALIDATION_SEED = 0  # the same masks for every run, so that validation losses compare


class Rows:
    """The rows of one split as memory-mapped shards; `rows[index]` gathers `batch token` ids."""

    def __init__(self, manifest: Path, split: str) -> None:
        facts = read_json(manifest)
        shards = [shard for shard in facts["shards"] if shard["split"] == split]
        self.arrays = [_open(Path(manifest).parent / shard["file"], shard["rows"]) for shard in shards]
        self.starts = np.cumsum([0] + [len(array) for array in self.arrays])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        shard = np.searchsorted(self.starts, index, side="right") - 1
        gathered = [self.arrays[s][i - self.starts[s]] for s, i in zip(shard, index, strict=True)]
        return np.stack(gathered).astype(np.int64)


def _open(path: Path, rows: int) -> NDArray[np.uint16]:
    if not path.is_file():
        raise MissingInputError(f"{path}: shard named by the manifest is missing; run pack_shards again")
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if len(array) != rows:
        raise IntegrityError(f"{path}: {len(array)} rows, the manifest says {rows}; run pack_shards again")
    return array


@dataclass(frozen=True)
class Batch:
    """Corrupted ids `batch token`, the flat positions to predict, and the true ids there."""

    input_ids: Tensor
    positions: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device."""
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in vars(self).values()))


def training_batch(rows: Rows, masker: Masker, step: int, batch_size: int) -> Batch:
    """The batch of optimizer step `step` (from 0): the next positions of an endless, reshuffled order."""
    position = np.arange(step * batch_size, (step + 1) * batch_size)
    epoch, place = position // len(rows), position % len(rows)
    sequence = np.empty_like(place)
    for number in np.unique(epoch):
        within = epoch == number
        sequence[within] = permute(place[within], len(rows), masker.seed, int(number))
    return _corrupt(rows, masker, epoch, sequence)


def validation_batches(rows: Rows, masker: Masker, batch_size: int) -> Iterator[Batch]:
    """All validation rows in order, each with its own fixed mask."""
    for start in range(0, len(rows), batch_size):
        sequence = np.arange(start, min(start + batch_size, len(rows)))
        yield _corrupt(rows, masker, np.zeros_like(sequence), sequence)


def _corrupt(rows: Rows, masker: Masker, epoch: NDArray[np.int64], sequence: NDArray[np.int64]) -> Batch:
    ids = rows[sequence]
    corrupted, chosen = masker.corrupt(ids, epoch, sequence)
    positions = np.flatnonzero(chosen)
    return Batch(torch.from_numpy(corrupted), torch.from_numpy(positions), torch.from_numpy(ids.reshape(-1)[positions]))
