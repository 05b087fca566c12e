"""Where and how precisely a model is computed: device, precision, and what is recorded of the machine."""

import platform
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import symbert
from symbert.errors import ConfigError
from symbert.pretrain.gpus import claim_gpu, who_counts_a_gpu

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


@cache
def pick_device(number: int = 0, processes: int = 1) -> torch.device:
    """The device of this process, for as long as it lives: a GPU that no other process has claimed, or the CPU.

    It is the one of that `number` among the `processes` that train together on this machine; ConfigError when these are
    more than the GPUs, or when there is a GPU that torch cannot use. CUDA's calls without a device mean the GPU that is
    picked.
    """
    if not torch.cuda.is_available():
        if counted := who_counts_a_gpu():
            raise ConfigError(
                f"{counted}, but torch {torch.__version__} cannot use one: {_why_cuda_is_absent()}; install a torch "
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
    """The processor's name: what Linux says, or else what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
