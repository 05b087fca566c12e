"""What a model is trained on: the batch of each step, its loss, and what validation measures.

A batch is a pure function of (seed, step). Nothing here knows the operator, so all operators of one seed see the same
batches. To add an objective, write a class in a module of its own, and name it in `symbert.hosts`.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.configuration import PretrainSettings
from symbert.draws import permute
from symbert.hosts import HOSTS, Rows
from symbert.model.configuration import Configuration, configuration_of
from symbert.paths import Run

IGNORED = -100  # the target that counts nothing, as in Hugging Face and F.cross_entropy

Order = tuple[NDArray[np.int64], NDArray[np.int64]]  # epoch and row of each sequence of a batch


class Batch:
    """Tensors of as many sequences, a row each: what `Objective.logits` takes by name, and the `targets`."""

    targets: Tensor

    @property
    def count(self) -> int:
        """How many targets there are, of a batch on the CPU."""
        return int(np.count_nonzero(self.targets.numpy() != IGNORED))

    def part(self, first: int, last: int) -> Self:
        """The sequences first … last - 1 as a batch of their own."""
        return type(self)(*(tensor[first:last] for tensor in vars(self).values()))

    def to(self, device: torch.device) -> Self:
        """The same batch on a device; a GPU copies it while the process goes on."""
        tensors = vars(self).values()
        if torch.device(device).type == "cuda":
            tensors = [tensor.pin_memory() for tensor in tensors]
        return type(self)(*(tensor.to(device, non_blocking=True) for tensor in tensors))


class Objective(ABC):
    """What the models of one run are trained on."""

    training_count: int  # sequences of an epoch
    validation_count: int  # held-out sequences
    rows: Rows  # that it reads

    def __init__(self, run: Run, settings: PretrainSettings) -> None:
        self.run, self.settings = run, settings

    @property
    def tokens(self) -> float:
        """That the layers read of a sequence, as a plan counts them."""
        return HOSTS[self.run.host].tokens(self.rows)

    @abstractmethod
    def build_model(self, attention_dropout: float) -> nn.Module:
        """The model of the run's host, its weights not yet drawn."""

    def configuration(self, attention_dropout: float) -> Configuration:
        """That of a model of the run's size and operator for the vocabulary of its rows."""
        vocabulary, dropout = self.rows.vocabulary_size, self.settings.dropout
        config = configuration_of(self.run.size, self.run.attention, vocabulary, dropout)
        config.attention_probs_dropout_prob = attention_dropout
        return config

    @abstractmethod
    def training_batch(self, step: int) -> Batch:
        """The batch of optimizer step `step` (from 0), of all processes together."""

    @abstractmethod
    def validation_batch(self, rows: NDArray[np.int64]) -> Batch:
        """These of the held-out sequences: the same for every run."""

    def validation_batches(self, batch_size: int, share: tuple[int, int] | None = None) -> Iterator[Batch]:
        """The held-out sequences in order: all, or from the first to before the last of `share`."""
        first, last = share or (0, self.validation_count)
        for start in range(first, last, batch_size):
            yield self.validation_batch(np.arange(start, min(start + batch_size, last)))

    @abstractmethod
    def logits(self, model: nn.Module, **inputs: Tensor) -> Tensor:
        """`… classes` for the targets `…` of a batch with these inputs."""

    def inputs_of_layers(self, batch: Batch) -> tuple[Tensor, ...]:
        """What the layers below the head read: `Objective.logits` has it from the batch, too."""
        return tuple(tensor for name, tensor in vars(batch).items() if name != "targets")

    @abstractmethod
    def flops(self, model: nn.Module) -> float:
        """Operations of a step, forward and backward (`symbert.hosts`)."""

    def measures(self, loss: float) -> dict[str, float]:
        """What a validation says beside its mean loss, by that alone."""
        return {}

    def tally(self, model: nn.Module, rows: NDArray[np.int64], device: torch.device) -> list[float]:
        """What is counted of held-out sequences beside their loss, to be added up over all of them for `scores`."""
        return []

    def scores(self, tally: list[float]) -> dict[str, float]:
        """What a validation says of its tally."""
        return {}

    @property
    def signatures(self) -> dict[str, str]:
        """How each of the scores is computed, where that must be cited with them."""
        return {}

    def order(self, step: int) -> Order:
        """Epoch and row of each sequence of step `step` (from 0)."""
        return sequences_of(step, self.settings.batch_size, self.training_count, self.run.pretrain_seed)

    def of_one_shape(self, batch: Batch) -> Batch:
        """The batch in the shape that all batches of as many sequences have, as compiled models need it."""
        return batch


class Loss(nn.Module):
    """Cross-entropy of a batch, summed over its targets, in nats.

    A module, because it compiles to one graph and processes share it.
    """

    def __init__(self, objective: Objective, model: nn.Module) -> None:
        super().__init__()
        self.objective, self.model = objective, model

    def forward(self, targets: Tensor, **inputs: Tensor) -> Tensor:
        logits = self.objective.logits(self.model, **inputs).float()
        return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum")


def objective_of(run: Run, settings: PretrainSettings, manifest: Path) -> Objective:
    """What the models of a run's host are trained on."""
    module, name = HOSTS[run.host].objective.split(":")
    return getattr(importlib.import_module(module), name)(run, settings, manifest)


def sequences_of(step: int, batch_size: int, rows_count: int, seed: int) -> Order:
    """Epoch and row of each sequence of step `step` (from 0): the next of an endless, reshuffled order."""
    position = np.arange(step * batch_size, (step + 1) * batch_size)
    epoch, place = position // rows_count, position % rows_count
    sequence = np.empty_like(place)
    for number in np.unique(epoch):
        within = epoch == number
        sequence[within] = permute(place[within], rows_count, seed, int(number))
    return epoch, sequence
