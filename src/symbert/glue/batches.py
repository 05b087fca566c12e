"""The rows of a task, resident as tensors, and the batches of an epoch.

Shapes: `row token` for all rows of a split, `batch token` for a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from torch import Tensor

from symbert.draws import permute
from symbert.glue.tasks import Task


@dataclass(frozen=True)
class Batch:
    """Inputs padded to the longest row of the batch (0 is [PAD]), `attention_mask` None where nothing is padded."""

    input_ids: Tensor
    token_type_ids: Tensor
    attention_mask: Tensor | None
    labels: Tensor


@dataclass(frozen=True)
class Rows:
    """One split: ids and types `row token` padded with 0, lengths in tokens, labels (classes, or grades)."""

    input_ids: Tensor
    token_type_ids: Tensor
    lengths: np.ndarray
    labels: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, index: np.ndarray) -> Batch:
        """The rows of `index`, in that order."""
        lengths = self.lengths[index]
        longest = int(lengths.max())
        rows = torch.from_numpy(index).to(self.labels.device)
        mask = None
        if lengths.min() < longest:
            mask = torch.from_numpy(np.arange(longest) < lengths[:, None]).to(rows.device)
        ids, types = self.input_ids[rows, :longest].long(), self.token_type_ids[rows, :longest].long()
        return Batch(ids, types, mask, self.labels[rows])


def read_rows(data: Path, task: Task, device: torch.device) -> dict[str, Rows]:
    """The splits of a prepared task on a device."""
    table = pq.read_table(data)
    return {split: _rows(table.filter(pc.field("split") == split), task, device) for split in task.splits}


def _rows(table: pa.Table, task: Task, device: torch.device) -> Rows:
    ids, lengths = _padded(table["input_ids"].combine_chunks(), np.int32)
    types, _ = _padded(table["token_type_ids"].combine_chunks(), np.int8)
    labels = table["label"].to_numpy().astype(np.int64 if task.labels else np.float32)
    tensors = [torch.from_numpy(array).to(device) for array in (ids, types, labels)]
    return Rows(tensors[0], tensors[1], lengths, tensors[2])


def _padded(lists: pa.ListArray, kind: type) -> tuple[np.ndarray, np.ndarray]:
    lengths = lists.value_lengths().to_numpy()
    padded = np.zeros((len(lists), lengths.max()), dtype=kind)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = lists.flatten().to_numpy()
    return padded, lengths


def shuffled_batches(rows: Rows, batch_size: int, seed: int, epoch: int) -> Iterator[Batch]:
    """All rows once, in an order that only (seed, epoch) decides; the last batch may be smaller."""
    order = permute(np.arange(len(rows)), len(rows), seed, epoch)
    for start in range(0, len(rows), batch_size):
        yield rows.batch(order[start : start + batch_size])


def sorted_batches(rows: Rows, batch_size: int) -> Iterator[tuple[np.ndarray, Batch]]:
    """All rows once, short ones first, with the index of each: the least padding, for evaluation."""
    order = np.argsort(rows.lengths, kind="stable")
    for start in range(0, len(rows), batch_size):
        index = order[start : start + batch_size]
        yield index, rows.batch(index)
