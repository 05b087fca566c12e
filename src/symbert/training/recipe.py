"""How pre-training and fine-tuning are computed: a named, recorded choice."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from symbert.errors import ConfigError

NO_COMPILER = ("No working C++ compiler", "C++ compile error", "Failed to find C compiler")  # of Inductor, of Triton
# cuDNN was believed to take dropout in sixteenths only. 9.19 with torch 2.11 takes 0.1 as it is
# (docs/evidence/gpu-check.md); the rounding stays, because it is part of the identity of runs.
CUDNN_DROPOUTS = 16
HOPPER = 9  # the major number of its compute capability


@dataclass(frozen=True)
class Recipe:
    """What a recipe does differently."""

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


@contextmanager
def compiler_explained() -> Iterator[None]:
    """ConfigError in the place of torch's when it cannot compile for want of a compiler (on a GPU it needs two)."""
    try:
        yield
    except RuntimeError as error:
        lines = str(error).splitlines()
        reason = next((line for line in lines if any(words in line for words in NO_COMPILER)), None)
        if reason is None:
            raise
        raise ConfigError(
            f"config: 'recipe' is fast, which compiles the model, but no compiler works on this machine ({reason}); "
            "install a C and C++ compiler (g++), or set 'recipe: faithful'"
        ) from None


@contextmanager
def attention_kernels(recipe: Recipe, device: torch.device) -> Iterator[None]:
    """Prefer cuDNN's attention where the recipe takes it."""
    if not takes_cudnn(recipe, device):
        yield
        return
    preferred = [
        SDPBackend.CUDNN_ATTENTION,
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.MATH,
    ]
    with sdpa_kernel(preferred, set_priority=True):
        yield
