"""Where and how precisely a model is computed."""

from contextlib import AbstractContextManager, nullcontext

import torch

from symbert.errors import ConfigError

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def pick_device(number: int = 0) -> torch.device:
    """The CUDA device of that number among those this process sees, or the CPU."""
    return torch.device("cuda", number) if torch.cuda.is_available() else torch.device("cpu")


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
