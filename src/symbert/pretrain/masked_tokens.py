"""Masked tokens (BERT, §3.1): what encoders are trained on. The masks of a row follow from (seed, epoch, row)."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from symbert.configuration import PretrainSettings
from symbert.files import read_json
from symbert.hosts import Rows
from symbert.model.bert import MaskedModel
from symbert.model.masking import Masker
from symbert.paths import Run
from symbert.pretrain.data import REMEDY, PackedRows
from symbert.pretrain.objective import IGNORED, Batch, Objective
from symbert.pretrain.pace import model_flops

VALIDATION_SEED = 0  # the same masks for every run, so that validation losses compare
SIGMAS = 6  # above the mean: one batch in a thousand million has more masked tokens than slots
SLOT_MULTIPLE = 64


@dataclass(frozen=True)
class MaskedBatch(Batch):
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


class MaskedTokens(Objective):
    """A share of the tokens of packed rows, hidden and to be predicted (`symbert.model.masking`)."""

    def __init__(self, run: Run, settings: PretrainSettings, manifest: Path) -> None:
        super().__init__(run, settings)
        self.training, self.validation = PackedRows(manifest, "train"), PackedRows(manifest, "validation")
        self.training_count, self.validation_count = len(self.training), len(self.validation)
        corpus = read_json(manifest, {"vocabulary_size": int, "special_tokens": {"mask": int, str: int}}, REMEDY)
        self.rows = Rows(corpus["vocabulary_size"], self.training.sequence_length, settings.mask_probability)
        special = corpus["special_tokens"]
        masker = partial(
            Masker,
            probability=settings.mask_probability,
            vocabulary_size=corpus["vocabulary_size"],
            mask_id=special["mask"],
            special_ids=tuple(special.values()),
        )
        self.masker, self.validation_masker = masker(seed=run.pretrain_seed), masker(seed=VALIDATION_SEED)

    def build_model(self, attention_dropout: float) -> MaskedModel:
        """BERT with its masked-token head."""
        return MaskedModel(self.configuration(attention_dropout))

    def training_batch(self, step: int) -> MaskedBatch:
        """The rows of step `step` (from 0), each with the mask of its epoch."""
        return masked_batch(self.training, self.masker, *self.order(step))

    def validation_batch(self, rows: NDArray[np.int64]) -> MaskedBatch:
        """Validation rows, each with its own fixed mask."""
        return masked_batch(self.validation, self.validation_masker, np.zeros_like(rows), rows)

    def logits(self, model: MaskedModel, input_ids: Tensor, positions: Tensor) -> Tensor:
        """`masked vocab`, at the masked positions only."""
        return model.masked_logits(input_ids, positions)

    def inputs_of_layers(self, batch: MaskedBatch) -> tuple[Tensor]:
        """The ids: the head alone reads positions."""
        return (batch.input_ids,)

    def of_one_shape(self, batch: MaskedBatch) -> MaskedBatch:
        """The batch padded to as many masked positions as practically no batch exceeds."""
        return batch.padded(slots_of(*batch.input_ids.shape, self.settings.mask_probability))

    def flops(self, model: MaskedModel) -> float:
        """Of the layers on all tokens, and of the head on the masked ones."""
        sequences = self.settings.batch_size
        return model_flops(model, sequences, self.tokens, self.settings.mask_probability * sequences * self.tokens)


def masked_batch(
    rows: PackedRows, masker: Masker, epoch: NDArray[np.int64], sequence: NDArray[np.int64]
) -> MaskedBatch:
    """The rows `sequence` of a split, as masked in these epochs."""
    ids = rows[sequence]
    corrupted, positions = masker.corrupt(ids, epoch, sequence)
    return MaskedBatch(torch.from_numpy(corrupted), torch.from_numpy(positions), torch.from_numpy(ids.take(positions)))


def slots_of(sequences: int, tokens: int, probability: float) -> int:
    """A number of masked tokens that a batch practically never exceeds, so that every batch can have one shape."""
    mean = sequences * tokens * probability
    most = mean + SIGMAS * math.sqrt(mean * (1 - probability))
    return math.ceil(most / SLOT_MULTIPLE) * SLOT_MULTIPLE
