"""Hugging Face's BERT with its self-attention replaced, known to the Auto classes as model type `symbert`.

After `import symbert.model`, `AutoModelForMaskedLM.from_pretrained(directory)` and the other Auto classes below
load our checkpoints. No `auto_map` is written: it would ask users to trust remote code.
"""

import importlib
import inspect
import zlib
from pathlib import Path

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    BertPreTrainedModel,
)
from transformers.models.bert.modeling_bert import BertLayer

from symbert.draws import mix
from symbert.errors import ConfigError
from symbert.model.attention import CopiedLinear, SelfAttention, WideLinear
from symbert.model.start import set_width
from symbert.operators import operator_code, operator_named, operator_of
from symbert.sizes import SIZES, VOCABULARY_SIZE


@strict
class SymBertConfig(BertConfig):
    """BERT's configuration, the name of the attention operator, and the facts of the run (for the model card)."""

    model_type = "symbert"
    attention: str = "original"
    pretraining: dict | None = None


class SymBertPreTrainedModel(BertPreTrainedModel):
    """What our models share: the configuration class and how operators are initialised and recorded.

    ConfigError for a decoder, whose tokens would not see later ones: no operator has a causal mask.
    """

    config_class = SymBertConfig
    _can_record_outputs = {"hidden_states": BertLayer, "attentions": SelfAttention}  # noqa: RUF012 (Hugging Face's)

    def __init__(self, config: SymBertConfig, **options: bool) -> None:
        for key in ("is_decoder", "add_cross_attention"):
            if getattr(config, key):
                raise ConfigError(
                    f"config: '{key}' is true, but every operator here attends in both directions; set it to false"
                )
        super().__init__(config, **options)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, SelfAttention | WideLinear | CopiedLinear):
            module.initialize()
        else:
            super()._init_weights(module)


def attention_of(config: BertConfig) -> SelfAttention:
    """The operator that `config.attention` names, made with its arguments.

    ConfigError for an unknown name, a class that cannot be imported or lacks `query_key_value`, and for arguments that
    it refuses.
    """
    operator = operator_of(vars(config))
    module, name = operator.path.split(":")
    try:
        made = getattr(importlib.import_module(module), name)
        if not issubclass(made, SelfAttention) or inspect.isabstract(made):
            raise TypeError("it has to inherit from symbert.model.attention.SelfAttention and define query_key_value")
        return made(config, **operator.arguments)
    except Exception as error:  # the user's own code raises what it likes
        if operator.is_built_in:
            raise
        given = ", ".join(f"{key}={value!r}" for key, value in operator.arguments.items())
        raise ConfigError(
            f"attention '{operator.name}': {operator.path}({given}) cannot be made ({type(error).__name__}: "
            f"{' '.join(str(error).split())}); correct the class or its arguments"
        ) from error


class SymBertModel(SymBertPreTrainedModel, BertModel):
    """The encoder; each layer attends with the configured operator."""

    def __init__(self, config: SymBertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config, add_pooling_layer=add_pooling_layer)
        for layer in self.encoder.layer:
            layer.attention.self = attention_of(config)
        self.post_init()


class SymBertForMaskedLM(SymBertPreTrainedModel, BertForMaskedLM):
    """The encoder with BERT's masked-token head, its decoder tied to the embeddings."""

    def __init__(self, config: SymBertConfig) -> None:
        super().__init__(config)
        self.bert = SymBertModel(config, add_pooling_layer=False)
        self.post_init()

    def masked_logits(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        """Logits `masked vocab` at the flat `positions` of `input_ids` (batch token) only.

        Equal to the dense head's rows, at 15 % of its cost. Nothing is padded in pre-training, so no mask is passed.
        """
        hidden = self.bert(input_ids).last_hidden_state
        return self.cls(hidden.flatten(0, 1)[positions])


class SymBertForSequenceClassification(SymBertPreTrainedModel, BertForSequenceClassification):
    """The encoder with pooler and classifier, for GLUE."""

    def __init__(self, config: SymBertConfig) -> None:
        super().__init__(config)
        self.bert = SymBertModel(config)
        self.post_init()


AutoConfig.register("symbert", SymBertConfig, exist_ok=True)
AutoModel.register(SymBertConfig, SymBertModel, exist_ok=True)
AutoModelForMaskedLM.register(SymBertConfig, SymBertForMaskedLM, exist_ok=True)
AutoModelForSequenceClassification.register(SymBertConfig, SymBertForSequenceClassification, exist_ok=True)


def build_config(
    size: str, attention: str, vocabulary_size: int = VOCABULARY_SIZE, dropout: float = 0.1
) -> SymBertConfig:
    """The configuration of a named size and operator; `dropout` holds everywhere, attention included.

    An operator of the user's own stands there with its class and arguments, so that its checkpoints can be loaded.
    """
    return SymBertConfig(
        **vars(SIZES[size]),
        attention=attention,
        **operator_named(attention).own_definition,
        vocab_size=vocabulary_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )


def refuse_other_code(config: SymBertConfig, checkpoint: Path) -> None:
    """ConfigError when the operator's code is not that which trained a checkpoint: its weights would mean something
    else. A checkpoint without a note of its code is accepted."""
    trained = ((config.pretraining or {}).get("settings") or {}).get("operator_code")
    if trained is not None and trained != (today := operator_code(config.attention)):
        raise ConfigError(
            f"{checkpoint / 'config.json'}: trained by other code of '{config.attention}' (operator_code: {trained} → "
            f"{today}); put that code back, or train the operator anew"
        )


@torch.no_grad()
def initialize(model: SymBertPreTrainedModel, seed: int) -> None:
    """Draw every parameter anew as a function of (seed, module name) alone, then give each layer its operator's start.

    Two operators under one seed therefore start from equal embeddings, values and feed-forward layers, and
    adding a module changes no other: a paired comparison.
    """
    drawn: set[nn.Parameter] = set()
    for name, module in model.named_modules():
        parameters = set(module.parameters(recurse=False))
        if parameters - drawn:  # the decoder's are tied, and must keep the embeddings' zero row for padding
            for parameter in parameters:
                parameter._is_hf_initialized = False
            torch.manual_seed(int(mix(seed, zlib.crc32(name.encode())) >> 1))
            model._init_weights(module)
            drawn |= parameters
    if (operator := operator_named(model.config.attention)).start is not None:
        for module in model.modules():
            if isinstance(module, SelfAttention):
                set_width(module, operator)
