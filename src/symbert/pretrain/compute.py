"""How pre-training and fine-tuning compute: the device, the precision, the recipe, the optimizer."""

import importlib
import inspect
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import Optimizer

import symbert
from symbert.errors import ConfigError, MemoryExhaustedError, SymbertError
from symbert.files import single_writer

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
DRIVER = Path("/proc/driver/nvidia/gpus")
# Environment variables by which a scheduler gives a job GPUs, each with its values for none.
GIVEN = {
    "SLURM_JOB_GPUS": ("",),
    "SLURM_STEP_GPUS": ("",),
    "SLURM_GPUS_ON_NODE": ("", "0"),
    "SYMBERT_GPUS": ("", "0"),  # set by our rules
}
NO_COMPILER = ("No working C++ compiler", "C++ compile error", "Failed to find C compiler")  # of Inductor, of Triton
OUT_OF_MEMORY = ("out of memory", "can't allocate memory")  # in the words of CUDA's and of the CPU's allocator
# cuDNN was believed to take dropout in sixteenths only. 9.19 with torch 2.11 takes 0.1 as it is
# (docs/measurements/gpu-check.md); the rounding stays, because it is part of the identity of runs.
CUDNN_DROPOUTS = 16
HOPPER = 9  # the major number of its compute capability

_claims = ExitStack()  # of GPUs; released when the process ends, however it ends


# --- device and precision ---------------------------------------------------------------------------------------------


@cache
def pick_device(number: int = 0, processes: int = 1) -> torch.device:
    """The device of this process, for as long as it lives: a GPU that no other process has claimed, or the CPU.

    `number` is the process's number among the `processes` that train together on this machine. ConfigError when there
    are more processes than GPUs, or when there is a GPU that torch cannot use.
    """
    if not torch.cuda.is_available():
        if given := given_gpu(os.environ):
            raise ConfigError(
                f"{given}, but torch {torch.__version__} cannot use one: {_why_cuda_is_absent()}; install a torch "
                "and a driver that fit, or set CUDA_VISIBLE_DEVICES= (empty) to compute on the CPU "
                "(docs/pretraining.md)"
            )
        return torch.device("cpu")
    identities = [str(torch.cuda.get_device_properties(gpu).uuid) for gpu in range(torch.cuda.device_count())]
    if processes > len(identities):
        raise ConfigError(
            f"{processes} processes train together, but GPUs visible here: {len(identities)}; start fewer "
            "('pretrain.processes')"
        )
    device = torch.device("cuda", claim_gpu(identities, number, processes))
    torch.cuda.set_device(device)
    return device


def given_gpu(environment: Mapping[str, str], driver: Path | None = None) -> str | None:
    """Which variable or machine gives this process a GPU, in words; None without one, or where CUDA_VISIBLE_DEVICES
    chooses none. In a job of Slurm the machine is not asked: it may show GPUs of other jobs."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        first = chosen.partition(",")[0].strip()  # CUDA reads up to the first entry that names no GPU
        names_a_gpu = first.isdecimal() or first.startswith(("GPU-", "MIG-"))
        return f"CUDA_VISIBLE_DEVICES is {chosen}" if names_a_gpu else None
    for name, none in GIVEN.items():
        if environment.get(name, "") not in none:
            return f"this job has GPUs ({name}={environment[name]})"
    driver = driver or DRIVER
    if "SLURM_JOB_ID" in environment or not driver.is_dir() or not any(driver.iterdir()):
        return None
    return f"this machine has GPUs ({driver})"


def claim_gpu(identities: Sequence[str], number: int = 0, processes: int = 1, folder: Path | None = None) -> int:
    """The number of the GPU that this process computes on until it ends: its own GPU, else a free one.

    `identities` name the visible GPUs, at least one for each of the training's `processes` on this machine; this
    process has that `number`. If another process uses its GPU, it takes one beyond the training's own. If none is free,
    it shares its own with a warning.
    """
    folder = folder or Path(tempfile.gettempdir(), f"symbert-gpus-{os.getuid()}")
    refusals = []
    for candidate in (number, *range(processes, len(identities))):
        try:
            _claims.enter_context(single_writer(folder / identities[candidate]))
            return candidate
        except (SymbertError, OSError) as refusal:  # a lock never ends a training
            refusals.append(refusal)
    print(f"warning: GPU {number} is shared, for none is free: {refusals[0]}", file=sys.stderr)
    return number


def _why_cuda_is_absent() -> str:
    if torch.version.cuda is None and torch.version.hip is None:
        return "it is built without CUDA"
    try:
        torch.cuda.init()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return "it finds none"


def resolve_precision(precision: str, device: torch.device) -> str:
    """The precision that `auto` means on a device: bf16 where a GPU computes in it, else fp32.

    ConfigError for fp16 on a CPU, which has no loss scaling there.
    """
    if precision == "auto":
        return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    if precision == "fp16" and device.type != "cuda":
        raise ConfigError("config: 'precision' is fp16, which needs a GPU; write auto, fp32 or bf16")
    return precision


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Context in which matrix products run in a resolved precision while weights stay in fp32."""
    return torch.autocast(device.type, AUTOCAST[precision]) if precision in AUTOCAST else nullcontext()


def facts_of_machine(device: torch.device) -> dict[str, Any]:
    """Host, device, processor and versions, as this process sees them."""
    return {
        "host": platform.node(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "processor": f"{_processor()}, {torch.backends.cpu.get_cpu_capability()}",
        "versions": {
            "symbert": symbert.__version__,
            **{name: version(name) for name in ("torch", "transformers", "numpy")},
        },
    }


def _processor() -> str:
    """The processor's name: Linux has it in a file, else Python knows the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


# --- recipe -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """How a model is computed: a named, recorded choice."""

    # One graph: in pre-training for batches of one shape (masked positions are padded to a fixed number of slots), in
    # fine-tuning, on a GPU, for rows of all lengths.
    compiled: bool
    cudnn_attention: bool  # on Hopper; attention dropout is then rounded to sixteenths


RECIPES: dict[str, Recipe] = {
    "faithful": Recipe(compiled=False, cudnn_attention=False),
    "fast": Recipe(compiled=True, cudnn_attention=True),
}


def takes_cudnn(recipe: Recipe, device: torch.device) -> bool:
    """Whether the recipe has cuDNN's attention on this device: on Hopper, where it is twice as fast as flash."""
    if not recipe.cudnn_attention or device.type != "cuda" or torch.version.hip:  # AMD counts its own capabilities
        return False
    return torch.cuda.get_device_capability(device)[0] == HOPPER


def attention_dropout(recipe: Recipe, dropout: float, device: torch.device) -> float:
    """The dropout of attention weights: the paper's, or the nearest that the recipe's kernels take."""
    return round(dropout * CUDNN_DROPOUTS) / CUDNN_DROPOUTS if takes_cudnn(recipe, device) else dropout


def recorded_dropout(recipe: Recipe, dropout: float, device: torch.device) -> dict[str, float]:
    """The attention dropout as a part of a result's identity, where the recipe lets the device decide it."""
    return {"attention_dropout": attention_dropout(recipe, dropout, device)} if recipe.cudnn_attention else {}


def attention_kernels(recipe: Recipe, device: torch.device) -> AbstractContextManager:
    """Context that prefers cuDNN's attention where the recipe takes it."""
    if not takes_cudnn(recipe, device):
        return nullcontext()
    others = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel([SDPBackend.CUDNN_ATTENTION, *others], set_priority=True)


@contextmanager
def compiler_explained() -> Iterator[None]:
    """ConfigError in the place of torch's when no compiler works (on a GPU it needs two)."""
    try:
        yield
    except RuntimeError as error:
        reason = next((line for line in str(error).splitlines() if any(words in line for words in NO_COMPILER)), None)
        if reason is None:
            raise
        raise ConfigError(
            f"config: 'recipe' is fast, which compiles the model, but no compiler works on this machine ({reason}); "
            "install a C and C++ compiler (g++), or set 'recipe: faithful'"
        ) from None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator of a GPU or a CPU refused."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


@contextmanager
def memory_explained(task: Any) -> Iterator[None]:
    """MemoryExhaustedError in the place of any allocator's error in a task."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryExhaustedError(
            f"{task}: out of memory; lower 'pretrain.micro_batch_size' or set 'pretrain.recompute_activations: true' "
            "(the batch stays the same); the last checkpoint is kept"
        ) from None


# --- optimizer --------------------------------------------------------------------------------------------------------


class AdamW(torch.optim.AdamW):
    """PyTorch's, without importing PyTorch's compiler, which takes a second: these methods beneath their decorators."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    state_dict = inspect.unwrap(torch.optim.AdamW.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.AdamW.load_state_dict)


def adamw(
    groups: list[dict[str, Any]], adam_epsilon: float, adam_beta1: float = 0.9, adam_beta2: float = 0.999
) -> AdamW:
    """AdamW (Loshchilov and Hutter, ICLR 2019). Fine-tuning has no settings for the betas: PyTorch's values hold."""
    return AdamW(groups, lr=0.0, betas=(adam_beta1, adam_beta2), eps=adam_epsilon, fused=True)


# A function takes groups of parameters and, by name, its own keys of the stage's settings.
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
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # of sharded gradients the norm of all

    def update(self, learning_rate: float) -> None:
        """Move the weights and clear the gradients; in fp16 a gradient that is not finite only lowers the scale."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
