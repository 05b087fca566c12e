"""A checkpoint as a directory that stock transformers loads, without this project."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import PreTrainedModel
from transformers.utils import logging

from symbert.card import model_card
from symbert.errors import CannotCreateError, ConfigError, IntegrityError, MissingInputError, UsageError
from symbert.files import copy_file, write_json, write_text
from symbert.model.bert import (
    SymBertConfig,
    SymBertForMaskedLM,
    SymBertForQuestionAnswering,
    SymBertForSequenceClassification,
    SymBertPreTrainedModel,
)
from symbert.model.configuration import read_configuration
from symbert.model.fold import fold, refuse_non_finite
from symbert.model.weights import reading_weights, write_weights

FORMS: dict[str, Callable[[SymBertPreTrainedModel], PreTrainedModel]] = {"bert": fold}
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
HEADS = {"SequenceClassification": SymBertForSequenceClassification, "QuestionAnswering": SymBertForQuestionAnswering}


def export(checkpoint: Path, to: str, output: Path) -> None:
    """Write the model of one of our Hugging Face directories, whatever its operator, into `output`.

    `to` is the form: bert, a plain BERT with equal logits. Tokenizer files are copied and a model card is written;
    config.json comes last, so that a directory that has one is complete. `output` must be new or empty: what an
    earlier export left there would be taken for a part of this one.
    """
    if to not in FORMS:
        raise UsageError(f"--to is {to}, expected {' or '.join(FORMS)}")
    refuse_used(output, checkpoint)
    model = FORMS[to](load_checkpoint(checkpoint))
    copy_tokenizer(checkpoint, output)
    write_model(model, output)


def refuse_used(output: Path, checkpoint: Path) -> None:
    """UsageError or CannotCreateError for an output that is no new or empty directory."""
    if checkpoint.resolve() == output.resolve():
        raise UsageError(f"--output is {output}, the checkpoint itself; name another directory")
    for place in (output, *output.parents):
        if (place.is_symlink() or place.exists()) and not place.is_dir():
            raise CannotCreateError(f"--output is {output}: {place} is no directory; name another")
    if output.is_dir() and (found := sorted(path.name for path in output.iterdir())):
        raise UsageError(f"--output is {output}, which has {found[0]} already; name another directory or empty it")


def copy_tokenizer(checkpoint: Path, output: Path) -> None:
    """The files of a checkpoint's tokenizer."""
    for name in TOKENIZER_FILES:
        if (checkpoint / name).is_file():
            copy_file(checkpoint / name, output / name)


def load_checkpoint(checkpoint: Path) -> SymBertPreTrainedModel:
    """The model of a directory, with the head that its config.json names.

    MissingInputError, ConfigError or IntegrityError name the file; a weight that it lacks is never drawn at random,
    and one that is not finite is refused.
    """
    for name in ("config.json", "model.safetensors"):
        if not (checkpoint / name).is_file():
            raise MissingInputError(f"{checkpoint / name}: file not found; run extract_checkpoint")
    config, kind = _buildable(checkpoint)
    model = _load(checkpoint, config, kind)
    refuse_non_finite(model, str(checkpoint / "model.safetensors"))
    return model


def _buildable(checkpoint: Path) -> tuple[SymBertConfig, type[SymBertPreTrainedModel]]:
    """The configuration of a model that can be built, and its class; ConfigError names the file."""
    path, read = checkpoint / "config.json", read_configuration(checkpoint)
    kind = next((kind for head, kind in HEADS.items() if head in str(read.architectures)), SymBertForMaskedLM)
    try:
        config = SymBertConfig.from_dict(vars(read))
        with torch.device("meta"):
            kind(config)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except Exception as error:  # transformers and torch raise what they like, of a dozen types
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ConfigError(f"{path}: no model can be built ({said}); extract the step again") from error
    return config, kind


def _load(checkpoint: Path, config: SymBertConfig, kind: type[SymBertPreTrainedModel]) -> SymBertPreTrainedModel:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    weights = checkpoint / "model.safetensors"
    with reading_weights(weights, "extract the checkpoint again"):
        model, report = kind.from_pretrained(
            checkpoint,
            config=config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # so that they are reported, and refused below
            local_files_only=True,
        )
    wrong = [
        str(key) for kind in ("missing_keys", "mismatched_keys", "unexpected_keys") for key in sorted(report[kind])
    ]
    if wrong:
        raise IntegrityError(
            f"{weights}: {len(wrong)} weights are missing, unknown or of another shape than config.json says, "
            f"first {wrong[0]}; extract the checkpoint again"
        )
    return model


def write_model(model: PreTrainedModel, output: Path) -> None:
    """Publish model.safetensors, README.md and config.json, each whole or not at all."""
    model.config.architectures = [type(model).__name__]
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    config = json.loads(model.config.to_json_string())
    write_weights(model, output / "model.safetensors")
    write_text(output / "README.md", model_card(config))
    write_json(output / "config.json", config)
