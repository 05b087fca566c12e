"""One run's model, optimizer and data, and how they compute an optimizer step: exact, on any number of devices."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from symbert.configuration import PretrainSettings
from symbert.draws import mix
from symbert.errors import ConfigError, DivergedError, MemoryExhaustedError
from symbert.files import write_json
from symbert.hosts import refuse_sharding
from symbert.model.anatomy import describe_attention
from symbert.model.bert import initialize
from symbert.paths import Run
from symbert.pretrain.compute import (
    RECIPES,
    Updater,
    attention_dropout,
    attention_kernels,
    autocast,
    build_optimizer,
    linear_rate,
    resolve_precision,
)
from symbert.pretrain.objective import Batch, Loss, objective_of
from symbert.pretrain.sharding import shard
from symbert.pretrain.storage import DIVERGED
from symbert.pretrain.world import World, alone

DESCRIBED = 8  # validation sequences from which the attention of the start is described
LEAST_SCALE = 1.0  # of the loss in fp16: no gradient that is finite needs a smaller one
OUT_OF_MEMORY = ("out of memory", "can't allocate memory")  # in the words of CUDA's and of the CPU's allocator


@dataclass(frozen=True)
class StepResult:
    """An optimizer step: mean loss in nats per target, and the gradient's norm before it is clipped."""

    loss: float
    gradient_norm: float
    learning_rate: float


class Trainer:
    """Computes the steps of one run, as one of the processes that train it.

    `micro_batch_size` sequences are computed at a time; neither it nor the number of processes changes the batch. With
    `shard_parameters` each of several processes keeps a part of weights, gradients and the optimizer's state
    (`symbert.pretrain.sharding`); then all processes call every method but `describe_start`.
    """

    def __init__(
        self,
        run: Run,
        settings: PretrainSettings,
        manifest: Path,
        state: Path,
        world: World | None = None,
        micro_batch_size: int | None = None,
        shard_parameters: bool = False,
    ) -> None:
        self.run, self.settings, self.state, self.world = run, settings, state, world or alone()
        self.device, self.recipe = self.world.device, RECIPES[settings.recipe]
        self.precision = resolve_precision(settings.precision, self.device)
        if settings.batch_size < self.world.size:
            raise ConfigError(
                f"config: 'pretrain.batch_size' is {settings.batch_size}, fewer than the {self.world.size} "
                "processes; start fewer with --nproc-per-node"
            )
        self.is_sharded = shard_parameters and self.world.size > 1
        if self.is_sharded:
            refuse_sharding(settings.recipe, run.host, self.world.size, settings.batch_size)
        self.first, self.last = self.world.share(settings.batch_size)  # this process's sequences of a batch
        self.micro_batch_size = min(micro_batch_size or settings.batch_size, self.last - self.first)
        self.objective = objective_of(run, settings, manifest)
        self.model = self._starting_model()
        self.loss = self._build_loss()
        self.optimizer = build_optimizer(self.model, settings, settings.optimizer)
        self.updater = Updater(self.model, self.optimizer, settings.gradient_clip, self.precision, self.device)
        self.ahead: tuple[int, Batch] | None = None  # the batch of the next step, made while the device computes
        self.tell: Callable[[], Sequence[float]] = tuple  # numbers that the processes add up in a step, beside its own
        self.told: list[float] = []  # their sums in the last step

    def _starting_model(self) -> nn.Module:
        model = self.objective.build_model(attention_dropout(self.recipe, self.settings.dropout, self.device))
        initialize(model, self.run.pretrain_seed)
        return model

    def _build_loss(self) -> nn.Module:
        loss: nn.Module = Loss(self.objective, self.model)
        if self.is_sharded:
            return shard(loss, self.world)
        loss.to(self.device)
        if self.recipe.compiled:
            loss = torch.compile(loss, fullgraph=True, dynamic=False)
        if self.world.size == 1:
            return loss
        # Without the search DDP groups gradients anew after a session's first step, and adds them in another order: on
        # resume other bits. Buffers are constants, which need no broadcast.
        return DistributedDataParallel(loss, find_unused_parameters=True, broadcast_buffers=False)

    @property
    def is_replicated(self) -> bool:
        """Whether each of several processes has all weights."""
        return self.world.size > 1 and not self.is_sharded

    @property
    def parameters(self) -> int:
        """Number of trainable parameters, tied weights once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def learning_rate(self, step: int) -> float:
        """The rate of step `step` (from 0); where `schedule_steps` is null it ends with the training."""
        settings = self.settings
        end = settings.schedule_steps or settings.steps
        return linear_rate(step, settings.learning_rate, settings.warmup_steps, end)

    def step(self, step: int) -> StepResult:
        """Take the optimizer step `step` (from 0), on its batch.

        DivergedError, before any weight changes, when loss or gradient is not finite; MemoryExhaustedError.
        """
        torch.manual_seed(int(mix(self.run.pretrain_seed, step, self.world.rank) >> 1))
        self.model.train()
        with memory_explained(f"{self.run}, step {step}", self.micro_batch_size):
            loss = self._accumulate_gradients(self._batch(step))
            norm = self.updater.clip()
            self.ahead = (step + 1, self._batch(step + 1))  # before the device is waited for
            # The one wait of a step, for the device and for the other processes.
            loss, norms, *self.told = self.world.read_total(loss, norm, told=self.tell())
            # The processes' norms are equal, so their mean is exact.
            result = StepResult(loss, norms / self.world.size, self.learning_rate(step))
            self._refuse_divergence(step, result)
            self.updater.update(result.learning_rate)
        return result

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        """What the objective measures on the validation sequences; `loss` is the mean over all targets, in nats.

        DivergedError when a number is not finite.
        """
        self.model.eval()
        module = self.loss.module if self.is_replicated else self.loss  # exchanges no gradients
        loss = count = 0
        share = self.world.share(self.objective.validation_count)  # the processes' micro-batches may differ in size
        for batch in self.objective.validation_batches(self.micro_batch_size, share):
            loss, count = loss + self._loss_of(batch, module).item(), count + batch.count
        if self.is_sharded:
            self._help_others_evaluate(*share)
        loss, count, *tally = self.world.total(loss, count, *self._tally(share))
        measured = {"loss": loss / count, **self.objective.measures(loss / count), **self.objective.scores(tally)}
        if not all(map(math.isfinite, measured.values())):
            numbers = ", ".join(f"{name} {value}" for name, value in measured.items())
            raise DivergedError(f"{self.run}: validation {numbers}; {DIVERGED}")
        return measured

    def _tally(self, share: tuple[int, int]) -> list[float]:
        """What the objective counts of this process's validation sequences."""
        counted, (first, last) = [], share
        for start in range(first, last, self.micro_batch_size) or [first]:  # a process without a share counts nothing
            rows = np.arange(start, min(start + self.micro_batch_size, last))
            with autocast(self.precision, self.device), attention_kernels(self.recipe, self.device):
                counted.append(self.objective.tally(self.model, rows, self.device))
        return [sum(column) for column in zip(*counted, strict=True)]

    def describe_start(self) -> dict[str, list[float]]:
        """Spread of the logits and entropy of the attention, by layer, on the first validation sequences."""
        batch = next(self.objective.validation_batches(DESCRIBED))
        model = self._starting_model().to(self.device) if self.is_sharded else self.model  # by this process alone
        return describe_attention(model, *self.objective.inputs_of_layers(batch.to(self.device)))

    def _help_others_evaluate(self, first: int, last: int) -> None:
        """Compute as many batches as the process with the largest share, because each gathers weights from all
        processes; then drop the weights that the last one left."""
        largest = math.ceil(self.objective.validation_count / self.world.size)
        further = math.ceil(largest / self.micro_batch_size) - math.ceil((last - first) / self.micro_batch_size)
        for batch in islice(self.objective.validation_batches(1), further):
            self._loss_of(batch, self.loss)
        self.loss.reshard()

    def _batch(self, step: int) -> Batch:
        if self.ahead and self.ahead[0] == step:
            return self.ahead[1]
        return self.objective.training_batch(step)

    def _accumulate_gradients(self, batch: Batch) -> Tensor:
        """Add up the gradients of this process's share; returns its part of the batch's mean loss."""
        count, starts = batch.count, range(self.first, self.last, self.micro_batch_size)
        total = torch.zeros((), device=self.device)
        for start in starts:
            part = batch.part(start, min(start + self.micro_batch_size, self.last))
            is_last = start == starts[-1]  # after which the processes add up their gradients
            with self.loss.no_sync() if self.is_replicated and not is_last else nullcontext():
                loss = self._loss_of(part, self.loss) / count
                self.updater.backward(loss * self.world.size)  # the exchange takes the mean over processes
            total += loss.detach()
        return total

    def _loss_of(self, batch: Batch, module: nn.Module) -> Tensor:
        """The summed loss of a batch, in nats."""
        if self.recipe.compiled:
            batch = self.objective.of_one_shape(batch)
        with autocast(self.precision, self.device), attention_kernels(self.recipe, self.device):
            return module(**vars(batch.to(self.device)))

    def _refuse_divergence(self, step: int, result: StepResult) -> None:
        """DivergedError, with the rows of the batch in a file, when loss or gradient norm is not finite."""
        if math.isfinite(result.loss):
            if math.isfinite(result.gradient_norm):
                return
            # An infinite gradient may be due to fp16's scale of the loss alone, which halves each time.
            if self.updater.scaler.is_enabled() and self.updater.scaler.get_scale() >= LEAST_SCALE:
                return
        dump = self.state / "divergence.json"
        if self.world.leads:
            read = zip(*self.objective.order(step), strict=True)
            rows = [{"epoch": int(epoch), "row": int(row)} for epoch, row in read]
            measured = {name: str(value) for name, value in vars(result).items()}  # JSON has no NaN
            write_json(dump, {"step": step, **measured, "rows": rows})
        raise DivergedError(
            f"{dump}: {self.run}: loss {result.loss}, gradient norm {result.gradient_norm} at step {step}; {DIVERGED}"
        )


@contextmanager
def memory_explained(what: str, sequences: int) -> Iterator[None]:
    """MemoryExhaustedError in the place of any allocator's error; `sequences` are computed at a time in `what`."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in OUT_OF_MEMORY):
            raise
        raise MemoryExhaustedError(
            f"{what}: out of memory with {sequences} sequences at a time; set 'pretrain.micro_batch_size' below that "
            "or 'pretrain.recompute_activations: true' (the batch stays the same); the last checkpoint is kept"
        ) from None
