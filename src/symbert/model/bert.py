"""Hugging Face's BERT with its self-attention replaced, known to the Auto classes as model type `symbert`.

After `import symbert.model.bert`, `AutoModelForMaskedLM.from_pretrained(directory)` and the other Auto classes below
load our checkpoints. No `auto_map` is written: it would ask users to trust remote code.

They load, fold and export. What trains is `symbert.model.network`, which computes the same.
"""

import torch
from huggingface_hub.dataclasses import strict
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    BertPreTrainedModel,
)
from transformers.models.bert.modeling_bert import BertLayer

from symbert.errors import ConfigError
from symbert.hosts import host_named_in
from symbert.model.attention import CopiedLinear, SelfAttention, WideLinear
from symbert.model.configuration import configuration_of, refuse_decoder, refuse_rotary
from symbert.model.network import Classifier, Model, SpanModel
from symbert.model.sites import attention_of
from symbert.sizes import VOCABULARY_SIZE


@strict
class SymBertConfig(BertConfig):
    """BERT's configuration, the name of the attention operator, and the facts of the run (for the model card)."""

    model_type = "symbert"
    attention: str = "original"
    pretraining: dict | None = None


class SymBertPreTrainedModel(BertPreTrainedModel):
    """What our models share: the configuration class and how operators are initialised and recorded."""

    config_class = SymBertConfig
    _can_record_outputs = {"hidden_states": BertLayer, "attentions": SelfAttention}  # noqa: RUF012 (Hugging Face's)

    def __init__(self, config: SymBertConfig, **options: bool) -> None:
        if host := host_named_in(config.architectures):
            raise ConfigError(
                f"config: 'architectures' names the model of a {host}, which the Auto classes do not know; load it "
                "with symbert.model.loading.load_model, or export it"
            )
        refuse_decoder(config)
        refuse_rotary(config, "Hugging Face's BERT")
        super().__init__(config, **options)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, SelfAttention | WideLinear | CopiedLinear):
            module.initialize()
        else:
            super()._init_weights(module)


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


class SymBertForSequenceClassification(SymBertPreTrainedModel, BertForSequenceClassification):
    """The encoder with pooler and classifier, for GLUE."""

    def __init__(self, config: SymBertConfig) -> None:
        super().__init__(config)
        self.bert = SymBertModel(config)
        self.post_init()


class SymBertForQuestionAnswering(SymBertPreTrainedModel, BertForQuestionAnswering):
    """The encoder with outputs for the first and the last token of an answer."""

    def __init__(self, config: SymBertConfig) -> None:
        super().__init__(config)
        self.bert = SymBertModel(config, add_pooling_layer=False)
        self.post_init()


AutoConfig.register("symbert", SymBertConfig, exist_ok=True)
AutoModel.register(SymBertConfig, SymBertModel, exist_ok=True)
AutoModelForMaskedLM.register(SymBertConfig, SymBertForMaskedLM, exist_ok=True)
AutoModelForSequenceClassification.register(SymBertConfig, SymBertForSequenceClassification, exist_ok=True)
AutoModelForQuestionAnswering.register(SymBertConfig, SymBertForQuestionAnswering, exist_ok=True)
HEADS = {Classifier: SymBertForSequenceClassification, SpanModel: SymBertForQuestionAnswering}  # MaskedLM for others


def build_config(
    size: str, attention: str, vocabulary_size: int = VOCABULARY_SIZE, dropout: float = 0.1
) -> SymBertConfig:
    """The configuration of a named size and operator, as Hugging Face's classes want it."""
    return SymBertConfig.from_dict(configuration_of(size, attention, vocabulary_size, dropout).to_dict())


def in_hugging_face(model: Model) -> SymBertPreTrainedModel:
    """The same model in Hugging Face's class."""
    config = SymBertConfig.from_dict(model.config.to_dict())
    if isinstance(model, Classifier):
        config.num_labels = model.classifier.out_features
    same = HEADS.get(type(model), SymBertForMaskedLM)(config)
    same.to(next(model.parameters())).load_state_dict(model.state_dict())
    return same.train(model.training)
