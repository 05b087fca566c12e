"""What a training is computed on: machine, device and versions of the libraries."""

import platform
from pathlib import Path
from typing import Any

import numpy
import torch
import transformers

import symbert


def facts_of_machine(device: torch.device) -> dict[str, Any]:
    """Host, device, processor and versions, as this process sees them."""
    modules = (symbert, torch, transformers, numpy)
    return {
        "host": platform.node(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "processor": f"{_processor()}, {torch.backends.cpu.get_cpu_capability()}",
        "versions": {module.__name__: module.__version__ for module in modules},
    }


def _processor() -> str:
    """The processor's name: what Linux says, or else what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
