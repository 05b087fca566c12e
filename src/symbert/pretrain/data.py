"""The packed corpus: its rows in memory-mapped shards, verified once, and which of them make the batch of a step.

A batch is a pure function of (seed, step). Nothing here knows the operator, so all operators of one seed see the
same batches and masks.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from symbert.corpus.shards import LEARNED_FROM, hash_of_corpus
from symbert.draws import permute
from symbert.errors import IntegrityError, MissingInputError
from symbert.files import read_json, verify_sha256, write_json
from symbert.model.masking import Masker
from symbert.progress import Progress

REMEDY = "run pack_shards again"
IGNORED = -100  # the target of an empty slot, as in Hugging Face and F.cross_entropy
SIGMAS = 6  # above the mean: one batch in a thousand million has more masked tokens than slots
SLOT_MULTIPLE = 64


class PackedRows:
    """The rows of one split; `rows[index]` gathers their ids `batch token`."""

    def __init__(self, manifest: Path, split: str) -> None:
        shards = [shard for shard in _read_shards(manifest, split=str, rows=int) if shard["split"] == split]
        if not shards:
            raise MissingInputError(f"{manifest}: names no shard of the split '{split}'; {REMEDY}")
        self.arrays = [_open_shard(Path(manifest).parent / shard["file"], shard["rows"]) for shard in shards]
        self.starts = np.cumsum([0] + [len(array) for array in self.arrays])
        self.sequence_length: int = self.arrays[0].shape[1]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        shard = np.searchsorted(self.starts, index, side="right") - 1
        within = index - self.starts[shard]
        ids = np.empty((len(index), self.sequence_length), np.int64)
        for row, number, place in zip(ids, shard.tolist(), within.tolist(), strict=True):
            row[:] = self.arrays[number][place]
        return ids


def _read_shards(manifest: Path, **fields: type) -> list[dict[str, Any]]:
    """The shards that a manifest lists, each with its file and these fields."""
    return read_json(manifest, {"shards": [{"file": str, **fields}]}, REMEDY)["shards"]


def _open_shard(path: Path, rows: int) -> NDArray[np.uint16]:
    if not path.is_file():
        raise MissingInputError(f"{path}: shard named by the manifest is missing; {REMEDY}")
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise IntegrityError(f"{path}: not an array ({error}); {REMEDY}") from None
    if len(array) != rows:
        raise IntegrityError(f"{path}: {len(array)} rows, the manifest says {rows}; {REMEDY}")
    return np.asarray(array)  # a plain view of the mapping: np.memmap takes five times as long to give a row


def verify_manifest(manifest: Path) -> str:
    """The corpus's hash; IntegrityError when the manifest was changed since the corpus was packed."""
    content = read_json(manifest, {"hash": str, **dict.fromkeys(LEARNED_FROM)}, REMEDY)
    written, computed = content["hash"], hash_of_corpus(content)
    if written != computed:
        raise IntegrityError(
            f"{manifest}: hash expected {written}, found {computed}: edited, or of another version; {REMEDY}"
        )
    return written


def verify_shards(manifest: Path, record: Path) -> None:
    """Compare each shard with the manifest's sha256; IntegrityError or MissingInputError name the first that differs.

    `record` remembers size and time of change of the verified shards, so that a resumed run reads nothing twice.
    """
    shards = _read_shards(manifest, sha256=str)
    known = read_json(record, {}) if Path(record).is_file() else {}
    progress = Progress("verify shards", len(shards), "shards")
    verified = {}
    for number, shard in enumerate(shards, start=1):
        path, expected = Path(manifest).parent / shard["file"], shard["sha256"]
        if not path.is_file():
            raise MissingInputError(f"{path}: shard named by the manifest is missing; {REMEDY}")
        status = path.stat()
        seen = {"sha256": expected, "bytes": status.st_size, "changed_ns": status.st_mtime_ns}
        verified[shard["file"]] = seen
        if known.get(shard["file"]) == seen:
            continue
        verify_sha256(path, expected, REMEDY)
        write_json(record, {**known, **verified})
        progress.update(number)


@dataclass(frozen=True)
class MaskedBatch:
    """Corrupted ids `batch token`, the flat positions to predict in rising order, and the true ids there."""

    input_ids: Tensor
    positions: Tensor
    targets: Tensor

    def part(self, first: int, last: int) -> "MaskedBatch":
        """The sequences first … last - 1 as a batch of their own (before `padded`: positions must be in order)."""
        tokens = self.input_ids.shape[1]
        borders = torch.tensor([first, last], device=self.positions.device) * tokens
        begin, end = torch.searchsorted(self.positions, borders).tolist()
        positions = self.positions[begin:end] - first * tokens
        return MaskedBatch(self.input_ids[first:last], positions, self.targets[begin:end])

    def padded(self, slots: int) -> "MaskedBatch":
        """The batch with `slots` positions, or the next multiple of them if it has more.

        An empty slot predicts IGNORED at position 0: it costs time, and counts nothing in loss or gradient.
        """
        count = len(self.positions)
        empty = (0, slots * max(1, math.ceil(count / slots)) - count)
        return MaskedBatch(self.input_ids, F.pad(self.positions, empty), F.pad(self.targets, empty, value=IGNORED))

    def to(self, device: torch.device) -> "MaskedBatch":
        """The same batch on a device; a GPU copies it while the process goes on."""
        tensors = vars(self).values()
        if torch.device(device).type == "cuda":
            tensors = [tensor.pin_memory() for tensor in tensors]
        return MaskedBatch(*(tensor.to(device, non_blocking=True) for tensor in tensors))


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


def training_batch(rows: PackedRows, masker: Masker, step: int, batch_size: int) -> MaskedBatch:
    """The batch of optimizer step `step` (from 0)."""
    return _corrupt(rows, masker, *sequences_of(step, batch_size, len(rows), masker.seed))


def validation_batches(
    rows: PackedRows, masker: Masker, batch_size: int, share: tuple[int, int] | None = None
) -> Iterator[MaskedBatch]:
    """Validation rows in order, each with its own fixed mask: all, or from the first to before the last of `share`."""
    first, last = share or (0, len(rows))
    for start in range(first, last, batch_size):
        sequence = np.arange(start, min(start + batch_size, last))
        yield _corrupt(rows, masker, np.zeros_like(sequence), sequence)


def _corrupt(rows: PackedRows, masker: Masker, epoch: NDArray[np.int64], sequence: NDArray[np.int64]) -> MaskedBatch:
    ids = rows[sequence]
    corrupted, positions = masker.corrupt(ids, epoch, sequence)
    return MaskedBatch(torch.from_numpy(corrupted), torch.from_numpy(positions), torch.from_numpy(ids.take(positions)))
