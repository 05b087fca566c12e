"""A checkpoint as a directory that stock transformers loads, without this project."""

import json
from pathlib import Path

import torch
from transformers import PreTrainedModel
from transformers.utils import logging

from symbert.card import model_card
from symbert.errors import UsageError
from symbert.files import copy_file, extracted_again, write_json, write_text
from symbert.hosts import host_named_in
from symbert.model.bert import (
    SymBertConfig,
    SymBertForMaskedLM,
    SymBertForQuestionAnswering,
    SymBertForSequenceClassification,
    SymBertPreTrainedModel,
)
from symbert.model.configuration import Configuration
from symbert.model.fold import fold, refuse_non_finite
from symbert.model.loading import building, load_model, refuse_wrong
from symbert.model.network import HostModel
from symbert.model.weights import read_checkpoint, reading_weights, write_weights

FORMS = ("bert",)
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
HEADS = {"SequenceClassification": SymBertForSequenceClassification, "QuestionAnswering": SymBertForQuestionAnswering}


def export(checkpoint: Path, to: str, output: Path) -> None:
    """Write the model of one of our Hugging Face directories, whatever its operator and host, into `output`.

    `to` is the form with equal logits: bert, a plain BERT, of a decoder `BertLMHeadModel` and of an encoder-decoder an
    `EncoderDecoderModel` of two BERTs. Tokenizer files are copied and a model card is written; config.json comes last,
    so that a directory that has one is complete. `output` must be new or empty: what an earlier export left there would
    be taken for a part of this one.
    """
    if to not in FORMS:
        raise UsageError(f"--to is {to}, expected {' or '.join(FORMS)}")
    refuse_used(output, checkpoint)
    model = load_checkpoint(checkpoint)
    folded = fold(model)
    copy_tokenizer(checkpoint, output)
    write_model(folded, output)


def refuse_used(output: Path, checkpoint: Path) -> None:
    """UsageError for an output that is no new or empty directory."""
    if checkpoint.resolve() == output.resolve():
        raise UsageError(f"--output is {output}, the checkpoint itself; name another directory")
    for place in (output, *output.parents):
        if (place.is_symlink() or place.exists()) and not place.is_dir():
            raise UsageError(f"--output is {output}: {place} is no directory; name another")
    if output.is_dir() and (found := sorted(path.name for path in output.iterdir())):
        raise UsageError(f"--output is {output}, which has {found[0]} already; name another directory or empty it")


def copy_tokenizer(checkpoint: Path, output: Path) -> None:
    """The files of a checkpoint's tokenizer."""
    for name in TOKENIZER_FILES:
        if (checkpoint / name).is_file():
            copy_file(checkpoint / name, output / name)


def load_checkpoint(checkpoint: Path) -> SymBertPreTrainedModel | HostModel:
    """The model of a directory, with the head that its config.json names; of the encoder in Hugging Face's class.

    MissingInputError, ConfigError or IntegrityError name the file; a weight that it lacks is never drawn at random,
    and one that is not finite is refused.
    """
    read, _ = read_checkpoint(checkpoint)
    model = load_model(checkpoint) if host_named_in(read.architectures) else _load_encoder(checkpoint, read)
    refuse_non_finite(model, str(checkpoint / "model.safetensors"))
    return model


def _load_encoder(checkpoint: Path, read: Configuration) -> SymBertPreTrainedModel:
    """Hugging Face's loading, on which no key of the file may differ from the model."""
    kind = next((kind for head, kind in HEADS.items() if head in str(read.architectures)), SymBertForMaskedLM)
    with building(checkpoint):
        config = SymBertConfig.from_dict(vars(read))
        with torch.device("meta"):
            kind(config)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    weights = checkpoint / "model.safetensors"
    with reading_weights(weights, extracted_again(weights)):
        model, report = kind.from_pretrained(
            checkpoint,
            config=config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # so that they are reported, and refused below
            local_files_only=True,
        )
    differing = ("missing_keys", "mismatched_keys", "unexpected_keys")
    refuse_wrong(weights, [str(key) for name in differing for key in sorted(report[name])])
    return model


def write_model(model: PreTrainedModel, output: Path) -> None:
    """Publish model.safetensors, README.md and config.json, each whole or not at all."""
    model.config.architectures = [type(model).__name__]
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    config = json.loads(model.config.to_json_string())
    write_weights(model, output / "model.safetensors")
    write_text(output / "README.md", model_card(config))
    write_json(output / "config.json", config)
