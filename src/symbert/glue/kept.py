"""What one fine-tuning leaves in the undeclared state directory: record, predictions and, where asked, weights.

The file's name holds a hash of all that determines them, so results of other settings, data or weights are never
mixed in.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import nn

from symbert.errors import IntegrityError
from symbert.files import read_json, sha256_of, write_json
from symbert.pretrain.checkpoint import write_weights

Result = dict[str, Any]  # record, predictions (a list for each split) and seconds


@dataclass(frozen=True)
class Kept:
    """The files of one fine-tuning: <path> and, where weights are kept, a safetensors file beside it."""

    path: Path

    @property
    def weights(self) -> Path:
        """The file of the fine-tuned weights."""
        return self.path.with_suffix(".safetensors")

    def has_result(self) -> bool:
        """Whether it is done."""
        return self.path.is_file()

    def has_weights(self) -> bool:
        """Whether it is done and its weights are there."""
        return self.has_result() and "weights_sha256" in self.read() and self.weights.is_file()

    def read(self) -> Result:
        """The result."""
        return read_json(self.path)

    def write(self, result: Result, model: nn.Module | None) -> None:
        """Keep a result and, when there is one, the model that it is of."""
        if model is not None:
            write_weights(model, self.weights)
            result = {**result, "weights_sha256": sha256_of(self.weights)}
        write_json(self.path, result)

    def load_weights(self, model: nn.Module) -> None:
        """Fill a classifier with the kept weights; IntegrityError when they are not those that were kept."""
        if sha256_of(self.weights) != self.read()["weights_sha256"]:
            raise IntegrityError(f"{self.weights}: sha256 is not that in {self.path.name}; delete both and run again")
        model.load_state_dict(load_file(self.weights))
