"""Any of our operators as plain BERT, exactly: its query, key and value are affine in the hidden states.

An affine map f is known from what it makes of zero and of the unit vectors: bias = f(0), weight = f(I) − f(0).
So no operator has to say how it folds; for `pairwise`, for example, BERT's query becomes `query · S` per head.
"""

import copy

import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    PreTrainedModel,
)
from transformers.models.bert.modeling_bert import BertSelfAttention

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
from symbert.model.network import Model

BERT: dict[type[SymBertPreTrainedModel], type[PreTrainedModel]] = {
    SymBertModel: BertModel,
    SymBertForMaskedLM: BertForMaskedLM,
    SymBertForSequenceClassification: BertForSequenceClassification,
    SymBertForQuestionAnswering: BertForQuestionAnswering,
}
OURS = ("attention", "operator")  # keys of our configuration
NOT_BERTS = (*OURS, "model_type", "architectures", "transformers_version")
TOLERANCE = 1e-9  # of the attention's output in float64, relative to its largest value


@torch.no_grad()
def fold(model: SymBertPreTrainedModel | Model) -> PreTrainedModel:
    """Hugging Face's BERT that computes what `model` computes, in evaluation mode.

    ConfigError names an operator that no BERT equals, such as one that is not affine in the hidden states;
    IntegrityError a weight that is not finite.
    """
    if isinstance(model, Model):
        model = in_hugging_face(model)
    refuse_non_finite(model, "the model")
    state = {name: values for name, values in model.state_dict().items() if ".attention.self." not in name}
    for name, module in model.named_modules():
        if isinstance(module, SelfAttention):
            state.update({f"{name}.{key}": values for key, values in projections_of(module).items()})
    folded = BERT[type(model)](plain_config(model.config)).to(model.device, model.dtype)
    folded.load_state_dict(state)
    refuse_non_finite(folded, f"the plain BERT in {model.dtype}")
    return folded.eval()


def refuse_non_finite(model: PreTrainedModel, owner: str) -> None:
    """IntegrityError that names the first weight of `owner` with a NaN or an infinity.

    Comparing outputs would not find them: scaled dot-product attention may return zeros for logits that are NaN.
    """
    for name, values in model.state_dict().items():
        if not values.isfinite().all():
            raise IntegrityError(
                f"{owner}: '{name}' is not finite, expected numbers; give an earlier step or a wider dtype"
            )


def plain_config(config: BertConfig) -> BertConfig:
    """BERT's configuration of the same shape; our operator's name is kept among the facts of the run only."""
    values = config.to_dict()
    named = {key: values[key] for key in OURS if key in values}
    facts = {**named, **(config.pretraining or {})}
    berts = {key: value for key, value in values.items() if key not in NOT_BERTS}
    return BertConfig(**{**berts, "pretraining": facts})


def projections_of(module: SelfAttention) -> dict[str, Tensor]:
    """BERT's query, key and value of one layer, weights and biases in float64; checked on random hidden states."""
    module = copy.deepcopy(module).double().eval()
    width, device = module.config.hidden_size, next(module.parameters()).device
    zero = torch.zeros(1, 1, width, dtype=torch.float64, device=device)
    units = torch.eye(width, dtype=torch.float64, device=device)[None]
    projections = {}
    for name, bias, rows in zip(("query", "key", "value"), _flat(module, zero), _flat(module, units), strict=True):
        projections[f"{name}.weight"] = (rows - bias).T.contiguous()
        projections[f"{name}.bias"] = bias[0]
    _check(module, projections)
    return projections


def _flat(module: SelfAttention, hidden: Tensor) -> list[Tensor]:
    """Query, key and value of one sequence `1 token hidden`, with the heads side by side: `token hidden`."""
    return [side.transpose(1, 2).flatten(2)[0] for side in module.query_key_value(hidden)]


def _check(module: SelfAttention, projections: dict[str, Tensor]) -> None:
    device = projections["query.bias"].device
    bert = BertSelfAttention(module.config).to(device, torch.float64).eval()
    bert.load_state_dict(projections)
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(2, 7, module.config.hidden_size, dtype=torch.float64, generator=generator).to(device)
    expected, found = module(hidden)[0], bert(hidden)[0]
    if not (expected - found).abs().max() <= TOLERANCE * expected.abs().max():
        raise ConfigError(
            f"attention '{module.config.attention}' has no equal BERT, expected query, key and value that are affine "
            "in the hidden states, token by token; load the checkpoint after `import symbert.model` instead"
        )
