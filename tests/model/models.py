"""Small models with weights as different from their start as those of a trained model, and operators unlike ours."""

import pytest
import torch
from torch.nn import functional as F

from symbert.model.attention import SelfAttention, SymmetricAttention
from symbert.model.bert import initialize
from symbert.model.hf import (
    SymBertForMaskedLM,
    SymBertForSequenceClassification,
    SymBertPreTrainedModel,
    build_config,
)
from symbert.operators import OPERATORS, Operator

HEADS = {"masked": SymBertForMaskedLM, "classification": SymBertForSequenceClassification}
IDS = torch.arange(24).reshape(2, 12)
MASK = torch.tensor([[1] * 12, [1] * 7 + [0] * 5])
FOLDING = [name for name in OPERATORS if name != "symmetric-others"]  # which some plain BERT equals


def trained(attention: str, head: str = "masked") -> SymBertPreTrainedModel:
    """A tiny model whose every parameter is moved from its start, biases and diagonals too."""
    return widened(started("tiny", attention, head), 0.1)


def started(size: str, attention: str, head: str = "masked", layers: int = 2) -> SymBertPreTrainedModel:
    """A model of a named width as it starts, in evaluation mode."""
    config = build_config(size, attention, vocabulary_size=200)
    config.num_labels, config.num_hidden_layers = 3, layers
    model = HEADS[head](config)
    initialize(model, 1)
    return model.eval()


def define(monkeypatch: pytest.MonkeyPatch, name: str, operator: type[SelfAttention]) -> None:
    """Make one of the classes below an operator for the time of a test."""
    monkeypatch.setitem(OPERATORS, name, Operator(name, f"{define.__module__}:{operator.__name__}"))


def widened(model: SymBertPreTrainedModel, deviation: float) -> SymBertPreTrainedModel:
    """The model with N(0, deviation²) added to every parameter."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data += deviation * torch.randn(parameter.shape, generator=generator)
    return model


class Averaged(SymmetricAttention):
    """Q(x - m) · Q(y - m), where m is the mean of the row."""

    def query_key_value(self, hidden):
        return super().query_key_value(hidden - hidden.mean(dim=1, keepdim=True))


class Convolved(SymmetricAttention):
    """Q(x') · Q(y'), where x' has g of both neighbours; g starts at zero."""

    def __init__(self, config):
        super().__init__(config)
        self.gate = torch.nn.Parameter(torch.zeros(config.hidden_size))

    def query_key_value(self, hidden):
        around = F.pad(hidden, (0, 0, 1, 1))
        return super().query_key_value(hidden + self.gate * (around[:, :-2] + around[:, 2:]))


class Placed(SymmetricAttention):
    """Q(x) · Q(y), each divided by its place in the row."""

    def query_key_value(self, hidden):
        return super().query_key_value(hidden / torch.arange(1, hidden.shape[1] + 1)[:, None])


class Doubled(SymmetricAttention):
    """As `symmetric`, and what it mixes is doubled: in `forward`, which rows laid end to end never call."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        mixed, weights = super().forward(hidden, attention_mask, **kwargs)
        return 2 * mixed, weights


class Biased(SymmetricAttention):
    """(Q(x) + u) · Q(y): affine, token by token."""

    def __init__(self, config):
        super().__init__(config)
        self.shift = torch.nn.Parameter(torch.zeros(config.hidden_size))

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query + self.split_heads(self.shift.expand_as(hidden)), key, value


class Weightless(SelfAttention):
    """x · y, with values x: no weights."""

    def query_key_value(self, hidden):
        sides = self.split_heads(hidden)
        return sides, sides, sides


class Rectified(SymmetricAttention):
    """A query that is not affine in the hidden states."""

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


class Measured(SymmetricAttention):
    """Code that looks at a number, which no batched tensor has."""

    def query_key_value(self, hidden):
        return super().query_key_value(hidden / max(self.query.weight.abs().max().item(), 1.0))


class Near(SymmetricAttention):
    """Tokens attend to the 16 nearest only, which shorter rows do not show."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        places = torch.arange(hidden.shape[1])
        near = ((places[:, None] - places).abs() <= 16)[None, None]
        if attention_mask is not None:
            near = near & (attention_mask if attention_mask.dtype == torch.bool else attention_mask == 0)
        return super().forward(hidden, near, **kwargs)


class Noisy(SymmetricAttention):
    """Noise in training, which evaluation never calls."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        noise = torch.randn_like(hidden) if self.training else 0.0
        return super().forward(hidden + noise, attention_mask, **kwargs)


class Assigned(SymmetricAttention):
    """A forward that its instance has."""

    def __init__(self, config):
        super().__init__(config)
        usual = self.forward
        self.forward = lambda *given, **named: (2 * usual(*given, **named)[0], None)


class Hooked(SymmetricAttention):
    """A hook on its output."""

    def __init__(self, config):
        super().__init__(config)
        self.register_forward_hook(lambda module, given, output: (2 * output[0], output[1]))


class Called(SymmetricAttention):
    """A call of its own."""

    def __call__(self, *given, **named):
        return 2 * super().__call__(*given, **named)[0], None


class Wrapped(SymmetricAttention):
    """Its forward is wrapped below, at the top level of the module."""


def _doubled(forward):
    return lambda *given, **named: (2 * forward(*given, **named)[0], None)


Wrapped.forward = _doubled(Wrapped.forward)


class LateMixing(SymmetricAttention):
    """Q(x') · Q(y'), where x' has half of both neighbours in rows above 16 tokens."""

    def query_key_value(self, hidden):
        if hidden.shape[1] > 16:
            around = F.pad(hidden, (0, 0, 1, 1))
            hidden = hidden + 0.5 * (around[:, :-2] + around[:, 2:])
        return super().query_key_value(hidden)


class TrainedMixing(SymmetricAttention):
    """Q(x') · Q(y'), where x' is the token after in training."""

    def query_key_value(self, hidden):
        return super().query_key_value(hidden.roll(-1, dims=1) if self.training else hidden)


class Dropping(SymmetricAttention):
    """A query with dropout of its own."""

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return F.dropout(query, 0.1, self.training), key, value


class Tabled(SymmetricAttention):
    """Q(x + P), where P has a row for each place."""

    def __init__(self, config):
        super().__init__(config)
        self.places = torch.nn.Parameter(torch.ones(config.max_position_embeddings, config.hidden_size))

    def query_key_value(self, hidden):
        return super().query_key_value(hidden + self.places[: hidden.shape[1]])


class Rescaled(SymmetricAttention):
    """Q(x) · Q(y) by a scale that long rows change."""

    def query_key_value(self, hidden):
        self.scaling = 0.1 if hidden.shape[1] > 16 else 0.2
        return super().query_key_value(hidden)


class EverySecond(SymmetricAttention):
    """A layer of two mixes tokens."""

    made = 0

    def __init__(self, config):
        super().__init__(config)
        EverySecond.made += 1
        self.mixes = EverySecond.made % 2 == 0

    def query_key_value(self, hidden):
        return super().query_key_value(hidden.roll(1, dims=1) if self.mixes else hidden)


MIXING = [Averaged, Convolved, Placed, Doubled]
WITH_FORWARD = [Near, Noisy, Assigned, Hooked, Called, Wrapped, Doubled]  # or with something else that calls bring in
SELDOM = [LateMixing, TrainedMixing]  # mix tokens
ODD = [Tabled, Rescaled, EverySecond]  # in other ways
