"""Weights as safetensors files."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from symbert.errors import IntegrityError, MissingInputError
from symbert.files import extracted_again, publish
from symbert.model.configuration import Configuration, read_configuration

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


def read_checkpoint(directory: Path) -> tuple[Configuration, Tensors]:
    """What an extracted checkpoint of this project says of its model, and its weights by name.

    MissingInputError without one of its files, ConfigError when its operator was edited since, and IntegrityError for a
    damaged file.
    """
    for name in ("config.json", "model.safetensors"):
        if not (directory / name).is_file():
            raise MissingInputError(f"{directory / name}: file not found; {extracted_again(directory / name)}")
    config = read_configuration(directory)
    weights = directory / "model.safetensors"
    with reading_weights(weights, extracted_again(weights)):
        return config, load_file(weights)


def refuse_wrong(file: Path, kept: Tensors, own: Tensors, names: Iterable[str]) -> None:
    """IntegrityError where the weights of these names that a file keeps are not those of the model."""
    shapes, others = ({name: values.shape for name, values in each.items()} for each in (kept, own))
    wrong = sorted(name for name in names if name not in shapes or shapes[name] != others.get(name))
    if wrong:
        raise IntegrityError(
            f"{file}: {len(wrong)} weights are missing, unknown or of another shape than config.json says, "
            f"first {wrong[0]}; {extracted_again(file)}"
        )


def fill(model: nn.Module, names: Iterable[str], weights: Tensors, directory: Path) -> None:
    """Give a model the weights of these names; IntegrityError where those of the checkpoint lack one."""
    refuse_wrong(directory / "model.safetensors", weights, model.state_dict(), names)
    model.load_state_dict({name: weights[name] for name in names}, strict=False)


def write_tensors(tensors: Tensors, path: Path) -> None:
    """Publish tensors, readable as any new file, though safetensors makes its files private.

    The header has one fact alone: of several, safetensors draws the order, and equal weights would be other bytes.
    """
    with publish(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        save_file(tensors, temporary, metadata={"format": "pt"})
        temporary.chmod(mode)


def write_weights(model: nn.Module, path: Path) -> None:
    """Publish the weights of a model."""
    write_tensors(weights_of(model), path)
