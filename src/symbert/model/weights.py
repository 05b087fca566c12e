"""Weights as safetensors files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from symbert.errors import IntegrityError
from symbert.files import publish

Tensors = dict[str, Tensor]


def weights_of(model: nn.Module) -> Tensors:
    """The weights of a model by name, tied ones once."""
    tied = set(getattr(model, "all_tied_weights_keys", None) or model._tied_weights_keys or ())  # first Hugging Face's
    return {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name not in tied}


@contextmanager
def reading_weights(path: Path, remedy: str) -> Iterator[None]:
    """IntegrityError with the remedy where the block reads a file that is cut, or no safetensors."""
    try:
        yield
    except SafetensorError as error:
        raise IntegrityError(f"{path}: damaged ({error}); {remedy}") from None


def write_tensors(tensors: Tensors, path: Path) -> None:
    """Publish tensors, readable as any new file, though safetensors makes its files private."""
    with publish(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        save_file(tensors, temporary, metadata={"format": "pt"})
        temporary.chmod(mode)


def write_weights(model: nn.Module, path: Path) -> None:
    """Publish the weights of a model."""
    write_tensors(weights_of(model), path)
