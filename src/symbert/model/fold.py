"""Any of our models as Hugging Face's own, exactly: query, key and value are affine in the hidden states.

An affine map f is known from what it makes of zero and of the unit vectors: bias = f(0), weight = f(I) − f(0).
So no operator has to say how it folds; for `pairwise`, for example, BERT's query becomes `query · S` per head.
"""

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertLMHeadModel,
    BertModel,
    PreTrainedModel,
)
from transformers import EncoderDecoderModel as PlainEncoderDecoderModel
from transformers.models.bert.modeling_bert import BertCrossAttention, BertSelfAttention

from symbert.errors import ConfigError, IntegrityError
from symbert.model.attention import SelfAttention
from symbert.model.bert import (
    SymBertForMaskedLM,
    SymBertForQuestionAnswering,
    SymBertForSequenceClassification,
    SymBertModel,
    SymBertPreTrainedModel,
    in_hugging_face,
)
from symbert.model.configuration import Configuration, refuse_rotary
from symbert.model.decoder import DecoderModel
from symbert.model.encoder_decoder import EncoderDecoderModel
from symbert.model.network import HostModel, Model
from symbert.model.sites import PLAIN, PLAIN_ACROSS, attend_across, attends_as

BERT: dict[type[SymBertPreTrainedModel | HostModel], type[PreTrainedModel]] = {
    SymBertModel: BertModel,
    SymBertForMaskedLM: BertForMaskedLM,
    SymBertForSequenceClassification: BertForSequenceClassification,
    SymBertForQuestionAnswering: BertForQuestionAnswering,
    DecoderModel: BertLMHeadModel,
}
OURS = ("attention", "operator")  # keys of our configuration
NOT_BERTS = (*OURS, "model_type", "architectures", "transformers_version")
POOLER = "encoder.pooler."
TOLERANCE = 1e-9  # of the attention's output in float64, relative to its largest value


@torch.no_grad()
def fold(model: SymBertPreTrainedModel | HostModel) -> PreTrainedModel:
    """Hugging Face's model that computes what `model` computes, in evaluation mode: of a BERT, a plain BERT.

    ConfigError names an operator that no BERT equals, such as one that is not affine in the hidden states;
    IntegrityError a weight that is not finite.
    """
    refuse_rotary(model.config, "Hugging Face's BERT")
    if isinstance(model, Model):
        model = in_hugging_face(model)
    refuse_non_finite(model, "the model")
    sites = {name: module for name, module in model.named_modules() if isinstance(module, SelfAttention)}
    own = tuple(f"{name}." for name in sites)
    state = {name: values for name, values in model.state_dict().items() if not name.startswith(own)}
    for name, module in sites.items():
        for key, values in projections_of(module, is_across=name.endswith(".crossattention.self")).items():
            state[f"{name}.{key}"] = values
    first = next(model.parameters())
    folded = _plain_model(model).to(first.device, first.dtype)
    if isinstance(model, EncoderDecoderModel):  # Hugging Face's encoder always has a pooler, which nothing reads
        state |= {name: torch.zeros_like(values) for name, values in folded.state_dict().items() if POOLER in name}
    folded.load_state_dict(state)
    refuse_non_finite(folded, f"the plain BERT in {first.dtype}")
    return folded.eval()


def _plain_model(model: SymBertPreTrainedModel | HostModel) -> PreTrainedModel:
    """Hugging Face's model of the same shape."""
    if isinstance(model, EncoderDecoderModel):
        encoder = BertModel(plain_config(model.encoder.config))
        plain = PlainEncoderDecoderModel(encoder=encoder, decoder=_plain_model(model.decoder))
        plain.config.decoder_start_token_id = model.config.bos_token_id
        plain.config.pad_token_id = model.config.pad_token_id
        plain.config.pretraining = _facts(model.config)
        return plain
    return BERT[type(model)](plain_config(model.config))


def refuse_non_finite(model: PreTrainedModel, owner: str) -> None:
    """IntegrityError that names the first weight of `owner` with a NaN or an infinity.

    Comparing outputs would not find them: scaled dot-product attention may return zeros for logits that are NaN.
    """
    for name, values in model.state_dict().items():
        if not values.isfinite().all():
            raise IntegrityError(
                f"{owner}: '{name}' is not finite, expected numbers; give an earlier step or a wider dtype"
            )


def plain_config(config: BertConfig | Configuration) -> BertConfig:
    """BERT's configuration of the same shape; our operator's name is kept among the facts of the run only."""
    berts = {key: value for key, value in config.to_dict().items() if key not in NOT_BERTS}
    return BertConfig(**{**berts, "pretraining": _facts(config)})


def _facts(config: BertConfig | Configuration) -> dict[str, Any]:
    """The operator and the facts of its run."""
    values = config.to_dict()
    return {**{key: values[key] for key in OURS if key in values}, **(config.pretraining or {})}


def projections_of(module: SelfAttention, is_across: bool = False) -> dict[str, Tensor]:
    """BERT's query, key and value of one site, weights and biases in float64; checked on random hidden states, of two
    sequences where the site is one of cross-attention.

    ConfigError for an operator with a `forward` of its own: no number of tokens shows that it attends as BERT.
    """
    if not attends_as(module, PLAIN_ACROSS if is_across else PLAIN):
        raise ConfigError(
            f"attention '{module.config.attention}' has no equal BERT, as it has a forward of its own; load the "
            "checkpoint as its model card says instead"
        )
    module = copy.deepcopy(module).double().eval()
    module.is_causal = False  # so that the check compares what each token makes of all others
    width, device = module.config.hidden_size, next((each.device for each in module.parameters()), None)
    zero = torch.zeros(1, 1, width, dtype=torch.float64, device=device)
    units = torch.eye(width, dtype=torch.float64, device=device)[None]
    projections = {}
    for name, bias, rows in zip(("query", "key", "value"), _flat(module, zero), _flat(module, units), strict=True):
        projections[f"{name}.weight"] = (rows - bias).T.contiguous()
        projections[f"{name}.bias"] = bias[0]
    _check(module, projections, is_across)
    return projections


def _flat(module: SelfAttention, hidden: Tensor) -> list[Tensor]:
    """Query, key and value of one sequence `1 token hidden`, with the heads side by side: `token hidden`."""
    return [side.transpose(1, 2).flatten(2)[0] for side in module.query_key_value(hidden)]


def _check(module: SelfAttention, projections: dict[str, Tensor], is_across: bool) -> None:
    device = projections["query.bias"].device
    bert = (BertCrossAttention if is_across else BertSelfAttention)(module.config).to(device, torch.float64).eval()
    bert.load_state_dict(projections)
    generator, width = torch.Generator().manual_seed(0), module.config.hidden_size
    for shape in ((2, 7, width), (1, module.config.max_position_embeddings, width)):
        hidden, context = (torch.randn(shape, dtype=torch.float64, generator=generator).to(device) for _ in range(2))
        expected = attend_across(module, hidden, context, None) if is_across else module(hidden)[0]
        found = bert(hidden, context)[0] if is_across else bert(hidden)[0]
        if not (expected - found).abs().max() <= TOLERANCE * expected.abs().max():
            raise ConfigError(
                f"attention '{module.config.attention}' has no equal BERT, expected query, key and value that are "
                "affine in the hidden states, token by token; load the checkpoint as its model card says instead"
            )
