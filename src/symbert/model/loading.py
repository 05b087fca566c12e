"""A checkpoint of this project as the model that was trained, of any host, without transformers.

`AutoModelForMaskedLM` and the like load the encoder's, too, after `import symbert.model`.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors.torch import load_file

from symbert.errors import ConfigError, IntegrityError, MissingInputError
from symbert.hosts import ENCODER, HOSTS, host_named_in
from symbert.model.configuration import Configuration, read_configuration
from symbert.model.network import HostModel
from symbert.model.weights import reading_weights, weights_of

REMEDY = "extract the checkpoint again"


def load_model(checkpoint: Path) -> HostModel:
    """The model of a directory that `extract_checkpoint` wrote, with its head, in evaluation mode.

    MissingInputError, ConfigError or IntegrityError name the file; a weight that it lacks is never drawn at random.
    """
    refuse_missing(checkpoint)
    config = read_configuration(checkpoint)
    with building(checkpoint):
        model = model_of(config)
    file = checkpoint / "model.safetensors"
    with reading_weights(file, REMEDY):
        kept = load_file(file)
    expected = weights_of(model)
    refuse_wrong(
        file,
        [
            name
            for name in sorted({*kept, *expected})
            if name not in kept or name not in expected or kept[name].shape != expected[name].shape
        ],
    )
    model.load_state_dict(kept, strict=False)  # tied weights have one name in the file
    return model.eval()


def model_of(config: Configuration) -> HostModel:
    """The model of a configuration, its weights not yet drawn: of the host whose class it names, or an encoder."""
    module, name = HOSTS[host_named_in(config.architectures) or ENCODER].model.split(":")
    return getattr(importlib.import_module(module), name)(config)


def refuse_missing(checkpoint: Path) -> None:
    """MissingInputError for a directory without a configuration or weights."""
    for name in ("config.json", "model.safetensors"):
        if not (checkpoint / name).is_file():
            raise MissingInputError(f"{checkpoint / name}: file not found; run extract_checkpoint")


@contextmanager
def building(checkpoint: Path) -> Iterator[None]:
    """ConfigError that names the checkpoint's config.json where the block cannot build a model of it."""
    path = checkpoint / "config.json"
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except Exception as error:  # transformers and torch raise what they like, of a dozen types
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ConfigError(f"{path}: no model can be built ({said}); extract the step again") from error


def refuse_wrong(weights: Path, names: list[str]) -> None:
    """IntegrityError where a file has other weights than its configuration says, of these names."""
    if names:
        raise IntegrityError(
            f"{weights}: {len(names)} weights are missing, unknown or of another shape than config.json says, "
            f"first {names[0]}; {REMEDY}"
        )
