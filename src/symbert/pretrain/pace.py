"""How fast a session trains: time per step, tokens per second, and the share of the device's speed that it uses."""

import resource
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

import torch
from torch import nn

from symbert.files import MEGABYTE
from symbert.flops import step_flops
from symbert.model.parameters import matrix_weights
from symbert.training.device import AUTOCAST

NOTED = 100  # newest steps that a note is about
KEPT = 5000  # newest steps that the summary is about
PRODUCT_SIZE = {"cuda": 8192, "cpu": 1024}  # large enough to be bound by arithmetic; a fraction of a second
ATTEMPTS = 5
PREFIXES = {10**15: "P", 10**12: "T", 10**9: "G", 10**6: "M"}


class Pace:
    """Wall time of the steps of this session; medians, so that an evaluation between two steps does not count.

    The first step (compilation, cold caches) is left out. A step is over when the device has computed it: call
    `step` after its loss was read.
    """

    def __init__(
        self,
        tokens_per_step: float,
        flops_per_step: float,
        peak: float,
        device: torch.device,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.tokens_per_step, self.flops_per_step, self.peak = tokens_per_step, flops_per_step, peak
        self.device, self.clock = device, clock
        self.seconds: deque[float] = deque(maxlen=KEPT)
        self.steps_timed = 0
        self.mark: float | None = None  # when the step before ended

    def step(self) -> None:
        """A step has ended."""
        now = self.clock()
        if self.mark is not None:
            self.seconds.append(now - self.mark)
            self.steps_timed += 1
        self.mark = now

    def restart(self) -> None:
        """What was done since the last step (an evaluation, a checkpoint) is no part of the next one."""
        if self.mark is not None:
            self.mark = self.clock()

    def note(self) -> str:
        """The newest steps in words: '91,000 tokens/s, MFU 38 % of 60 GFLOP/s, 310 MB'; at first memory alone."""
        memory = f"{memory_mb(self.device):,.0f} MB"
        if not self.seconds:
            return memory
        seconds = median(islice(reversed(self.seconds), NOTED))
        share = f"MFU {100 * self._mfu(seconds):.0f} % of {in_words(self.peak)}"
        return f"{self.tokens_per_step / seconds:,.0f} tokens/s, {share}, {memory}"

    def summary(self) -> dict[str, Any]:
        """The whole session (its newest KEPT steps); null where no step was timed."""
        seconds = median(self.seconds) if self.seconds else None
        return {
            "step_seconds": seconds,
            "tokens_per_second": self.tokens_per_step / seconds if seconds else None,
            "mfu": self._mfu(seconds) if seconds else None,
            "peak_flops": self.peak,
            "memory_mb": memory_mb(self.device),
            "steps_timed": self.steps_timed,
        }

    def _mfu(self, seconds: float) -> float:
        """Model FLOPs utilisation: the model's operations per second as a share of the peak."""
        return self.flops_per_step / seconds / self.peak


def memory_mb(device: torch.device) -> float:
    """The most memory (10⁶ bytes) that tensors took on a GPU, or that this process took on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / MEGABYTE
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE


def in_words(flops_per_second: float) -> str:
    """A rate for people: '60 GFLOP/s', '1.2 PFLOP/s'."""
    unit = next((unit for unit in PREFIXES if flops_per_second >= unit), min(PREFIXES))
    value = flops_per_second / unit
    return f"{value:.{0 if value >= 10 else 1}f} {PREFIXES[unit]}FLOP/s"


def model_flops(model: nn.Module, sequences: int, tokens: int, masked: float) -> float:
    """Operations, forward and backward, of a step on `sequences` of `tokens` each, `masked` of all to predict.

    `symbert.flops` has the formula; the weights are those of the model's operator.
    """
    weights = matrix_weights(model.bert.encoder)
    return step_flops(model.config, weights, model.config.vocab_size, sequences, tokens, masked)


def measure_peak(device: torch.device, precision: str) -> float:
    """FLOP/s of a dense square product in a resolved precision, best of a few: what MFU is a share of."""
    device = torch.device(device)
    size = PRODUCT_SIZE[device.type]
    generator = torch.Generator(device).manual_seed(0)  # zeros would run faster; the training's generator is not moved
    matrix = torch.randn(size, size, generator=generator, device=device, dtype=AUTOCAST.get(precision))
    wait = partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
    seconds = []
    for _ in range(1 + ATTEMPTS):
        wait()
        begun = time.perf_counter()
        matrix @ matrix
        wait()
        seconds.append(time.perf_counter() - begun)
    return 2 * size**3 / min(seconds[1:])
