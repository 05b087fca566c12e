"""Fine-tuning one classifier on one task: the paper's protocol (section 3.4), without its evaluations on the way."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.errors import DivergedError
from symbert.glue.batches import Batch, Rows, shuffled_batches, sorted_batches
from symbert.model.device import autocast
from symbert.pretrain.optimizer import set_learning_rate
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
    optimizer = build_optimizer(model, settings)
    scaler = torch.amp.GradScaler(rows.labels.device.type, enabled=precision == "fp16")
    steps = steps_of(len(rows), settings)
    step = 0
    for epoch in range(settings.epochs):
        losses = []
        for batch in shuffled_batches(rows, settings.batch_size, seed, epoch):
            set_learning_rate(optimizer, learning_rate(step, steps, settings))
            loss = loss_of(logits_of(model, batch, precision), batch.labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), settings.gradient_clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())
            step += 1
            tell(step)
        refuse_divergence(torch.stack(losses).mean().item(), epoch)


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


def logits_of(model: nn.Module, batch: Batch, precision: str) -> Tensor:
    """Logits `batch label`, in the precision of the weights."""
    with autocast(precision, batch.labels.device):
        return model(batch.input_ids, batch.attention_mask, batch.token_type_ids).logits.to(model.dtype)


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error of grades (one logit), mean cross-entropy in nats of classes."""
    if logits.shape[1] == 1:
        return F.mse_loss(logits[:, 0], labels.to(logits.dtype))
    return F.cross_entropy(logits, labels)


def refuse_divergence(loss: float, epoch: int) -> None:
    """DivergedError when the mean loss of an epoch is not finite."""
    if not math.isfinite(loss):
        raise DivergedError(f"loss {loss} in epoch {epoch + 1}; lower 'glue.learning_rate' under a new 'experiment'")
