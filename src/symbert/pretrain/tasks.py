"""Pre-training tasks: masked tokens, next token. A task makes batches and their logits, and knows no operator.

A batch is a pure function of (seed, step), so all operators of one seed see the same batches. To add a task, write a
class and name it in `symbert.architectures`.
"""

import math
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.architectures import ARCHITECTURES, Rows
from symbert.console import Progress
from symbert.corpus.shards import Manifest
from symbert.corpus.tokens import open_array
from symbert.corpus.wordpiece import TOKEN
from symbert.draws import Masker, permute
from symbert.errors import ConfigError, IntegrityError, MissingInputError
from symbert.files import read_struct, verify_sha256
from symbert.model.bert import layer_weights
from symbert.model.configuration import configuration_of
from symbert.pretrain.compute import sent
from symbert.pretrain.run import Pretraining
from symbert.pretrain.start import begin

Ids = NDArray[np.int64]
Batch = dict[str, Tensor]  # `input_ids`, and `targets`, which are IGNORED where nothing is predicted; a row a sequence

IGNORED = -100  # the target that counts nothing, as in Hugging Face and F.cross_entropy
REMEDY = "run snakemake -R pack"
VALIDATION_SEED = 0  # the same masks for every run, so that validation losses compare
SIGMAS = 6  # above the mean: one batch in a thousand million has more masked tokens than slots
SLOT_MULTIPLE = 64
MOST_NATS = math.log(sys.float_info.max)  # whose exponential a float holds


# --- rows -------------------------------------------------------------------------------------------------------------


class PackedRows:
    """The rows of one split in memory-mapped shards; `rows[index]` gathers their ids `batch token`."""

    def __init__(self, manifest: Path, split: str) -> None:
        shards = [shard for shard in read_struct(manifest, Manifest, REMEDY).shards if shard.split == split]
        if not shards:
            raise MissingInputError(f"{manifest}: names no shard of the split '{split}'; {REMEDY}")
        self.arrays = [_open_shard(Path(manifest).parent / shard.file, shard.rows) for shard in shards]
        self.starts = np.cumsum([0] + [len(array) for array in self.arrays])
        self.sequence_length: int = self.arrays[0].shape[1]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, index: Ids) -> Ids:
        shard = np.searchsorted(self.starts, index, side="right") - 1
        within = index - self.starts[shard]
        ids = np.empty((len(index), self.sequence_length), np.int64)
        for row, number, place in zip(ids, shard.tolist(), within.tolist(), strict=True):
            row[:] = self.arrays[number][place]
        return ids


def _open_shard(path: Path, rows: int) -> NDArray[np.uint16]:
    array = open_array(path, TOKEN, dimensions=2)
    if len(array) != rows:
        raise IntegrityError(f"{path}: {len(array)} rows, the manifest says {rows}; {REMEDY}")
    return np.asarray(array)  # a plain view of the mapping: np.memmap takes five times as long to give a row


def verify_manifest(manifest: Path) -> str:
    """The corpus's hash; IntegrityError when the manifest was changed since the corpus was packed."""
    content = read_struct(manifest, Manifest, REMEDY)
    if content.hash != (found := content.learned_hash()):
        raise IntegrityError(f"{manifest}: hash expected {content.hash}, found {found}: edited; {REMEDY}")
    return content.hash


def verify_shards(manifest: Path) -> None:
    """Compare each shard with the manifest's sha256; IntegrityError or MissingInputError name the first that differs.

    Every session does so: a bit that flips on a disk changes neither size nor time of the file.
    """
    shards = read_struct(manifest, Manifest, REMEDY).shards
    progress = Progress("verify shards", len(shards), "shards")
    for number, shard in enumerate(shards, start=1):
        verify_sha256(Path(manifest).parent / shard.file, shard.sha256, REMEDY)
        progress.update(number)


# --- batches and tasks ------------------------------------------------------------------------------------------------


def count_targets(batch: Batch) -> int:
    """How many targets a batch on the CPU has."""
    return int(np.count_nonzero(batch["targets"].numpy() != IGNORED))


def move(batch: Batch, device: torch.device) -> Batch:
    """The same batch on a device; a GPU copies it while the process goes on."""
    return {name: sent(tensor, device) for name, tensor in batch.items()}


class Task(ABC):
    """The task that the model of a run learns, from the packed rows of a manifest."""

    def __init__(self, run: Pretraining) -> None:
        self.run, self.settings, manifest = run, run.training, run.manifest
        self.training, self.validation = PackedRows(manifest, "train"), PackedRows(manifest, "validation")
        self.corpus = read_struct(manifest, Manifest, REMEDY)
        self.rows = Rows(self.corpus.vocabulary_size, self.training.sequence_length, self.settings.mask_probability)

    @property
    def tokens(self) -> int:
        """Tokens of a sequence that the layers read, as a plan counts them."""
        return ARCHITECTURES[self.run.architecture].tokens(self.rows)

    def starting_model(self) -> nn.Module:
        """The model of the run's architecture, size and operator for the vocabulary of the rows, as its seed draws it
        or its checkpoint has it."""
        run, vocabulary_size = self.run, self.rows.vocabulary_size
        config = configuration_of(run.shape, run.operator, vocabulary_size, self.settings.dropout)
        config.pad_token_id = self.corpus.special_tokens["pad"]
        model = ARCHITECTURES[run.architecture].model_class(config)
        begin(model, run)
        return model

    def order(self, step: int, steps: int = 1) -> tuple[Ids, Ids]:
        """Epoch and row of each sequence of `steps` steps from `step` (from 0) on: the next of an endless, reshuffled
        order."""
        position = np.arange(step * self.settings.batch_size, (step + steps) * self.settings.batch_size)
        epoch, place = position // len(self.training), position % len(self.training)
        sequence = np.empty_like(place)
        for number in np.unique(epoch):
            within = epoch == number
            sequence[within] = permute(place[within], len(self.training), self.run.pretrain_seed, int(number))
        return epoch, sequence

    def training_batch(self, step: int) -> Batch:
        """The batch of optimizer step `step` (from 0), of all processes together."""
        return self._batch_of(self.training, self.run.pretrain_seed, *self.order(step))

    def training_batches(self, first: int, steps: int) -> list[Batch]:
        """The batches of so many steps from `first` (from 0) on, made at once: of few rows one takes as long as ten."""
        whole = self._batch_of(self.training, self.run.pretrain_seed, *self.order(first, steps))
        parts = zip(*(tensor.chunk(steps) for tensor in whole.values()), strict=True)
        return [dict(zip(whole, part, strict=True)) for part in parts]

    def validation_batch(self, rows: Ids) -> Batch:
        """Some held-out sequences: the same for every run."""
        return self._batch_of(self.validation, VALIDATION_SEED, np.zeros_like(rows), rows)

    @abstractmethod
    def _batch_of(self, split: PackedRows, seed: int, epoch: Ids, rows: Ids) -> Batch:
        """The batch of these rows of a split, a function of the arguments."""

    def inputs(self, batch: Batch, has_one_shape: bool) -> Batch:
        """What `Loss` takes of a batch: the arguments of `logits`, and `targets`. With `has_one_shape`, which compiled
        models need, the shapes are those of every batch of as many sequences."""
        return batch

    def inputs_together(self, batches: list[Batch]) -> Batch:
        """The same of the batches of several runs, `run …`."""
        return {name: torch.stack([batch[name] for batch in batches]) for name in batches[0]}

    @abstractmethod
    def logits(self, model: nn.Module, **inputs: Tensor) -> Tensor:
        """`… classes` for the targets `…`."""

    def flops(self, model: nn.Module) -> float:
        """Operations of a step, forward and backward (`symbert.architectures` has the formulas), without padding."""
        counted = ARCHITECTURES[self.run.architecture].step_flops
        return counted(model.config, layer_weights(model), self.rows, self.settings.batch_size)

    def measures(self, loss: float) -> dict[str, float]:
        """Validation measures beside the loss, from its mean."""
        return {}


class Loss(nn.Module):
    """Cross-entropy of a batch, summed over its targets, in nats: a module, to be compiled and shared by processes."""

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.task, self.model = task, model

    def forward(self, targets: Tensor, **inputs: Tensor) -> Tensor:
        logits = self.task.logits(self.model, **inputs).float()
        return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum")


# --- masked tokens ----------------------------------------------------------------------------------------------------


class MaskedTokens(Task):
    """A share of the tokens of packed rows, hidden and to be predicted (`symbert.draws`): corrupted ids
    `batch token`, and the true ids of the chosen tokens as targets."""

    def __init__(self, run: Pretraining) -> None:
        super().__init__(run)
        rows = np.arange(len(self.validation))
        if not any(count_targets(self.validation_batch(some)) for some in np.array_split(rows, len(rows) // 64 + 1)):
            raise ConfigError(
                f"{run.manifest}: 'pretrain.mask_probability' {self.settings.mask_probability} hides no token of "
                f"{len(rows)} validation rows of {self.rows.tokens} tokens, so no loss can be measured; raise it, or "
                "'corpus.pack.validation_sequences'"
            )

    def _batch_of(self, split: PackedRows, seed: int, epoch: Ids, rows: Ids) -> Batch:
        ids, special = split[rows], self.corpus.special_tokens
        probability, pieces = self.settings.mask_probability, self.corpus.vocabulary_size
        masker = Masker(seed, probability, pieces, special["mask"], tuple(special.values()))
        corrupted, positions = masker.corrupt(ids, epoch, rows)
        targets = np.full_like(ids, IGNORED)
        np.put(targets, positions, ids.take(positions))
        return {"input_ids": torch.from_numpy(corrupted), "targets": torch.from_numpy(targets)}

    def inputs(self, batch: Batch, has_one_shape: bool) -> Batch:
        """The ids, the flat positions of the targets in rising order, and the targets there.

        A batch of one shape has more slots than it practically ever has targets, or the next multiple of them. An empty
        slot predicts IGNORED at position 0: it costs time, and counts nothing in loss or gradient.
        """
        ids, targets = batch["input_ids"], batch["targets"].flatten()
        positions = (targets != IGNORED).nonzero().flatten()
        targets = targets[positions]
        if has_one_shape:
            slots = slots_of(*ids.shape, self.settings.mask_probability)
            empty = (0, slots * max(1, math.ceil(len(positions) / slots)) - len(positions))
            positions, targets = F.pad(positions, empty), F.pad(targets, empty, value=IGNORED)
        return {"input_ids": ids, "positions": positions, "targets": targets}

    def inputs_together(self, batches: list[Batch]) -> Batch:
        """A run has as many slots as that with the most targets; those that stay empty count nothing."""
        whole = super().inputs_together(batches)
        targets = whole["targets"].flatten(1)
        run, place = (targets != IGNORED).nonzero(as_tuple=True)
        counts = run.bincount(minlength=len(targets))
        slot = torch.arange(len(run)) - (counts.cumsum(0) - counts)[run]
        positions = targets.new_zeros(len(targets), max(int(counts.max()), 1))
        chosen = torch.full_like(positions, IGNORED)
        positions[run, slot], chosen[run, slot] = place, targets[run, place]
        return {"input_ids": whole["input_ids"], "positions": positions, "targets": chosen}

    def logits(self, model: nn.Module, input_ids: Tensor, positions: Tensor) -> Tensor:
        """`masked vocab`, at the masked positions only."""
        return model.masked_logits(input_ids, positions)


def slots_of(sequences: int, tokens: int, probability: float) -> int:
    """A number of masked tokens that a batch practically never exceeds, so that every batch can have one shape."""
    mean = sequences * tokens * probability
    most = mean + SIGMAS * math.sqrt(mean * (1 - probability))
    return min(math.ceil(most / SLOT_MULTIPLE) * SLOT_MULTIPLE, sequences * tokens)


# --- next token -------------------------------------------------------------------------------------------------------


class NextToken(Task):
    """Each token of packed rows, to be predicted from those before it. The first of a row is given."""

    def _batch_of(self, split: PackedRows, seed: int, epoch: Ids, rows: Ids) -> Batch:
        ids = torch.from_numpy(split[rows])
        return {"input_ids": ids[:, :-1], "targets": ids[:, 1:]}

    def logits(self, model: nn.Module, input_ids: Tensor) -> Tensor:
        """`batch token vocab`: of the token after each."""
        return model(input_ids)

    def measures(self, loss: float) -> dict[str, float]:
        """The perplexity of the validation rows, by word piece; infinite where no float holds it."""
        return {"perplexity": math.inf if loss > MOST_NATS else math.exp(loss)}
