"""Checkpoints of this project: their weights as safetensors files, and the models of any architecture, without
transformers."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from symbert.architectures import ARCHITECTURES, ENCODER, architecture_named_in
from symbert.errors import ConfigError, IntegrityError, line_of
from symbert.files import publish, read_json, reading, sha256_of, verify_sha256
from symbert.model.bert import BaseModel, Bert, Classifier, SpanModel
from symbert.model.configuration import (
    DEFAULTS,
    PICKLED,
    POINTER,
    SAFE,
    Configuration,
    read_configuration,
    weight_files,
)
from symbert.model.from_transformers import shown
from symbert.paths import CHECKSUM, extracted_again

Tensors = dict[str, Tensor]

EMBEDDINGS = "embeddings.word_embeddings.weight"
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}  # of the first BERTs
WRAPPERS = r"^((module|model|bert)\.)+"  # of processes that trained together (DDP), of trainers, and BERT's own
UNUSED = ("pooler.", "cls.seq_relationship.")  # parts of a pre-trained BERT that the prediction of tokens does without
SECOND_NAMES = {  # of tied weights
    "cls.predictions.decoder.weight": EMBEDDINGS,
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
OF_PIECES = (EMBEDDINGS, "cls.predictions.bias", *SECOND_NAMES)  # with a row or a number for each piece


def weights_of(model: nn.Module) -> Tensors:
    """The weights of a model by name, tied ones once."""
    tied = set(getattr(model, "all_tied_weights_keys", None) or model._tied_weights_keys or ())  # first Hugging Face's
    return {name: tensor for name, tensor in model.state_dict().items() if name not in tied}


def read_checkpoint(directory: Path, *others: str) -> tuple[Configuration, Tensors]:
    """The configuration and the weights of a directory with config.json and model.safetensors; where that is missing,
    a file of one of the `others` names; each may lie in several files that an index lists.

    MissingInputError without one of its files, ConfigError when its operator was edited since, and IntegrityError for a
    damaged file.
    """
    config, weights = read_configuration(directory), {}
    files = weight_files(directory, *others)
    if (directory / CHECKSUM).is_file():
        extracted_sha256(directory)
    for file in files:
        weights |= read_weights(file, extracted_again(directory))
    return config, weights


def read_weights(file: Path, remedy: str) -> Tensors:
    """The weights in a safetensors file or, of another name, in one of torch.save, in which nothing else is made, or
    run; MissingInputError or IntegrityError name the file, and a weight that is quantized."""
    with reading(file, absent=remedy), open(file, "rb") as content:
        if content.read(len(POINTER)) == POINTER:
            raise IntegrityError(f"{file}: a pointer of Git LFS, not the weights; get them: git lfs pull")
    try:
        weights = load_file(file) if file.suffix == ".safetensors" else _load_pickled(file)
    except (OSError, MemoryError, IntegrityError):
        raise
    except Exception as error:  # a damaged pickle raises any
        said = str(error).partition("\n")[0] or type(error).__name__
        raise IntegrityError(f"{file}: damaged ({said}); {remedy}") from None
    for name, values in weights.items():
        if name.endswith(".weight") and not (values.is_floating_point() and values.itemsize > 1):
            kind = str(values.dtype).removeprefix("torch.")
            raise IntegrityError(f"{file}: {name} is quantized ({kind}); give the model that it was made of")
    return weights


def _load_pickled(file: Path) -> Tensors:
    """The tensors of a file of torch.save; nothing else in it is made, or run."""
    try:
        loaded = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file raises any
        if not (kind := re.search(r"[Uu]nsupported (?:global|class|GLOBAL).*?([\w.]+\.\w+)", str(error))):
            raise
        loaded = kind[1]
    named = loaded if isinstance(loaded, dict) else {}
    weights = {name: values for name, values in named.items() if isinstance(values, Tensor)}
    if not weights:
        found = ", ".join([*map(str, named)][:3]) or loaded
        raise IntegrityError(
            f"{file}: holds {found}, expected weights by name; save them alone: torch.save(model.state_dict(), …)"
        )
    return weights


def extracted_sha256(checkpoint: Path) -> str:
    """The SHA-256 of a checkpoint's weights; IntegrityError when they were damaged since they were extracted here."""
    weights, noted = checkpoint / SAFE, checkpoint / CHECKSUM
    if not noted.is_file():
        return sha256_of(weights)
    digest = noted.read_text(errors="replace").strip()
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise IntegrityError(f"{noted}: no SHA-256; {extracted_again(checkpoint)}")
    return verify_sha256(weights, digest, extracted_again(checkpoint))


def fill(model: nn.Module, names: Iterable[str], weights: Tensors, directory: Path) -> None:
    """Give a model the weights of these names; IntegrityError where the checkpoint lacks one or has another shape."""
    file, expected = weight_files(directory, PICKLED)[0], model.state_dict()
    shapes, others = ({name: values.shape for name, values in tensors.items()} for tensors in (weights, expected))
    wrong = sorted(name for name in names if name not in shapes or shapes[name] != others.get(name))
    if wrong:
        raise IntegrityError(
            f"{file}: {len(wrong)} weights are missing, unknown or of another shape than config.json says, "
            f"first {wrong[0]}; {extracted_again(directory)}"
        )
    model.load_state_dict({name: weights[name] for name in names}, strict=False)


def written(tensors: Tensors) -> Tensors:
    """The tensors as safetensors writes them: contiguous, and each in memory of its own."""
    apart, taken = {}, set()
    for name, tensor in tensors.items():
        whole = tensor.contiguous()
        if (place := whole.untyped_storage().data_ptr()) in taken:
            whole = whole.clone()
        taken.add(place)
        apart[name] = whole
    return apart


def write_tensors(tensors: Tensors, path: Path) -> None:
    """Publish tensors, readable as any new file, though safetensors makes its files private.

    The header has one fact alone: of several, safetensors draws the order, and equal weights would be other bytes.
    """
    with publish(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        save_file(written(tensors), temporary, metadata={"format": "pt"})
        temporary.chmod(mode)


def write_weights(model: nn.Module, path: Path) -> None:
    """Publish the weights of a model."""
    write_tensors(weights_of(model), path)


def load_model(checkpoint: Path) -> BaseModel:
    """The model of a directory that `extract` wrote, with its head, in evaluation mode.

    MissingInputError, ConfigError or IntegrityError name the file; a weight that it lacks is never drawn at random.
    """
    config, kept = read_checkpoint(checkpoint)
    file = checkpoint / "config.json"
    if (kind := read_json(file, dict).get("model_type")) != DEFAULTS["model_type"]:
        raise ConfigError(
            f"{file}: 'model_type' is {kind}, expected {DEFAULTS['model_type']}; give a checkpoint of ours"
        )
    model = _built(checkpoint, lambda: model_of(config))
    model.to(next(iter(kept.values())).dtype)
    fill(model, {*kept, *weights_of(model)}, kept, checkpoint)  # tied weights have one name in the file
    return model.eval()


def model_of(config: Configuration) -> BaseModel:
    """The model of a configuration, its weights not yet drawn: of the architecture or the head whose class it names, or
    an encoder with the head for masked tokens."""
    for head, kind in {"SequenceClassification": Classifier, "QuestionAnswering": SpanModel}.items():
        if head in str(config.architectures):
            return kind(config, len(config.id2label))
    return ARCHITECTURES[architecture_named_in(config.architectures) or ENCODER].model_class(config)


def _built(checkpoint: Path, make: Callable[[], nn.Module]) -> Any:
    """The model that `make` builds; ConfigError that names the checkpoint's config.json where it cannot."""
    path = checkpoint / "config.json"
    try:
        return make()
    except ConfigError as error:
        raise ConfigError(f"{path}: {str(error).removeprefix('config: ')}") from error
    except Exception as error:  # torch raises errors of a dozen types
        said = line_of(error)
        raise ConfigError(f"{path}: no model can be built ({said}); {extracted_again(checkpoint)}") from error


def load_encoder(checkpoint: Path) -> Bert:
    """The encoder of a directory with config.json and model.safetensors, of this project or any BERT, in float32; of
    BERTs also pytorch_model.bin, the names of the first ones or of models that were saved in a wrapper, and embeddings
    of ids beyond the vocabulary.

    MissingInputError, ConfigError or IntegrityError name the file.
    """
    config, kept = read_checkpoint(checkpoint, PICKLED)
    encoder = _built(checkpoint, lambda: Bert(config, has_pooler=False))
    kept = {name: values.float() for name, values in _named_today(kept, checkpoint).items()}
    if EMBEDDINGS in kept:  # padded to a multiple that is fast
        kept[EMBEDDINGS] = kept[EMBEDDINGS][: config.vocab_size]
    fill(encoder, list(encoder.state_dict()), kept, checkpoint)
    return encoder.eval()


@torch.no_grad()
def begin_from(model: BaseModel, checkpoint: Path) -> None:
    """Give a model that predicts tokens the weights of a checkpoint, in the model's precision: the layers, the
    embeddings and the head of this project's models and of BertForMaskedLM and BertForPreTraining, as `load_encoder`
    reads them.

    The pooler and the head for pairs of sentences are left out, as are rows of pieces beyond the vocabulary.
    ConfigError names what else is left over, what is missing, and what has another shape.
    """
    _, kept = read_checkpoint(checkpoint, PICKLED)
    kept = _named_today(kept, checkpoint)
    own = {_name_today(name): values for name, values in model.state_dict().items()}
    pieces = len(own[EMBEDDINGS])
    kept = {name: values[:pieces] if name in OF_PIECES else values for name, values in kept.items()}
    for second, name in SECOND_NAMES.items():
        if second in kept and not torch.equal(values := kept.pop(second), kept.setdefault(name, values)):
            raise ConfigError(
                f"{checkpoint}: {second} is not {name}, to which a model here ties it; give another checkpoint"
            )
    kept = {name: values for name, values in kept.items() if not name.startswith(UNUSED)}
    kept.pop("embeddings.position_ids", None)  # numbers of places, in files of old versions
    wanted = own.keys() - SECOND_NAMES.keys()
    operator = model.config.attention
    for names, fact, remedy in (
        (wanted - kept.keys(), "missing", "with BERT's head for masked tokens and the parameters of the operator"),
        (kept.keys() - wanted, f"left over: no parameter of a model with the operator '{operator}'", "without it"),
    ):
        if names:
            count = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise ConfigError(f"{checkpoint}: {min(names)}{count}: {fact}; give a checkpoint {remedy}")
    for name in sorted(wanted):
        if kept[name].shape != own[name].shape:
            expected = shown(own[name])
            raise ConfigError(
                f"{checkpoint}: {name} has the shape {shown(kept[name])}, expected {expected}; give another checkpoint"
            )
        own[name].copy_(kept[name])  # which shares its memory with the model


def _named_today(weights: Tensors, checkpoint: Path) -> Tensors:
    """Weights by their names today; IntegrityError where two are one weight, as those of a student and a teacher."""
    named: dict[str, str] = {}
    for name in weights:
        if (other := named.setdefault(_name_today(name), name)) != name:
            raise IntegrityError(
                f"{weight_files(checkpoint, PICKLED)[0]}: {other} and {name} are the same weight of a BERT; save one "
                "model alone"
            )
    return {today: weights[name] for today, name in named.items()}


def _name_today(name: str) -> str:
    """The name of an encoder's weight, by that in a file."""
    for before, today in OLD_NAMES.items():
        name = name.replace(before, today)
    return re.sub(WRAPPERS, "", name.replace("_orig_mod.", ""))
