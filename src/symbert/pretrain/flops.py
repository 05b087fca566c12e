"""Floating-point operations of a training step, and how many of them a device can do in a second.

With n tokens in sequences of length t, l layers of hidden size h, m masked tokens and a vocabulary of v,
a product of matrices counting two operations per multiplication:

    forward  = 2 n · (matrix weights of the layers) + 4 l n t h + 2 m (h² + v h)
    backward = 2 · forward

Every weight with two or more dimensions is applied once to every token (a pairwise factor to its head's part),
4 l n t h are the logits and the mixing of the values, and the head works on masked tokens alone. What is
element by element (softmax, norms, biases, activations, the diagonals of `shared`) is not counted, as is
customary for model FLOPs (Chowdhery et al. 2022, PaLM, appendix B); nor is what a kernel computes twice.
"""

import time

import torch
from torch import Tensor, nn

from symbert.model.device import AUTOCAST

PRODUCT_SIZE = {"cuda": 8192, "cpu": 1024}  # large enough to be bound by arithmetic; a fraction of a second
ATTEMPTS = 5


def model_flops(model: nn.Module, sequences: int, tokens: int, masked: float) -> float:
    """Operations, forward and backward, of a step on `sequences` of `tokens` each, `masked` of all to predict."""
    config, total = model.config, sequences * tokens
    layers = 2 * total * _matrix_weights(model.bert.encoder)
    attention = 4 * config.num_hidden_layers * total * tokens * config.hidden_size
    head = 2 * masked * (_matrix_weights(model.cls.predictions.transform) + config.vocab_size * config.hidden_size)
    return 3.0 * (layers + attention + head)


def _matrix_weights(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if parameter.ndim >= 2)


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
