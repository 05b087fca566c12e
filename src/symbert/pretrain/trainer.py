"""One run's model, optimizer and data, and how they compute an optimizer step: exact, on any number of devices."""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

from symbert.draws import mix
from symbert.errors import ConfigError, DivergedError
from symbert.files import read_json, write_json
from symbert.model.bert import SymBertForMaskedLM, build_config, initialize
from symbert.model.device import autocast, resolve_precision
from symbert.model.logits import describe_attention
from symbert.model.masking import Masker
from symbert.pretrain.batches import (
    VALIDATION_SEED,
    Batch,
    sequences_of,
    slots_of,
    training_batch,
    validation_batches,
)
from symbert.pretrain.job import Run
from symbert.pretrain.memory import memory_explained
from symbert.pretrain.objective import MaskedLoss
from symbert.pretrain.optimizer import build_optimizer, learning_rate, set_learning_rate
from symbert.pretrain.recipe import RECIPES, attention_dropout, attention_kernels
from symbert.pretrain.rows import REMEDY, Rows
from symbert.pretrain.world import World, alone
from symbert.settings import PretrainSettings

DESCRIBED = 8  # validation rows from which the attention of the start is described
LEAST_SCALE = 1.0  # of the loss in fp16: no gradient that is finite needs a smaller one


@dataclass(frozen=True)
class Stepped:
    """What an optimizer step was: mean loss in nats per masked token, and the gradient's norm before it is clipped."""

    loss: float
    gradient_norm: float
    learning_rate: float


class Trainer:
    """Computes the steps of one run, as one of the processes that train it.

    `micro_batch_size` sequences are computed at a time; neither it nor the number of processes changes the batch.
    """

    def __init__(
        self,
        run: Run,
        settings: PretrainSettings,
        manifest: Path,
        state: Path,
        world: World | None = None,
        micro_batch_size: int | None = None,
    ) -> None:
        self.run, self.settings, self.state, self.world = run, settings, state, world or alone()
        self.device, self.recipe = self.world.device, RECIPES[settings.recipe]
        self.precision = resolve_precision(settings.precision, self.device)
        self.training, self.validation = Rows(manifest, "train"), Rows(manifest, "validation")
        self.masker, self.validation_masker = _maskers(run, settings, manifest)
        self.first, self.last = self._share()
        self.micro_batch_size = min(micro_batch_size or settings.batch_size, self.last - self.first)
        self.model = self._build_model(self.masker.vocabulary_size)
        self.optimizer = build_optimizer(self.model, settings)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")
        self.objective = self._build_objective()
        self.ahead: tuple[int, Batch] | None = None  # the batch of the next step, made while the device computes

    def _share(self) -> tuple[int, int]:
        """The sequences of a batch that this process computes, from the first to before the last."""
        if self.settings.batch_size < self.world.size:
            raise ConfigError(
                f"config: 'pretrain.batch_size' is {self.settings.batch_size}, fewer than the {self.world.size} "
                "processes; start fewer with --nproc-per-node"
            )
        return self.world.share(self.settings.batch_size)

    def _build_model(self, vocabulary_size: int) -> SymBertForMaskedLM:
        config = build_config(self.run.size, self.run.attention, vocabulary_size, self.settings.dropout)
        config.attention_probs_dropout_prob = attention_dropout(self.recipe, self.settings.dropout, self.device)
        model = SymBertForMaskedLM(config)
        initialize(model, self.run.pretrain_seed)
        config.architectures = [type(model).__name__]
        return model.to(self.device)

    def _build_objective(self) -> torch.nn.Module:
        objective: torch.nn.Module = MaskedLoss(self.model)
        if self.recipe.compiled:
            objective = torch.compile(objective, fullgraph=True, dynamic=False)
        if self.world.size == 1:
            return objective
        # Without the search DDP groups gradients anew after a session's first step, and adds them in another order: on
        # resume other bits. Buffers are constants, which need no broadcast.
        return DistributedDataParallel(objective, find_unused_parameters=True, broadcast_buffers=False)

    @property
    def parameters(self) -> int:
        """Number of trainable parameters, tied weights once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def step(self, step: int) -> Stepped:
        """The optimizer step `step` (from 0), on its batch.

        DivergedError, before any weight changes, when loss or gradient is not finite; MemoryExhaustedError.
        """
        rate = learning_rate(step, self.settings)
        set_learning_rate(self.optimizer, rate)
        torch.manual_seed(int(mix(self.run.pretrain_seed, step, self.world.rank) >> 1))
        self.model.train()
        with memory_explained(f"{self.run}, step {step}", self.micro_batch_size):
            loss = self._accumulate_gradients(self._batch(step))
            self.scaler.unscale_(self.optimizer)
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)
            self.ahead = (step + 1, self._batch(step + 1))  # before the device is waited for
            loss, norms = self.world.read_total(loss, norm)  # the one wait for the device in a step
            stepped = Stepped(loss, norms / self.world.size, rate)  # the processes' norms are equal, so this is exact
            self._refuse_divergence(step, stepped)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad(set_to_none=True)
        return stepped

    @torch.no_grad()
    def evaluate(self) -> float:
        """Mean cross-entropy over all masked tokens of the validation rows, in nats."""
        self.model.eval()
        loss = count = 0
        share = self.world.share(len(self.validation))  # of rows: the processes' micro-batches may differ in size
        for batch in validation_batches(self.validation, self.validation_masker, self.micro_batch_size, share):
            loss += self._loss_of(batch, self.alone).item()
            count += len(batch.targets)
        loss, count = self.world.total(loss, count)
        return loss / count

    def describe_start(self) -> dict[str, list[float]]:
        """Spread of the logits and entropy of the attention, by layer, on the first validation rows."""
        batch = next(validation_batches(self.validation, self.validation_masker, DESCRIBED))
        return describe_attention(self.model, batch.input_ids.to(self.device))

    def _batch(self, step: int) -> Batch:
        if self.ahead and self.ahead[0] == step:
            return self.ahead[1]
        return training_batch(self.training, self.masker, step, self.settings.batch_size)

    def _accumulate_gradients(self, batch: Batch) -> torch.Tensor:
        """Add up the gradients of this process's share; returns its part of the batch's mean loss."""
        starts = range(self.first, self.last, self.micro_batch_size)
        total = torch.zeros((), device=self.device)
        for start in starts:
            part = batch.part(start, min(start + self.micro_batch_size, self.last))
            with self._exchange(start == starts[-1]):
                loss = self._loss_of(part, self.objective) / len(batch.targets)
                self.scaler.scale(loss * self.world.size).backward()  # the exchange takes the mean over processes
            total += loss.detach()
        return total

    @property
    def alone(self) -> torch.nn.Module:
        """The objective without the exchange of gradients."""
        return self.objective.module if self.world.size > 1 else self.objective

    def _exchange(self, now: bool) -> AbstractContextManager:
        """Whether processes add up their gradients after this backward pass, or only later ones."""
        return nullcontext() if now or self.world.size == 1 else self.objective.no_sync()

    def _loss_of(self, batch: Batch, objective: torch.nn.Module) -> torch.Tensor:
        """The summed loss of a batch, in nats."""
        if self.recipe.compiled:
            batch = batch.padded(slots_of(*batch.input_ids.shape, self.settings.mask_probability))
        with autocast(self.precision, self.device), attention_kernels(self.recipe, self.device):
            return objective(**vars(batch.to(self.device)))

    def _is_finding_its_scale(self) -> bool:
        """Whether a gradient that is not finite may be fp16's scale of the loss alone, which halves each time."""
        return self.scaler.is_enabled() and self.scaler.get_scale() >= LEAST_SCALE

    def _refuse_divergence(self, step: int, stepped: Stepped) -> None:
        if math.isfinite(stepped.loss) and (math.isfinite(stepped.gradient_norm) or self._is_finding_its_scale()):
            return
        dump = self.state / "divergence.json"
        if self.world.leads:
            read = sequences_of(step, self.settings.batch_size, len(self.training), self.run.pretrain_seed)
            rows = [{"epoch": int(epoch), "row": int(row)} for epoch, row in zip(*read, strict=True)]
            measured = {name: str(value) for name, value in vars(stepped).items()}  # JSON has no NaN
            write_json(dump, {"step": step, **measured, "rows": rows})
        raise DivergedError(
            f"{dump}: {self.run}: loss {stepped.loss}, gradient norm {stepped.gradient_norm} at step {step}; the last "
            "checkpoint is kept: lower 'pretrain.learning_rate' or raise 'pretrain.warmup_steps' under a new "
            "'experiment'"
        )


def _maskers(run: Run, settings: PretrainSettings, manifest: Path) -> tuple[Masker, Masker]:
    """The masker of the run's training rows, and that of the validation rows, the same for every run."""
    corpus = read_json(manifest, {"vocabulary_size": int, "special_tokens": {"mask": int, str: int}}, REMEDY)
    special = corpus["special_tokens"]
    masker = partial(
        Masker,
        probability=settings.mask_probability,
        vocabulary_size=corpus["vocabulary_size"],
        mask_id=special["mask"],
        special_ids=tuple(special.values()),
    )
    return masker(seed=run.pretrain_seed), masker(seed=VALIDATION_SEED)
