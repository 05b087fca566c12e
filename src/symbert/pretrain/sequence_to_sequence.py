"""A sequence to be written of another: what encoder-decoders are trained on, with the pairs of `pairs`."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symbert.hosts import PAIR_TOKENS, PAIR_VOCABULARY
from symbert.layout import Run
from symbert.model.encoder_decoder import EncoderDecoderModel
from symbert.pretrain.objective import IGNORED, Batch, Objective, Order
from symbert.pretrain.pairs import END, PADDING, START, split_pairs
from symbert.settings import PretrainSettings


@dataclass(frozen=True)
class PairBatch(Batch):
    """Ids `batch token` of sources, which of them are no padding, those that the decoder reads, and what follows each.

    Of padding the target is IGNORED.
    """

    source: Tensor
    source_mask: Tensor
    target: Tensor
    targets: Tensor

    @classmethod
    def of(cls, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> "PairBatch":
        """The batch of sources and targets `batch token`, each padded at its end."""
        source, target = map(torch.from_numpy, (sources, targets))
        following = target[:, 1:]
        return cls(source, source != PADDING, target[:, :-1], following.where(following != PADDING, IGNORED))


class SequenceToSequence(Objective):
    """Reversing, deleting and substituting letters. Pairs are drawn anew for every step: no epoch comes again."""

    def __init__(self, run: Run, settings: PretrainSettings, manifest: Path | None = None) -> None:
        super().__init__(run, settings, manifest)
        self.training, self.validation = split_pairs(run.pretrain_seed)
        self.validation_count = len(self.validation[0])

    def build_model(self, attention_dropout: float) -> EncoderDecoderModel:
        """An encoder and a decoder of one size."""
        config = self.configuration(attention_dropout, vocabulary_size=PAIR_VOCABULARY)
        config.bos_token_id, config.eos_token_id = START, END
        return EncoderDecoderModel(config)

    def order(self, step: int) -> Order:
        """The numbers of the pairs of step `step`, all of one epoch."""
        numbers = np.arange(step * self.settings.batch_size, (step + 1) * self.settings.batch_size)
        return np.zeros_like(numbers), numbers

    def training_batch(self, step: int) -> PairBatch:
        """The pairs of step `step` (from 0), by the run's seed."""
        _, numbers = self.order(step)
        return PairBatch.of(*self.training(numbers))

    def validation_batch(self, rows: NDArray[np.int64]) -> PairBatch:
        """Held-out pairs."""
        return PairBatch.of(*(side[rows] for side in self.validation))

    def logits(self, model: EncoderDecoderModel, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """`batch token vocab`: of what follows each token of the target."""
        return model.logits(source, source_mask, target)

    def right(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Sequences of which every token is the most probable one: those that greedy decoding writes whole."""
        return ((logits.argmax(-1) == targets) | (targets == IGNORED)).all(-1).sum()

    def measures(self, loss: float, right: float) -> dict[str, float]:
        """The share of held-out targets that are written without a mistake."""
        return {"exact_match": right}

    def flops(self, model: EncoderDecoderModel) -> float:
        """Of both sides, padding among them."""
        return model.step_flops(self.settings.batch_size, PAIR_TOKENS, PAIR_TOKENS)
