"""Next tokens: what decoders are trained on, with the rows that encoders read."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symbert.configuration import PretrainSettings
from symbert.files import read_json
from symbert.hosts import Rows
from symbert.model.bert import DecoderModel
from symbert.paths import Run
from symbert.pretrain.data import REMEDY, PackedRows
from symbert.pretrain.objective import Batch, Objective

MOST_NATS = math.log(sys.float_info.max)  # whose exponential a float holds


@dataclass(frozen=True)
class TokenBatch(Batch):
    """Ids `batch token` of all tokens of rows but the last, and what follows each: all but the first."""

    ids: Tensor
    targets: Tensor


class NextTokens(Objective):
    """Each token of packed rows, to be predicted from those before it. The first of a row is given."""

    def __init__(self, run: Run, settings: PretrainSettings, manifest: Path) -> None:
        super().__init__(run, settings)
        self.training, self.validation = PackedRows(manifest, "train"), PackedRows(manifest, "validation")
        self.training_count, self.validation_count = len(self.training), len(self.validation)
        vocabulary_size = read_json(manifest, {"vocabulary_size": int}, REMEDY)["vocabulary_size"]
        self.rows = Rows(vocabulary_size, self.training.sequence_length)

    def build_model(self, attention_dropout: float) -> DecoderModel:
        """A decoder with the head of its embeddings."""
        return DecoderModel(self.configuration(attention_dropout))

    def training_batch(self, step: int) -> TokenBatch:
        """The rows of step `step` (from 0): those of an encoder with the same seed."""
        _, rows = self.order(step)
        return _batch_of(self.training, rows)

    def validation_batch(self, rows: NDArray[np.int64]) -> TokenBatch:
        """Validation rows."""
        return _batch_of(self.validation, rows)

    def logits(self, model: DecoderModel, ids: Tensor) -> Tensor:
        """`batch token vocab`: of the token after each."""
        return model.logits(ids)

    def measures(self, loss: float) -> dict[str, float]:
        """The perplexity of the validation rows, by word piece; infinite where no float holds it."""
        return {"perplexity": math.inf if loss > MOST_NATS else math.exp(loss)}

    def flops(self, model: DecoderModel) -> float:
        """Of the layers and of the head, on all tokens."""
        return model.step_flops(self.settings.batch_size, self.tokens)


def _batch_of(rows: PackedRows, sequence: NDArray[np.int64]) -> TokenBatch:
    ids = torch.from_numpy(rows[sequence])
    return TokenBatch(ids[:, :-1], ids[:, 1:])
