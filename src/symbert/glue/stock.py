"""Models from elsewhere, of transformers' classes: loaded without any code of theirs, fine-tuned on padded rows.

A class has the head that its family has: BERT's tanh pooler, RoBERTa's dense layer, ModernBERT's mean or [CLS]. What a
checkpoint has of it is taken; the rest is new, and so is the layer that gives the logits, whatever was trained before.
"""

import inspect
import math
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_QUESTION_ANSWERING_MAPPING,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.utils import logging

from symbert.errors import ConfigError, IntegrityError, line_of
from symbert.foreign import ForeignModel
from symbert.glue import graphs
from symbert.glue.graphs import PaddedBatch
from symbert.glue.tasks import Task
from symbert.model.bert import Classifier, SpanModel
from symbert.model.configuration import DEFAULTS, Configuration
from symbert.model.loading import Tensors, read_weights
from symbert.pretrain.graphs import Recorder

WRAPPERS = {r"^((module|_orig_mod)\.)+": ""}  # of processes that trained together, and of compilers
REMEDY = "get it again, or give another model"


def read_config(model: ForeignModel) -> PreTrainedConfig:
    """The configuration of a model, of transformers' class for its family; ConfigError where that takes it not."""
    file = model.checkpoint / "config.json"
    try:
        config = CONFIG_MAPPING[model.model_type].from_pretrained(file.parent, local_files_only=True)
    except Exception as error:  # the classes check their keys each in its way
        raise ConfigError(f"{file}: no configuration of {model.model_type} ({line_of(error)}); {REMEDY}") from error
    config.return_dict = True  # outputs by name, whatever config.json wants
    return config


def class_of(config: PreTrainedConfig, task: Task) -> type[PreTrainedModel]:
    """The family's class for a task; ConfigError where transformers has none."""
    mapping, name = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING, "SequenceClassification"
    if task.head == "spans":
        mapping, name = MODEL_FOR_QUESTION_ANSWERING_MAPPING, "QuestionAnswering"
    if type(config) not in mapping:
        raise ConfigError(
            f"config: 'models': transformers has no model of {config.model_type} for {name}, which {task.name} needs; "
            "leave the task or the model out"
        )
    return mapping[type(config)]


def dropouts_of(config: PreTrainedConfig) -> tuple[str, ...]:
    """The keys of a configuration that hold dropout, of any layer; one that is true or false is a switch of another
    kind, as ESM's `token_dropout`."""
    return tuple(key for key, value in config.to_dict().items() if "dropout" in key and not isinstance(value, bool))


def has_types(config: PreTrainedConfig) -> bool:
    """Whether a model has more than one type of tokens; that of a tokenizer of two may have one alone."""
    return getattr(config, "type_vocab_size", 2) > 1


def weights_of(model: ForeignModel) -> Tensors:
    """The weights in the files of a model; IntegrityError names a file that is damaged."""
    weights: Tensors = {}
    for part in model.weights.values():
        weights |= read_weights(Path(part.path), REMEDY)
    return weights


def load(
    model: ForeignModel, config: PreTrainedConfig, task: Task, dropout: float, weights: Tensors | None = None
) -> PreTrainedModel:
    """The encoder of a model under the head of a task, in float32; `dropout` holds everywhere; `weights` is what
    `weights_of` gave before, of which copies are taken.

    Its `new_layers`, of which the checkpoint has no weights, and the one that gives the logits, are to be drawn.
    Weights of other heads are left. IntegrityError names a file that is damaged, and weights of the encoder that are
    missing, of another shape, or left over.
    """
    own = type(config).from_dict(config.to_dict())
    own.num_labels = task.num_labels
    for key in dropouts_of(config):
        setattr(own, key, dropout)
    weights = {name: values.clone() for name, values in weights.items()} if weights else weights_of(model)
    loaded, missing, left = _read(model, class_of(config, task), own, weights)
    _refuse_other_encoder(loaded, missing, left, model.checkpoint)
    outer = [(name, layer) for name, layer in loaded.named_modules() if not _is_of_encoder(loaded, f"{name}.")]
    output = [layer for _, layer in outer if isinstance(layer, nn.Linear)][-1]
    loaded.new_layers = tuple(
        layer
        for name, layer in outer
        if layer is output or any(f"{name}.{own}" in missing for own, _ in layer.named_parameters(recurse=False))
    )
    return loaded


def _read(
    model: ForeignModel, kind: type[PreTrainedModel], config: PreTrainedConfig, weights: Tensors
) -> tuple[PreTrainedModel, set[str], set[str]]:
    """A model of a class with weights, in float32; those that are missing or of another shape, and
    those that are left over."""
    file = model.checkpoint / "config.json"
    logging.set_verbosity_error()  # what is missing is judged below
    logging.disable_progress_bar()
    try:
        loaded, info = kind.from_pretrained(
            None,
            config=config,
            state_dict=weights,
            dtype=torch.float32,
            attn_implementation="sdpa" if kind._supports_sdpa else "eager",  # whatever config.json names
            key_mapping=WRAPPERS,
            ignore_mismatched_sizes=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as error:  # of a dozen types
        raise IntegrityError(f"{file}: no {kind.__name__} can be made ({line_of(error)}); {REMEDY}") from error
    missing = {*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])}
    return loaded, missing, info["unexpected_keys"]


def _is_of_encoder(model: PreTrainedModel, name: str) -> bool:
    """Whether a weight is of the encoder, whose pooler is part of a head."""
    prefix = f"{model.base_model_prefix}."
    return name.startswith(prefix) and not name.startswith(f"{prefix}pooler.")


def _refuse_other_encoder(model: PreTrainedModel, missing: set[str], left: set[str], folder: Path) -> None:
    """IntegrityError where a checkpoint has not the encoder that its config.json tells of."""
    prefix = f"{model.base_model_prefix}."
    parts = {name for name, _ in model.base_model.named_children()} - {"pooler"}
    too_many = sorted(name for name in left if name.removeprefix(prefix).partition(".")[0] in parts)
    too_few = sorted(name for name in missing if _is_of_encoder(model, name))
    for said, names in {"are missing or of another shape": too_few, "have no place in it": too_many}.items():
        if names:
            raise IntegrityError(
                f"{folder}: {len(names)} weights of the encoder that config.json describes {said}, first {names[0]}; "
                f"{REMEDY}"
            )


class MaskedLanguage(nn.Module):
    """A model that predicts masked tokens, as `symbert.model.likelihood` asks it."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model, self.config = model, model.config

    def masked_logits(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        """Logits `position vocab` at positions, of all tokens end to end, of rows `row token`."""
        logits: Tensor = self.model(input_ids=input_ids).logits
        return logits.flatten(0, 1)[positions]


def load_masked(model: ForeignModel, config: PreTrainedConfig) -> MaskedLanguage:
    """A model under its family's head that predicts masked tokens. ConfigError where the checkpoint lacks that head, as
    one that was pre-trained otherwise; IntegrityError as `load`."""
    loaded, missing, left = _read(model, MODEL_FOR_MASKED_LM_MAPPING[type(config)], config, weights_of(model))
    _refuse_other_encoder(loaded, missing, left, model.checkpoint)
    if missing:
        raise ConfigError(
            f"{model.checkpoint}: no head that predicts masked tokens, by which pairs are judged; leave 'blimp' out of "
            f"'sweep.suites', or {model.name} out of 'models'"
        )
    return MaskedLanguage(loaded)


def is_our_bert(config: PreTrainedConfig) -> bool:
    """Whether this project's Bert computes what the family's class does."""
    if config.model_type != "bert" or not has_types(config):
        return False
    keys = ("hidden_act", "is_decoder", "is_encoder_decoder", "add_cross_attention")
    return all(getattr(config, key) == DEFAULTS[key] for key in keys)


def as_ours(stock: PreTrainedModel, kind: type[Classifier | SpanModel]) -> Classifier | SpanModel:
    """This project's model with the weights and the new layers of a BERT: parameters have the same names."""
    of_ours = DEFAULTS.keys() - {"model_type", "attention"}  # the operator stays `original`
    shape = {key: value for key, value in stock.config.to_dict().items() if key in of_ours}
    ours = kind(Configuration(**shape), stock.config.num_labels)
    ours.load_state_dict(stock.state_dict())
    names = {layer: name for name, layer in stock.named_modules()}
    ours.new_layers = tuple(ours.get_submodule(names[layer]) for layer in stock.new_layers)
    return ours


class Padded(graphs.Padded):
    """A model of transformers, which reads padded rows."""

    def __init__(self, model: PreTrainedModel, precision: str = "fp32", recorder: Recorder | None = None) -> None:
        super().__init__(model, precision, recorder)
        self.dropouts, self.pad_id = dropouts_of(model.config), model.config.pad_token_id or 0

    @property
    def embeddings(self) -> nn.Module:
        """Of pieces."""
        return self.model.get_input_embeddings()

    @cached_property
    def has_types(self) -> bool:
        """Whether the model tells two texts by types of their tokens."""
        return has_types(self.model.config) and "token_type_ids" in inspect.signature(self.model.forward).parameters

    def forward(self, batch: PaddedBatch) -> Tensor:
        """The logits of the model."""
        types = {"token_type_ids": batch.token_type_ids} if self.has_types else {}
        outputs = self.model(input_ids=batch.input_ids, attention_mask=batch.attended.long(), **types)
        if "logits" in outputs:
            return outputs.logits
        spans = torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)
        return spans.masked_fill(~batch.attended[..., None], -math.inf)
