"""What one fine-tuning leaves in the undeclared state directory: record, predictions and, where asked, weights.

The file's name holds a hash of all that determines them, so results of other settings, data or weights are never
mixed in.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor, nn

from symbert.files import read_json, sha256_of, write_json, write_text
from symbert.pretrain.checkpoint import write_weights

Result = dict[str, Any]  # record, and predictions (a list for each split)


@dataclass(frozen=True)
class Kept:
    """The files of one fine-tuning: <path> and, where weights are kept, a safetensors file and its sha256 beside it."""

    path: Path

    @property
    def weights(self) -> Path:
        """The file of the fine-tuned weights."""
        return self.path.with_suffix(".safetensors")

    @property
    def checksum(self) -> Path:
        """The file of their sha256."""
        return self.path.with_suffix(".sha256")

    def has_result(self) -> bool:
        """Whether it is done."""
        return self.path.is_file()

    def read(self) -> Result:
        """The result."""
        return read_json(self.path, {"record": {"task": str, "finetune_seed": int, "metrics": dict}})

    def write(self, result: Result, model: nn.Module | None) -> None:
        """Keep a result and, when there is one, the model that it is of; weights of an earlier model are removed."""
        self.weights.unlink(missing_ok=True)
        if model is not None:
            self.write_weights(model)
        write_json(self.path, result)

    def write_weights(self, model: nn.Module) -> None:
        """Keep a model."""
        write_weights(model, self.weights)
        write_text(self.checksum, sha256_of(self.weights) + "\n")

    def read_weights(self) -> dict[str, Tensor] | None:
        """The kept weights; None when there are none and, with a warning, when they are not those that were kept."""
        if not (self.has_result() and self.weights.is_file()):
            return None
        if self.checksum.is_file() and self.checksum.read_text().strip() == sha256_of(self.weights):
            return load_file(self.weights)
        print(f"warning: {self.weights}: sha256 is not that in {self.checksum.name}; fine-tuned again", file=sys.stderr)
        return None
