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
from symbert.errors import ConfigError, IntegrityError, MissingInputError, line_of
from symbert.files import publish, read_json, reading, sha256_of, verify_sha256
from symbert.model.bert import BaseModel, Bert, Classifier, SpanModel
from symbert.model.configuration import DEFAULTS, Configuration, read_configuration
from symbert.paths import CHECKSUM, extracted_again

Tensors = dict[str, Tensor]

PICKLED = "pytorch_model.bin"  # the weights of a BERT from before 2023
POINTER = b"version https://git-lfs"  # how one begins
EMBEDDINGS = "embeddings.word_embeddings.weight"
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}  # of the first BERTs
WRAPPERS = r"^((module|model|bert)\.)+"  # of processes that trained together (DDP), of trainers, and BERT's own


def weights_of(model: nn.Module) -> Tensors:
    """The weights of a model by name, tied ones once."""
    tied = set(getattr(model, "all_tied_weights_keys", None) or model._tied_weights_keys or ())  # first Hugging Face's
    return {name: tensor for name, tensor in model.state_dict().items() if name not in tied}


def read_checkpoint(directory: Path, *others: str) -> tuple[Configuration, Tensors]:
    """The configuration and the weights of a directory with config.json and model.safetensors; where that is missing,
    a file of one of the `others` names.

    MissingInputError without one of its files, ConfigError when its operator was edited since, and IntegrityError for a
    damaged file.
    """
    config, remedy = read_configuration(directory), extracted_again(directory)
    file = weights_file(directory, *others)
    if not file.is_file():
        if parts := sorted(each.name for each in directory.glob("*.index.json")):
            raise MissingInputError(
                f"{directory / parts[0]}: the weights lie in several files; join them with transformers: "
                "BertModel.from_pretrained(…).save_pretrained(…, max_shard_size='100GB')"
            )
        raise MissingInputError(f"{file}: file not found; {remedy}")
    if (directory / CHECKSUM).is_file():
        extracted_sha256(directory)
    return config, read_weights(file, remedy)


def read_weights(file: Path, remedy: str) -> Tensors:
    """The weights in a safetensors file or, of another name, in one of torch.save, in which nothing else is made, or
    run; MissingInputError or IntegrityError name the file."""
    with reading(file, absent=remedy), open(file, "rb") as content:
        if content.read(len(POINTER)) == POINTER:
            raise IntegrityError(f"{file}: a pointer of Git LFS, not the weights; get them: git lfs pull")
    try:
        return load_file(file) if file.suffix == ".safetensors" else _load_pickled(file)
    except (OSError, MemoryError, IntegrityError):
        raise
    except Exception as error:  # a damaged pickle raises any
        said = str(error).partition("\n")[0] or type(error).__name__
        raise IntegrityError(f"{file}: damaged ({said}); {remedy}") from None


def weights_file(directory: Path, *others: str) -> Path:
    """The file of weights in a checkpoint: the first that is there of these names."""
    files = [directory / name for name in ("model.safetensors", *others)]
    return next(filter(Path.is_file, files), files[0])


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
    weights, noted = checkpoint / "model.safetensors", checkpoint / CHECKSUM
    if not noted.is_file():
        return sha256_of(weights)
    digest = noted.read_text(errors="replace").strip()
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise IntegrityError(f"{noted}: no SHA-256; {extracted_again(checkpoint)}")
    return verify_sha256(weights, digest, extracted_again(checkpoint))


def fill(model: nn.Module, names: Iterable[str], weights: Tensors, directory: Path) -> None:
    """Give a model the weights of these names; IntegrityError where the checkpoint lacks one or has another shape."""
    file, expected = weights_file(directory, PICKLED), model.state_dict()
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
    kept = {_name_today(name): values.float() for name, values in kept.items()}
    if EMBEDDINGS in kept:  # padded to a multiple that is fast
        kept[EMBEDDINGS] = kept[EMBEDDINGS][: config.vocab_size]
    fill(encoder, list(encoder.state_dict()), kept, checkpoint)
    return encoder.eval()


def _name_today(name: str) -> str:
    """The name of an encoder's weight, by that in a file."""
    for before, today in OLD_NAMES.items():
        name = name.replace(before, today)
    return re.sub(WRAPPERS, "", name.replace("_orig_mod.", ""))
