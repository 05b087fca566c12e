"""Checkpoints of this project: their weights as safetensors files, and the models of any host, without transformers."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from symbert.errors import ConfigError, IntegrityError, MissingInputError
from symbert.files import extracted_again, publish, sha256_of, verify_sha256
from symbert.hosts import ENCODER, HOSTS, host_named_in
from symbert.model.bert import Bert, Classifier, HostModel, SpanModel
from symbert.model.configuration import Configuration, read_configuration
from symbert.paths import CHECKSUM

Tensors = dict[str, Tensor]


def weights_of(model: nn.Module) -> Tensors:
    """The weights of a model by name, tied ones once."""
    tied = set(getattr(model, "all_tied_weights_keys", None) or model._tied_weights_keys or ())  # first Hugging Face's
    return {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name not in tied}


def read_checkpoint(directory: Path) -> tuple[Configuration, Tensors]:
    """The configuration and the weights of a directory with config.json and model.safetensors.

    MissingInputError without one of its files, ConfigError when its operator was edited since, and IntegrityError for a
    damaged file.
    """
    for name in ("config.json", "model.safetensors"):
        if not (directory / name).is_file():
            raise MissingInputError(f"{directory / name}: file not found; {extracted_again(directory / name)}")
    config, weights = read_configuration(directory), directory / "model.safetensors"
    if (directory / CHECKSUM).is_file():
        extracted_sha256(directory)
    try:
        return config, load_file(weights)
    except SafetensorError as error:
        raise IntegrityError(f"{weights}: damaged ({error}); {extracted_again(weights)}") from None


def extracted_sha256(checkpoint: Path) -> str:
    """The SHA-256 of a checkpoint's weights; IntegrityError when they were damaged since they were extracted here."""
    weights, noted = checkpoint / "model.safetensors", checkpoint / CHECKSUM
    if not noted.is_file():
        return sha256_of(weights)
    return verify_sha256(weights, noted.read_text().strip(), extracted_again(weights))


def fill(model: nn.Module, names: Iterable[str], weights: Tensors, directory: Path) -> None:
    """Give a model the weights of these names; IntegrityError where the checkpoint lacks one or has another shape."""
    file, expected = directory / "model.safetensors", model.state_dict()
    shapes, others = ({name: values.shape for name, values in tensors.items()} for tensors in (weights, expected))
    wrong = sorted(name for name in names if name not in shapes or shapes[name] != others.get(name))
    if wrong:
        raise IntegrityError(
            f"{file}: {len(wrong)} weights are missing, unknown or of another shape than config.json says, "
            f"first {wrong[0]}; {extracted_again(file)}"
        )
    model.load_state_dict({name: weights[name] for name in names}, strict=False)


@torch.no_grad()
def refuse_unrestored(started: HostModel, used: HostModel, *inputs: Tensor) -> None:
    """ConfigError for a tensor of an operator that another process would not have: it differs between two models that
    start from one seed, or a checkpoint does not restore it at the start or after a training pass.

    The pass takes `used` with the `inputs` of its layers. A tensor that a forward pass makes is no state, but a cache.
    """
    remedy = "draw it with torch's generator in __init__, or register it as a persistent buffer"
    place = f"attention '{started.config.attention}'"
    if differing := _differing(started, used):
        raise ConfigError(f"{place}: {differing[0]} differs between two starts of one seed; {remedy}")
    restored = model_of(started.config)
    restored.load_state_dict(started.state_dict())
    lost = sorted(_state_of(started).keys() - _state_of(restored)) + _differing(started, restored)
    getattr(used, "bert", used).train()(*inputs)
    restored.load_state_dict(used.state_dict())
    if lost := lost or _differing(used, restored):
        raise ConfigError(f"{place}: no checkpoint restores {lost[0]}; {remedy}")


def _state_of(model: nn.Module) -> dict[str, Any]:
    """All numbers of a model by name: parameters, buffers, and attributes of its modules."""
    own = {
        f"{prefix}.{name}": value for prefix, module in model.named_modules() for name, value in vars(module).items()
    }
    numbers = {name: value for name, value in own.items() if isinstance(value, Tensor | np.ndarray | float)}
    return {**numbers, **dict(model.named_parameters()), **dict(model.named_buffers())}


def _differing(model: nn.Module, other: nn.Module) -> list[str]:
    """The names of numbers of one shape that differ between two models."""
    (own, others) = (
        {name: torch.as_tensor(value).cpu() for name, value in _state_of(each).items()} for each in (model, other)
    )
    alike = (name for name in own.keys() & others if own[name].shape == others[name].shape)
    return sorted(name for name in alike if not torch.equal(own[name], others[name]))


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


def load_model(checkpoint: Path) -> HostModel:
    """The model of a directory that `extract` wrote, with its head, in evaluation mode.

    MissingInputError, ConfigError or IntegrityError name the file; a weight that it lacks is never drawn at random.
    """
    config, kept = read_checkpoint(checkpoint)
    model = _built(checkpoint, lambda: model_of(config))
    model.to(next(iter(kept.values())).dtype)
    fill(model, {*kept, *weights_of(model)}, kept, checkpoint)  # tied weights have one name in the file
    return model.eval()


def model_of(config: Configuration) -> HostModel:
    """The model of a configuration, its weights not yet drawn: of the host or the head whose class it names, or an
    encoder with the head for masked tokens."""
    for head, kind in {"SequenceClassification": Classifier, "QuestionAnswering": SpanModel}.items():
        if head in str(config.architectures):
            return kind(config, len(config.id2label))
    return HOSTS[host_named_in(config.architectures) or ENCODER].model_class(config)


def _built(checkpoint: Path, make: Callable[[], nn.Module]) -> Any:
    """The model that `make` builds; ConfigError that names the checkpoint's config.json where it cannot."""
    path = checkpoint / "config.json"
    try:
        return make()
    except Exception as error:  # torch raises errors of a dozen types
        said = " ".join(str(error).split())
        raise ConfigError(f"{path}: no model can be built ({said}); {extracted_again(path)}") from error


def load_encoder(checkpoint: Path) -> Bert:
    """The encoder of a directory with config.json and model.safetensors, of this project or any BERT, in float32.

    MissingInputError, ConfigError or IntegrityError name the file.
    """
    config, kept = read_checkpoint(checkpoint)
    encoder = _built(checkpoint, lambda: Bert(config, has_pooler=False))
    old = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}  # of the first BERTs
    for before, today in old.items():
        kept = {name.removeprefix("bert.").replace(before, today): values.float() for name, values in kept.items()}
    fill(encoder, list(encoder.state_dict()), kept, checkpoint)
    return encoder.eval()
