"""A pre-trained encoder with a new pooler and classifier."""

from pathlib import Path

import torch
from transformers.utils import logging

from symbert.errors import IntegrityError, MissingInputError
from symbert.model.bert import SymBertForSequenceClassification, refuse_other_code

NEW_LAYERS = ("bert.pooler.", "classifier.")


def load_classifier(checkpoint: Path, num_labels: int, dropout: float) -> SymBertForSequenceClassification:
    """The encoder of a Hugging Face directory under a pooler and classifier that `reset_head` fills.

    `dropout` holds everywhere. Raises MissingInputError without a checkpoint, ConfigError when its operator was edited
    since, and IntegrityError when it lacks a weight of the encoder: Hugging Face would draw it at random and go on.
    """
    for name in ("config.json", "model.safetensors"):
        if not (checkpoint / name).is_file():
            raise MissingInputError(f"{checkpoint / name}: file not found; run extract_checkpoint")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model, report = SymBertForSequenceClassification.from_pretrained(
        checkpoint,
        num_labels=num_labels,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        classifier_dropout=dropout,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # so that they are reported, and refused below
        local_files_only=True,
    )
    refuse_other_code(model.config, checkpoint)
    lacking = sorted(name for name in report["missing_keys"] if not name.startswith(NEW_LAYERS))
    if lacking or report["mismatched_keys"]:
        wrong = lacking or sorted(str(key) for key in report["mismatched_keys"])
        raise IntegrityError(
            f"{checkpoint / 'model.safetensors'}: {len(wrong)} encoder weights are missing or of another shape, "
            f"first {wrong[0]}; extract the checkpoint again"
        )
    return model


@torch.no_grad()
def reset_head(model: torch.nn.Module, seed: int) -> None:
    """Draw pooler and classifier anew from BERT's N(0, 0.02), as a function of the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    for layer in (model.bert.pooler.dense, model.classifier):
        drawn = torch.randn(layer.weight.shape, generator=generator) * model.config.initializer_range
        layer.weight.copy_(drawn)
        layer.bias.zero_()
