"""Floating-point operations of a training step, and how many of them a device can do in a second."""

import time

import torch
from torch import Tensor, nn

from symbert.flops import step_flops
from symbert.model.device import AUTOCAST

PRODUCT_SIZE = {"cuda": 8192, "cpu": 1024}  # large enough to be bound by arithmetic; a fraction of a second
ATTEMPTS = 5


def model_flops(model: nn.Module, sequences: int, tokens: int, masked: float) -> float:
    """Operations, forward and backward, of a step on `sequences` of `tokens` each, `masked` of all to predict.

    `symbert.flops` has the formula; the weights are those of the model's operator.
    """
    weights = sum(parameter.numel() for parameter in model.bert.encoder.parameters() if parameter.ndim >= 2)
    return step_flops(model.config, weights, model.config.vocab_size, sequences, tokens, masked)


def measure_peak(device: torch.device, precision: str) -> float:
    """FLOP/s of a dense square product in a resolved precision, best of a few: what MFU is a share of."""
    device = torch.device(device)
    size = PRODUCT_SIZE[device.type]
    generator = torch.Generator(device).manual_seed(0)  # zeros would run faster; the training's generator is not moved
    matrix = torch.randn(size, size, generator=generator, device=device, dtype=AUTOCAST.get(precision))
    seconds = [_seconds_of_product(matrix) for _ in range(1 + ATTEMPTS)]
    return 2 * size**3 / min(seconds[1:])


def _seconds_of_product(matrix: Tensor) -> float:
    _wait_for(matrix.device)
    begun = time.perf_counter()
    matrix @ matrix
    _wait_for(matrix.device)
    return time.perf_counter() - begun


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
