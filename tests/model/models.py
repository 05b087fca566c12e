"""Small models with weights as different from their start as those of a trained model, and operators unlike ours."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import BertConfig

from symbert.model.attention import SelfAttention, SymmetricAttention
from symbert.model.bert import BaseModel, Classifier, MaskedModel, initialize
from symbert.model.configuration import Configuration, configuration_of
from symbert.operators import OPERATORS, Operator, operators_of
from symbert.sizes import SIZES, VOCABULARY_SIZE

HEADS = {"masked": MaskedModel, "classification": lambda config: Classifier(config, 3)}
IDS = torch.arange(24).reshape(2, 12)
MASK = torch.tensor([[1] * 12, [1] * 7 + [0] * 5])
NOT_FOLDING = ("symmetric-others", "qk-norm", "coupled", "exclusive")  # which no plain BERT equals
FOLDING = [name for name in OPERATORS if name not in NOT_FOLDING]


def trained(attention: str | Operator, head: str = "masked") -> BaseModel:
    """A tiny model whose every parameter is moved from its start, biases and diagonals too."""
    return widened(started("tiny", attention, head), 0.1)


def started(size: str, attention: str | Operator, head: str = "masked", layers: int = 2, seed: int = 1) -> BaseModel:
    """A model of a named width as it starts, in evaluation mode."""
    config = configured(size, attention, vocabulary_size=200)
    config.num_hidden_layers = layers
    model = HEADS[head](config)
    initialize(model, seed)
    return model.eval()


def configured(
    size: str, attention: str | Operator, vocabulary_size: int = VOCABULARY_SIZE, dropout: float = 0.1
) -> Configuration:
    """The configuration of a named size, and of a named or given operator."""
    operator = OPERATORS[attention] if isinstance(attention, str) else attention
    return configuration_of(SIZES[size], operator, vocabulary_size, dropout)


def small_config(attention: str = "original", **own: object) -> Configuration:
    """The size tiny with 100 pieces and no dropout."""
    config = configured("tiny", attention, vocabulary_size=100, dropout=0.0)
    vars(config).update(own)
    return config


def moved(model: BaseModel) -> BaseModel:
    """A model of any architecture whose every parameter is moved from its start, in float64 and in evaluation mode."""
    initialize(model, 1)
    return widened(model, 0.1).double().eval()


def stock(model: BaseModel, kind: type) -> torch.nn.Module:
    """Hugging Face's model of the class, of the same shape, with the same weights."""
    names = BertConfig().to_dict().keys() & vars(model.config).keys()
    theirs = kind(BertConfig(**{name: getattr(model.config, name) for name in names}))
    theirs.load_state_dict(model.state_dict())
    return theirs.to(next(model.parameters()).dtype).eval()


def widened(model: BaseModel, deviation: float) -> BaseModel:
    """The model with N(0, deviation²) added to every parameter."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data += deviation * torch.randn(parameter.shape, generator=generator)
    return model


def dense(model: BaseModel, ids: Tensor, mask: Tensor | None = None, types: Tensor | None = None) -> Tensor:
    """Logits of padded rows, as Hugging Face's classes compute them: of all tokens, or of a classifier's rows."""
    hidden = model.bert.encoder(model.bert.embeddings(ids, types), None if mask is None else mask.bool()[:, None, None])
    if isinstance(model, Classifier):
        return model.classifier(model.dropout(model.bert.pooler(hidden[:, 0])))
    return model.cls["predictions"](hidden)


def defined(name: str, **definition: object) -> Operator:
    """An operator of the user's own by its definition."""
    return operators_of({name: definition})[name]


def define(monkeypatch: pytest.MonkeyPatch, name: str, operator: type[SelfAttention]) -> None:
    """Make one of the classes below, or of a test, an operator for the time of a test."""
    monkeypatch.setitem(OPERATORS, name, Operator(name, f"{operator.__module__}:{operator.__name__}"))


class Averaged(SymmetricAttention):
    """Q(x - m) · Q(y - m), where m is the mean of the row."""

    def query_key_value(self, hidden):
        return super().query_key_value(hidden - hidden.mean(dim=1, keepdim=True))


class Doubled(SymmetricAttention):
    """As `symmetric`, and what it mixes is doubled: in `forward`, which rows laid end to end never call."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        mixed, weights = super().forward(hidden, attention_mask, **kwargs)
        return 2 * mixed, weights


class Rectified(SymmetricAttention):
    """A query that is not affine in the hidden states."""

    token_wise = True

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query.relu(), key, value


class Shifted(SymmetricAttention):
    """A query that looks at the token before: affine, but not token by token."""

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query.roll(1, dims=2), key, value


class Unscaled(SymmetricAttention):
    """Logits that are not divided by √head."""

    def __init__(self, config):
        super().__init__(config)
        self.scaling = 1.0


class Near(SymmetricAttention):
    """Tokens attend to the 16 nearest only, which shorter rows do not show."""

    token_wise = True

    def forward(self, hidden, attention_mask=None, **kwargs):
        places = torch.arange(hidden.shape[1])
        near = ((places[:, None] - places).abs() <= 16)[None, None]
        if attention_mask is not None:
            near = near & attention_mask
        return super().forward(hidden, near, **kwargs)


class Noisy(SymmetricAttention):
    """Noise in training, which evaluation never calls."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        noise = torch.randn_like(hidden) if self.training else 0.0
        return super().forward(hidden + noise, attention_mask, **kwargs)


class LateMixing(SymmetricAttention):
    """Q(x') · Q(y'), where x' has half of both neighbours in rows above 16 tokens."""

    def query_key_value(self, hidden):
        if hidden.shape[1] > 16:
            around = F.pad(hidden, (0, 0, 1, 1))
            hidden = hidden + 0.5 * (around[:, :-2] + around[:, 2:])
        return super().query_key_value(hidden)


MIXING = [Averaged, Doubled, LateMixing, Near, Noisy]  # not to be laid end to end
