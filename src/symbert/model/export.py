"""A checkpoint as a directory that stock transformers loads, without this project."""

import json
from pathlib import Path

from transformers import PreTrainedModel

from symbert.errors import UsageError
from symbert.files import copy_file, write_json, write_text
from symbert.model.bert import in_hugging_face
from symbert.model.card import model_card
from symbert.model.fold import fold, refuse_non_finite
from symbert.model.loading import building, load_model
from symbert.model.network import Model
from symbert.model.weights import write_weights

FORMS = ("bert",)
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


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
    model = load_model(checkpoint)
    refuse_non_finite(model, str(checkpoint / "model.safetensors"))
    if isinstance(model, Model):
        with building(checkpoint):
            model = in_hugging_face(model)
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


def write_model(model: PreTrainedModel, output: Path) -> None:
    """Publish model.safetensors, README.md and config.json, each whole or not at all."""
    model.config.architectures = [type(model).__name__]
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    config = json.loads(model.config.to_json_string())
    write_weights(model, output / "model.safetensors")
    write_text(output / "README.md", model_card(config))
    write_json(output / "config.json", config)
