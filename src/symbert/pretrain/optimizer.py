"""AdamW with the paper's settings and the linear schedule."""

import torch
from torch import nn

from symbert.settings import PretrainSettings


def build_optimizer(model: nn.Module, settings: PretrainSettings) -> torch.optim.AdamW:
    """AdamW that decays matrices, and leaves biases and LayerNorm (parameters of one dimension) alone."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    betas = (settings.adam_beta1, settings.adam_beta2)
    return torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=settings.adam_epsilon, fused=True)


def learning_rate(step: int, settings: PretrainSettings) -> float:
    """The rate of step `step` (from 0): linear from 0 over `warmup_steps`, then linear to 0 at `schedule_steps`.

    Where these are null the rate ends with the training.
    """
    if step < settings.warmup_steps:
        return settings.learning_rate * step / settings.warmup_steps
    end = settings.schedule_steps or settings.steps
    return settings.learning_rate * max(end - step, 0) / max(end - settings.warmup_steps, 1)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use `rate` for the next step, in every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate
