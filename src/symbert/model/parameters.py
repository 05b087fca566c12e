"""Parameter counts of real models, built without memory on the meta device."""

from dataclasses import asdict
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from symbert.model.bert import MaskedModel
from symbert.model.configuration import configuration_of
from symbert.sizes import SIZES, VOCABULARY_SIZE


def counts_of(size: str, attention: list[str]) -> dict[str, Any]:
    """Shape, whole-model counts (tied weights once) and counts of one layer's attention projections, at the paper's
    vocabulary of 30,522 (Tables 1 and 2)."""
    with torch.device("meta"), _NothingDrawn():
        models = {name: MaskedModel(configuration_of(size, name)) for name in attention}
    return {
        "shape": {**asdict(SIZES[size]), "vocab_size": VOCABULARY_SIZE},
        "parameters": {name: _count(model) for name, model in models.items()},
        "attention_parameters": {
            name: _count(model.bert.encoder.layer[0].attention.self) for name, model in models.items()
        },
    }


class _NothingDrawn(TorchFunctionMode):
    """Weights are not initialised: on the meta device, where none are, PyTorch imports its compiler to draw them."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_drawing = getattr(func, "__module__", None) == "torch.nn.init"
        return None if is_drawing else func(*args, **(kwargs or {}))


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
