"""Fine-tuning one classifier on one task: the paper's protocol (section 3.4), without its evaluations on the way."""

import math
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.errors import DivergedError
from symbert.glue.batches import Batch, Rows, shuffled_batches, sorted_batches
from symbert.glue.pieces import own_pieces
from symbert.model.device import autocast
from symbert.model.packed import Encoder, encode, encoder_for
from symbert.pretrain.optimizer import set_learning_rate
from symbert.pretrain.recipe import RECIPES, Recipe, attention_kernels
from symbert.settings import GlueSettings

EVALUATION_BATCH_SIZE = 64  # rows; predictions do not depend on it


def train(
    model: nn.Module, rows: Rows, settings: GlueSettings, precision: str, seed: int, tell: Callable[[int], None]
) -> None:
    """Train in place for `settings.epochs`; batch order and dropout follow from `seed` alone.

    `tell` is given the number of steps done. DivergedError when the loss of an epoch is not finite.
    """
    torch.manual_seed(seed)
    model.train()
    # Weight decay would move the embeddings of pieces that no row has, too.
    with own_pieces(model, rows) if settings.weight_decay == 0 else nullcontext(rows) as numbered:
        trainer = Trainer(model, settings, precision, steps_of(len(rows), settings))
        for epoch in range(settings.epochs):
            losses = []
            for batch in shuffled_batches(numbered, settings.batch_size, seed, epoch):
                losses.append(trainer.step(batch))
                tell(trainer.done)
            refuse_divergence(torch.stack(losses).mean().item(), epoch)


class Trainer:
    """Takes the optimizer steps of one fine-tuning.

    The recipe `fast` differs from `faithful` in how a GPU computes: the encoder is compiled, and on Hopper attention
    takes kernels that want another dropout (`symbert.pretrain.recipe`). The batches are the same.
    """

    def __init__(self, model: nn.Module, settings: GlueSettings, precision: str, steps: int) -> None:
        self.model, self.settings, self.precision, self.steps, self.done = model, settings, precision, steps, 0
        self.recipe, self.device = RECIPES[settings.recipe], next(model.parameters()).device
        self.optimizer = build_optimizer(model, settings)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "fp16")
        self.encode = encoder_of(model, self.recipe, self.device)

    def step(self, batch: Batch) -> Tensor:
        """Take the next step; the loss of its batch."""
        set_learning_rate(self.optimizer, learning_rate(self.done, self.steps, self.settings))
        with attention_kernels(self.recipe, self.device):
            loss = loss_of(logits_of(self.model, batch, self.precision, self.encode), batch.labels)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1
        return loss.detach()


def encoder_of(model: nn.Module, recipe: Recipe, device: torch.device) -> Encoder:
    """What the model's operator needs; `encode` is compiled to one graph for all lengths where that pays.

    On a CPU it takes longer than it saves; what computes one length at a time is no one graph.
    """
    encoder = encoder_for(model.bert)
    pays = encoder is encode and recipe.compiled and device.type == "cuda"
    return torch.compile(encode, fullgraph=True, dynamic=True) if pays else encoder


@torch.inference_mode()
def predict(model: nn.Module, rows: Rows, precision: str) -> np.ndarray:
    """The predicted class of each row, or its grade when the classifier has one output."""
    model.eval()
    predictions = np.zeros(len(rows), dtype=np.float64 if model.config.num_labels == 1 else np.int64)
    for index, batch in sorted_batches(rows, EVALUATION_BATCH_SIZE):
        logits = logits_of(model, batch, precision)
        predictions[index] = (logits[:, 0] if logits.shape[1] == 1 else logits.argmax(dim=1)).cpu().numpy()
    return predictions


def steps_of(rows: int, settings: GlueSettings) -> int:
    """Optimizer steps of a whole fine-tuning."""
    return settings.epochs * math.ceil(rows / settings.batch_size)


def learning_rate(step: int, steps: int, settings: GlueSettings) -> float:
    """The rate of step `step` (from 0): linear from 0 over ⌈warmup_ratio · steps⌉, then linear to 0 at `steps`."""
    warmup_steps = math.ceil(settings.warmup_ratio * steps)
    if step < warmup_steps:
        return settings.learning_rate * step / warmup_steps
    return settings.learning_rate * (steps - step) / (steps - warmup_steps)


def build_optimizer(model: nn.Module, settings: GlueSettings) -> torch.optim.AdamW:
    """AdamW that decays matrices only (parameters of one dimension are biases and LayerNorm)."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, eps=settings.adam_epsilon, fused=True)


def logits_of(model: nn.Module, batch: Batch, precision: str, encoder: Encoder | None = None) -> Tensor:
    """Logits `row label`, in the precision of the weights."""
    encoder = encoder or encoder_for(model.bert)
    with autocast(precision, batch.labels.device):
        embedded = model.bert.embeddings(
            batch.input_ids[None], batch.token_type_ids[None], batch.packing.position_ids[None]
        )
        pooled = encoder(model.bert, embedded, batch.packing)
        return model.classifier(model.dropout(pooled)).to(model.dtype)


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error of grades (one logit), mean cross-entropy in nats of classes."""
    if logits.shape[1] == 1:
        return F.mse_loss(logits[:, 0], labels.to(logits.dtype))
    return F.cross_entropy(logits, labels)


def refuse_divergence(loss: float, epoch: int) -> None:
    """DivergedError when the mean loss of an epoch is not finite."""
    if not math.isfinite(loss):
        raise DivergedError(f"loss {loss} in epoch {epoch + 1}; lower 'glue.learning_rate' under a new 'experiment'")
