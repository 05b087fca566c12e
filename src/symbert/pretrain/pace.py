"""How fast a session trains: time per step, tokens per second, and the share of the device's speed that it uses."""

import resource
import sys
import time
from statistics import median
from typing import Any

import torch

from symbert.files import MEGABYTE

MFU = (  # what it counts (`symbert.architectures`): nothing that is computed twice, no dropout, no optimizer
    "MFU = 3 × (2 × tokens × weights of the layers' matrices + 4 × layers × tokens × length × hidden + head of the "
    "predicted tokens − what the last layer spares for the others) / seconds / dense FLOP/s of the data sheet"
)
NOTED = 100  # newest steps that a note is about
# FLOP/s of dense products by data sheet, with sums in float32, by a part of the device's name and by precision.
PEAKS = {
    "H200": {"bf16": 989e12, "fp16": 989e12, "fp32": 67e12},
    "H100 80GB HBM3": {"bf16": 989e12, "fp16": 989e12, "fp32": 67e12},
    "H100 PCIe": {"bf16": 756e12, "fp16": 756e12, "fp32": 51e12},
    "A100": {"bf16": 312e12, "fp16": 312e12, "fp32": 19.5e12},
    "RTX 4090": {"bf16": 165e12, "fp16": 165e12, "fp32": 82.6e12},
}


class Pace:
    """Wall time of the steps of this session; medians, so that an evaluation between two steps does not count.

    The first step (compilation, cold caches) is left out. A step is over when the device has computed it: call
    `step` after its loss was read.
    """

    def __init__(self, tokens_per_step: float, flops_per_step: float, peak: float | None, device: torch.device) -> None:
        self.tokens, self.flops, self.peak, self.device = tokens_per_step, flops_per_step, peak, device
        self.seconds: list[float] = []
        self.mark: float | None = None  # when the step before ended

    def step(self, together: int = 1) -> None:
        """A step has ended, of so many models together: each has its share of the time."""
        now = time.perf_counter()
        if self.mark is not None:
            self.seconds.append((now - self.mark) / together)
        self.mark = now

    def restart(self) -> None:
        """The time since the last step (an evaluation, a checkpoint) is no part of the next one."""
        if self.mark is not None:
            self.mark = time.perf_counter()

    def note(self) -> str:
        """The newest steps in words: '91,000 tokens/s, MFU 38 %, 310 MB'; at first memory alone."""
        memory = f"{memory_mb(self.device):,.0f} MB"
        if not self.seconds:
            return memory
        seconds = median(self.seconds[-NOTED:])
        share = f"{100 * self.flops / seconds / self.peak:.0f} %" if self.peak else "–"
        return f"{self.tokens / seconds:,.0f} tokens/s, MFU {share}, {memory}"

    def summary(self) -> dict[str, Any]:
        """The whole session; null where no step was timed, or the device's peak is unknown. MFU is model FLOPs
        utilisation, by the formula of that name."""
        seconds = median(self.seconds) if self.seconds else None
        return {
            "step_seconds": seconds,
            "tokens_per_second": self.tokens / seconds if seconds else None,
            "flops_per_second": self.flops / seconds if seconds else None,
            "mfu": self.flops / seconds / self.peak if seconds and self.peak else None,
            "peak_flops": self.peak,
            "memory_mb": memory_mb(self.device),
            "steps_timed": len(self.seconds),
        }


def known_peak(device_name: str, precision: str) -> float | None:
    """FLOP/s that a device is capable of in a resolved precision; None where no data sheet is known here."""
    return next((peaks[precision] for name, peaks in PEAKS.items() if name in device_name), None)


def memory_mb(device: torch.device) -> float:
    """The most memory (10⁶ bytes) that tensors took on a GPU, or that this process took on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / MEGABYTE
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE
