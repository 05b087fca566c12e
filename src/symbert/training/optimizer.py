"""Optimizers by name, the learning rate of a step, and how a step is taken: clipped, and scaled in fp16."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from symbert.errors import ConfigError

ParameterGroups = list[dict[str, Any]]


class AdamW(torch.optim.AdamW):
    """PyTorch's, without importing PyTorch's compiler, which takes a second: these methods beneath their decorators."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    state_dict = inspect.unwrap(torch.optim.AdamW.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.AdamW.load_state_dict)


def adamw(groups: ParameterGroups, adam_epsilon: float, adam_beta1: float = 0.9, adam_beta2: float = 0.999) -> AdamW:
    """AdamW (Loshchilov and Hutter, ICLR 2019). Fine-tuning has no settings for the betas: PyTorch's values hold."""
    return AdamW(groups, lr=0.0, betas=(adam_beta1, adam_beta2), eps=adam_epsilon, fused=True)


# A function takes the groups and, by name, those of the stage's settings that are its own.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adamw": adamw}


def optimizer_named(name: str) -> Callable[..., Optimizer]:
    """The function of OPTIMIZERS, or the user's own by its path `module:function`; ConfigError when there is none."""
    if name in OPTIMIZERS:
        return OPTIMIZERS[name]
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"config: 'pretrain.optimizer' is {name}: {error}; write {', '.join(OPTIMIZERS)}, or correct the path"
        ) from None


def build_optimizer(model: nn.Module, settings: Any, name: str = "adamw") -> Optimizer:
    """The optimizer of that name; it decays matrices alone, no biases and no LayerNorm."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    build = optimizer_named(name)
    own = [key for key in inspect.signature(build).parameters if hasattr(settings, key)]
    return build(groups, **{key: getattr(settings, key) for key in own})


def linear_rate(step: int, peak: float, warmup_steps: int, end: int) -> float:
    """The learning rate of `step` (from 0): linear from 0 to `peak` over `warmup_steps`, then linear to 0 at `end`."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * max(end - step, 0) / max(end - warmup_steps, 1)


class Updater:
    """Turns losses into steps of an optimizer: `backward` as often as needed, then `clip`, then `update`."""

    def __init__(
        self, model: nn.Module, optimizer: Optimizer, gradient_clip: float, precision: str, device: torch.device
    ) -> None:
        self.model, self.optimizer, self.gradient_clip = model, optimizer, gradient_clip
        self.scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss, scaled in fp16, to the gradients."""
        self.scaler.scale(loss).backward()

    def clip(self) -> Tensor:
        """Unscale the gradients and clip their norm; returns the norm before."""
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.gradient_clip)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # of gradients in parts, that of all

    def update(self, learning_rate: float) -> None:
        """Move the weights and clear the gradients; in fp16 a gradient that is not finite only lowers the scale."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
