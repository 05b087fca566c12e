"""The training loop: one optimizer step after another, evaluated, logged and saved as configured."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional as F

from symbert.draws import mix
from symbert.errors import DivergedError, PreemptedError
from symbert.files import read_json
from symbert.model.bert import SymBertForMaskedLM, build_config, initialize
from symbert.model.device import autocast, pick_device, resolve_precision
from symbert.model.masking import Masker
from symbert.pretrain.batches import VALIDATION_SEED, Batch, Rows, training_batch, validation_batches
from symbert.pretrain.checkpoint import CheckpointStore, Position
from symbert.pretrain.metrics import MetricsLog
from symbert.pretrain.optimizer import build_optimizer, learning_rate, set_learning_rate
from symbert.pretrain.stop import StopRequest
from symbert.progress import Progress
from symbert.settings import PretrainSettings

LOG_EVERY = 10  # steps between training lines in metrics.jsonl


@dataclass(frozen=True)
class Run:
    """What identifies a run."""

    size: str
    attention: str
    pretrain_seed: int

    def __str__(self) -> str:
        return f"{self.size}-{self.attention} seed {self.pretrain_seed}"


class Trainer:
    """Model, optimizer, data and checkpoints of one run."""

    def __init__(self, run: Run, settings: PretrainSettings, manifest: Path, state: Path) -> None:
        self.run, self.settings, self.state = run, settings, state
        self.device = pick_device()
        self.precision = resolve_precision(settings.precision, self.device)
        corpus = read_json(manifest)
        self.training, self.validation = Rows(manifest, "train"), Rows(manifest, "validation")
        special = corpus["special_tokens"]
        masker = partial(
            Masker,
            probability=settings.mask_probability,
            vocabulary_size=corpus["vocabulary_size"],
            mask_id=special["mask"],
            special_ids=tuple(special.values()),
        )
        self.masker, self.validation_masker = masker(seed=run.pretrain_seed), masker(seed=VALIDATION_SEED)
        config = build_config(run.size, run.attention, corpus["vocabulary_size"], settings.dropout)
        self.model = SymBertForMaskedLM(config)
        initialize(self.model, run.pretrain_seed)
        config.architectures = [type(self.model).__name__]
        config.to_json_file(state / "config.json", use_diff=False)
        self.model.to(self.device)
        self.optimizer = build_optimizer(self.model, settings)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")
        self.checkpoints = CheckpointStore(state)

    @property
    def parameters(self) -> int:
        """Number of trainable parameters, tied weights once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def train(self, stop: StopRequest) -> float:
        """Run the remaining steps; returns the final validation loss (nats per masked token)."""
        settings = self.settings
        begun = self.checkpoints.load_newest(self.model, self.optimizer) or Position(0, 0, {})
        if begun.scaler:
            self.scaler.load_state_dict(begun.scaler)
        log = MetricsLog(self.state / "metrics.jsonl", begun.metrics_bytes)
        told = Progress(f"pretrain {self.run}", settings.steps, "steps", begun.step)
        for step in range(begun.step, settings.steps):
            loss = self.step(step, log)
            completed = step + 1
            if completed % settings.evaluate_every == 0 or completed == settings.steps:
                log.write(split="validation", step=completed, loss=self.evaluate())
            self._save(completed, log, stop)
            told.update(completed, f"loss {loss:.3f}" if completed % LOG_EVERY == 0 else "")
        return log.last_validation_loss()

    def step(self, step: int, log: MetricsLog) -> float:
        """One optimizer step on the batch of `step`; returns its loss."""
        rate = learning_rate(step, self.settings)
        set_learning_rate(self.optimizer, rate)
        torch.manual_seed(int(mix(self.run.pretrain_seed, step) >> 1))
        batch = training_batch(self.training, self.masker, step, self.settings.batch_size).to(self.device)
        self.model.train()
        loss = self.loss_of(batch)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)
        self._refuse_divergence(step, loss, norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if (step + 1) % LOG_EVERY == 0:
            finite = norm.item() if math.isfinite(norm.item()) else None  # fp16 probes for its loss scale by overflow
            log.write(split="train", step=step + 1, loss=loss.item(), learning_rate=rate, gradient_norm=finite)
        return loss.item()

    def loss_of(self, batch: Batch) -> torch.Tensor:
        """Mean cross-entropy over the masked tokens of a batch, in nats."""
        with autocast(self.precision, self.device):
            logits = self.model.masked_logits(batch.input_ids, batch.positions)
        return F.cross_entropy(logits.float(), batch.targets)

    @torch.no_grad()
    def evaluate(self) -> float:
        """Mean cross-entropy over all masked tokens of the validation rows, in nats."""
        self.model.eval()
        total = count = 0
        for batch in validation_batches(self.validation, self.validation_masker, self.settings.batch_size):
            total += self.loss_of(batch.to(self.device)).item() * len(batch.targets)
            count += len(batch.targets)
        return total / count

    def _save(self, completed: int, log: MetricsLog, stop: StopRequest) -> None:
        due = completed % self.settings.save_every == 0 or completed == self.settings.steps
        if due:  # before the checkpoint: a run that resumes from it never comes back to this step
            self.checkpoints.keep_weights(self.model, completed)
        if due or stop.signal:
            position = Position(completed, log.flush(), self.scaler.state_dict())
            self.checkpoints.save(self.model, self.optimizer, position)
        if stop.signal and completed < self.settings.steps:
            raise PreemptedError(f"{self.run}: {stop.signal}: saved at step {completed}; run the same command to go on")

    def _refuse_divergence(self, step: int, loss: torch.Tensor, norm: torch.Tensor) -> None:
        finite = math.isfinite(loss.item()) and (self.scaler.is_enabled() or math.isfinite(norm.item()))
        if not finite:
            raise DivergedError(
                f"{self.run}: loss {loss.item()}, gradient norm {norm.item()} at step {step}; the last checkpoint is "
                "kept: lower 'pretrain.learning_rate' or raise 'pretrain.warmup_steps' under a new 'experiment'"
            )
