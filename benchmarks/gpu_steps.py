"""Steps of pre-training for `gpu_check`: those that are compared with the CPU's, and those whose speed counts."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
import torch

from benchmarks.protocol import CUDA, settings_of
from symbert.paths import Run
from symbert.pretrain.compute import AUTOCAST
from symbert.pretrain.distributed import World
from symbert.pretrain.pace import Pace
from symbert.pretrain.train import StepResult, Trainer

Steps = list[StepResult]

VOCABULARY, TOKENS = 30_522, 512  # as in the paper
STEPS, SEQUENCES = 4, 4  # compared: as much as a few CPU cores compute in seconds
LEARNING_RATE = 3e-4  # without warm-up, so that each step moves every weight and the next loss depends on it
# Sequences of a timed step, as many as are computed at a time in the paper's batches (benchmarks/protocol.py).
TIMED_SEQUENCES = {"tiny": 128, **CUDA.micro_batch_size}
UNTIMED, TIMED = 3, 10  # steps
PRODUCT_SIZE = {"cuda": 8192, "cpu": 1024}  # large enough to be bound by arithmetic; a fraction of a second
ATTEMPTS = 5
PRODUCTS = "products"  # of matrices, in the place of a kernel of attention
# Parts of the names of PyTorch's operations, and of the kernels that compiled code starts without them.
KERNELS = {
    "cuDNN": ("scaled_dot_product_cudnn", "native_sdpa"),
    "flash": ("scaled_dot_product_flash", "flash_fwd"),
    "efficient": ("scaled_dot_product_efficient", "fmha_cutlass"),
}


@dataclass(frozen=True)
class Tolerance:
    """By how much a loss, and the norm of a gradient, may differ from the CPU's in fp32, as a share of it."""

    loss: float
    norm: float


# A float's rounding is 6e-8 (fp32), 5e-4 (fp16), 4e-3 (bf16) of it, in each operation of a layer. Roundings of many
# tokens cancel in a mean loss, and less so in a gradient, whose parts are small differences. AdamW's first steps go by
# a gradient's signs, which rounding decides where it is nearly 0. Norms: the CPU's sum of millions of squares in fp32
# is itself off by 1e-3 (torch 2.13, small and base), whatever the GPU.
TOLERANCES = {
    "fp32": Tolerance(loss=2e-5, norm=3e-3),
    "fp16": Tolerance(loss=3e-4, norm=5e-3),
    "bf16": Tolerance(loss=1e-3, norm=2e-2),
}


@dataclass(frozen=True)
class Arm:
    """What is trained, and how it is computed: a row of the table."""

    size: str
    attention: str
    recipe: str
    precision: str

    @property
    def reference(self) -> "Arm":
        """The same model as the CPU is trusted to compute it."""
        return replace(self, recipe="faithful", precision="fp32")

    def __str__(self) -> str:
        return f"{self.size} | {self.attention} | {self.recipe} | {self.precision}"


@dataclass(frozen=True)
class Difference:
    """The largest ones of the compared steps, as shares of what the CPU computes."""

    loss: float
    norm: float
    steps: int  # compared; fewer than all where fp16 left one out, because the scale of the loss was too large

    def is_allowed(self, precision: str) -> bool:
        """Whether rounding explains it."""
        tolerance = TOLERANCES[precision]
        return self.loss <= tolerance.loss and self.norm <= tolerance.norm


@dataclass(frozen=True)
class Speed:
    """How a GPU trains with dropout."""

    tokens: float  # per second
    mfu: float  # share of the device's speed in a dense product
    memory: float  # MB (10^6 bytes) of tensors at the peak
    kernel: str  # of attention


def compared_steps(arm: Arm, manifest: Path, device: torch.device) -> Steps:
    """The first steps of a training without dropout, on a device."""
    trainer = trainer_of(arm, manifest, device, SEQUENCES, learning_rate=LEARNING_RATE, dropout=0.0)
    return [trainer.step(number) for number in range(STEPS)]


def compare(found: Steps, expected: Steps) -> Difference:
    """By how much steps differ from the CPU's. What is not a number differs by more than anything.

    In fp16 a step whose gradient is infinite is left out, by design: those after it are of other weights.
    """
    skipped = next((number for number, step in enumerate(found) if math.isinf(step.gradient_norm)), None)
    last = len(found) if skipped is None else skipped + 1
    losses = [_share(each.loss, cpu.loss) for each, cpu in zip(found[:last], expected, strict=False)]
    norms = [
        _share(each.gradient_norm, cpu.gradient_norm) for each, cpu in zip(found[:skipped], expected, strict=False)
    ]
    return Difference(max(losses), max(norms, default=0.0), last)


def _share(ours: float, theirs: float) -> float:
    difference = abs(ours - theirs) / abs(theirs)
    return difference if math.isfinite(difference) else math.inf


def measure_speed(arm: Arm, manifest: Path, device: torch.device, peak: float) -> Speed:
    """Some steps with the paper's dropout, once others have warmed the device up; `peak` is in FLOP/s."""
    sequences = TIMED_SEQUENCES[arm.size]
    trainer = trainer_of(arm, manifest, device, sequences)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    pace = Pace(sequences * TOKENS, trainer.task.flops(trainer.model), peak, device)
    for number in range(UNTIMED):
        trainer.step(number)
    for number in range(UNTIMED, UNTIMED + TIMED):
        trainer.step(number)
        pace.step()
    measured = pace.summary()
    kernel = kernel_of(trainer, UNTIMED + TIMED)
    return Speed(measured["tokens_per_second"], measured["mfu"], measured["memory_mb"], kernel)


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


def kernel_of(trainer: Trainer, step: int) -> str:
    """Which kernels of attention a step runs."""
    activities = torch.profiler.supported_activities()
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        trainer.step(step)
    return kernels_among([event.key for event in profile.key_averages()])


def kernels_among(names: Sequence[str]) -> str:
    """The kernels of attention among the names of operations and kernels; PRODUCTS where it is none of them."""
    found = [kernel for kernel, parts in KERNELS.items() if any(part in name for name in names for part in parts)]
    return ", ".join(found) or PRODUCTS


def trainer_of(arm: Arm, manifest: Path, device: torch.device, sequences: int, **changes: float) -> Trainer:
    """A trainer of the paper's settings but for these changes, all sequences at a time."""
    settings = settings_of(batch_size=sequences, recipe=arm.recipe, precision=arm.precision, warmup_steps=0)
    settings = msgspec.structs.replace(settings, **changes)
    world = World(rank=0, size=1, device=device)
    return Trainer(Run(arm.size, arm.attention, 1), settings, manifest, world)
