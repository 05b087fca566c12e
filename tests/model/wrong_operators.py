"""Operators that are wrong, each in one way."""

import weakref

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrizations

from symbert.model.attention import OriginalAttention, SelfAttention, SymmetricAttention
from symbert.operators import Description


class Detached(SymmetricAttention):
    """A query that hands no gradient on."""

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query.detach(), key.detach(), value


class Unused(SymmetricAttention):
    """A projection that computes nothing."""

    def __init__(self, config):
        super().__init__(config)
        self.spare = torch.nn.Linear(config.hidden_size, config.hidden_size)


class Unfilled(SymmetricAttention):
    """A parameter that nobody fills."""

    def __init__(self, config):
        super().__init__(config)
        self.shift = torch.nn.Parameter(torch.empty(config.hidden_size))

    def query_key_value(self, hidden):
        return super().query_key_value(hidden + self.shift)


class Unmasked(SymmetricAttention):
    """A forward pass without the mask."""

    token_wise = True

    def forward(self, hidden, attention_mask=None, **kwargs):
        return super().forward(hidden, None, **kwargs)


class Miscounted(SymmetricAttention):
    """Q(x) Q(y)ᵀ: with a wrong formula of its parameters."""

    description = Description(parameters="3(h² + h)")


class Overflowing(SymmetricAttention):
    """Logits that are larger than a number of 16 or 32 bits."""

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query * 1e20, key * 1e20, value


class Misdescribed(SymmetricAttention):
    """A description with a weight that it has not."""

    description = Description(scaled="query kye")


class Incomplete(SelfAttention):
    """No `query_key_value`."""


class Demanding(SymmetricAttention):
    """An argument that not every value will do for."""

    def __init__(self, config, rank, groups=None):
        super().__init__(config)
        if config.hidden_size % rank:
            raise ValueError(f"rank is {rank}, expected a divisor of {config.hidden_size}")


class RandomFeatures(SymmetricAttention):
    """Q(x) F Fᵀ Q(y)ᵀ: F random, drawn in `__init__`, and in no checkpoint. Not wrong: F is the same everywhere."""

    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("features", torch.randn(self.attention_head_size, self.attention_head_size), False)

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query @ self.features, key @ self.features, value


class LateFeatures(RandomFeatures):
    """F drawn in `initialize`, which no process that loads a checkpoint calls."""

    def initialize(self):
        self.features.normal_()


class KeptFeatures(LateFeatures):
    """The same in a persistent buffer. Not wrong."""

    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("features", torch.empty_like(self.features))


class OwnRandomness(RandomFeatures):
    """F drawn by NumPy, which no seed decides."""

    def __init__(self, config):
        super().__init__(config)
        self.features = torch.tensor(np.random.default_rng().normal(size=self.features.shape), dtype=torch.float32)


class RunningMean(SymmetricAttention):
    """Q(x - m) Q(y - m)ᵀ: m a running mean, and in no checkpoint."""

    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("mean", torch.zeros(config.hidden_size), persistent=False)

    def query_key_value(self, hidden):
        if self.training:
            self.mean.lerp_(hidden.detach().mean((0, 1)).to(self.mean.dtype), 0.1)
        return super().query_key_value(hidden - self.mean)


class Counting(SymmetricAttention):
    """(1 + n/10) Q(x) Q(y)ᵀ in the n-th training pass."""

    calls = 0

    def query_key_value(self, hidden):
        self.calls += self.training
        query, key, value = super().query_key_value(hidden)
        return query * (1 + self.calls / 10), key, value


class Patient(SymmetricAttention):
    """Q(x) Q(y)ᵀ, and ten times that after a hundred training passes."""

    token_wise = True

    def __init__(self, config):
        super().__init__(config)
        self.calls = 0

    def query_key_value(self, hidden):
        self.calls += self.training
        query, key, value = super().query_key_value(hidden)
        return (10 * query if self.calls > 100 else query), key, value


TALLY = {"passes": 0}


class Tallying(SymmetricAttention):
    """The same count, of the module."""

    token_wise = True

    def query_key_value(self, hidden):
        TALLY["passes"] += 1
        return super().query_key_value(hidden)


class KeptCount(Patient):
    """The same count in a buffer that a checkpoint restores. Not wrong, but micro-batches count."""

    def __init__(self, config):
        super().__init__(config)
        del self.calls
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def query_key_value(self, hidden):
        if self.training:
            self.calls += 1
        return SymmetricAttention.query_key_value(self, hidden)


class Caching(SymmetricAttention):
    """Q(x) Q(y)ᵀ, with numbers that are made once for each length. Not wrong."""

    made: dict = {}  # noqa: RUF012

    def query_key_value(self, hidden):
        ones = self.made.setdefault(hidden.shape[1], torch.ones(hidden.shape[1], 1))
        return super().query_key_value(hidden * ones.to(hidden.dtype))


class Packaged(SymmetricAttention):
    """Q(x) Q(y)ᵀ, with state that is no tensor."""

    def get_extra_state(self):
        return {"passes": 1}

    def set_extra_state(self, state):
        pass


class LateBuffer(SymmetricAttention):
    """Q(x) Q(y)ᵀ, with a buffer that the first pass registers."""

    def query_key_value(self, hidden):
        if not hasattr(self, "seen"):
            self.register_buffer("seen", hidden.new_ones(1))
        return super().query_key_value(hidden)


class Noting(SymmetricAttention):
    """Q(x) Q(y)ᵀ, which notes the mean of its input and reads a constant: no state."""

    def __init__(self, config) -> None:
        super().__init__(config)
        self.mean, self.constant = float("nan"), np.arange(8.0)[::-1]

    def query_key_value(self, hidden):
        self.mean = hidden.mean().item()
        return super().query_key_value(hidden)


class Sharp(SymmetricAttention):
    """4 Q(x) Q(y)ᵀ: in a forward that says nothing of its weights, and never drops them."""

    description = Description(scaled="query")

    def forward(self, hidden, attention_mask=None, **kwargs):
        query, key, value = self.query_key_value(hidden)
        logits = 4 * query @ key.mT * self.scaling
        if attention_mask is not None:
            logits = logits.masked_fill(~attention_mask, -1e4)
        return (logits.softmax(-1) @ value).transpose(1, 2).reshape(hidden.shape), None


class Telling(Sharp):
    """The same, and returns weights: those of one row, evenly."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        mixed, _ = super().forward(hidden, attention_mask, **kwargs)
        tokens = hidden.shape[1]
        return mixed, torch.full((len(hidden), self.num_attention_heads, tokens, tokens), 1 / tokens)


class Alone(Sharp):
    """The same as a tensor, not as a pair."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        return super().forward(hidden, attention_mask, **kwargs)[0]


class Even(Sharp):
    """All tokens attend evenly, so its result has one row for all of them. Not wrong."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        return self.query_key_value(hidden)[2].mean(2).flatten(1)[:, None], None


class Centred(SymmetricAttention):
    """Q(x - m) Q(y - m)ᵀ: m the mean of all rows in training, as in a batch norm; dropout hid it."""

    token_wise = True

    def __init__(self, config):
        super().__init__(config)
        self.dropout = torch.nn.Dropout(0.1)

    def query_key_value(self, hidden):
        hidden = self.dropout(hidden)
        return super().query_key_value(hidden - hidden.mean((0, 1)) if self.training else hidden)


class AlwaysDropping(Sharp):
    """Attention weights are dropped in evaluation, too."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        mixed, _ = super().forward(hidden, attention_mask, **kwargs)
        return torch.nn.functional.dropout(mixed, self.config.attention_probs_dropout_prob), None


class Unsplit(OriginalAttention):
    """Q(x) K(y)ᵀ, whose heads are not split."""

    token_wise = True

    def query_key_value(self, hidden):
        return self.query(hidden), self.key(hidden), self.value(hidden)


class HalfSplit(OriginalAttention):
    """The same, of the value alone."""

    def query_key_value(self, hidden):
        query, key, _ = super().query_key_value(hidden)
        return query, key, self.value(hidden)


class Turned(OriginalAttention):
    """Rows and tokens change places."""

    def query_key_value(self, hidden):
        return tuple(side.transpose(0, 2) for side in super().query_key_value(hidden))


class Unjoined(OriginalAttention):
    """A forward whose heads are not joined."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        query, key, value = self.query_key_value(hidden)
        return (query @ key.mT).softmax(-1) @ value, None


class OneKey(OriginalAttention):
    """Q(x) K(y)ᵀ, with one key and one value for all heads, and narrow keys. Not wrong."""

    token_wise = True
    width = 8

    def __init__(self, config):
        super().__init__(config)
        self.query = nn.Linear(config.hidden_size, self.num_attention_heads * self.width)
        self.key, self.value = (nn.Linear(config.hidden_size, size) for size in (self.width, self.attention_head_size))

    def query_key_value(self, hidden):
        query = self.query(hidden).unflatten(-1, (self.num_attention_heads, self.width)).transpose(1, 2)
        return query, self.key(hidden)[:, None], self.value(hidden)[:, None]


class LeftToRight(OriginalAttention):
    """A class that says for itself that it is causal."""

    is_causal = True


class Normed(OriginalAttention):
    """A weight that is normalised, and drawn when the class is made."""

    def __init__(self, config):
        super().__init__(config)
        self.query = parametrizations.weight_norm(self.query)


class Orthogonal(OriginalAttention):
    """The same of an orthogonal weight, whose only parameter starts as a constant."""

    def __init__(self, config):
        super().__init__(config)
        self.query = parametrizations.orthogonal(self.query)


class Scaled(SymmetricAttention):
    """A parameter that __init__ fills with a constant. Not wrong."""

    token_wise = True

    def __init__(self, config):
        super().__init__(config)
        self.scale = nn.Parameter(self.first(config.hidden_size))

    def first(self, size):
        return torch.ones(size)

    def query_key_value(self, hidden):
        return super().query_key_value(hidden * self.scale)


class Drawn(Scaled):
    """The same with numbers that are drawn."""

    def first(self, size):
        return torch.randn(size)


class Ramped(Scaled):
    """The same with numbers that are not alike."""

    def first(self, size):
        return torch.linspace(1, 2, size)


class Normalised(SymmetricAttention):
    """Batch norm, beside numbers that are drawn in training."""

    def __init__(self, config):
        super().__init__(config)
        self.norm = nn.BatchNorm1d(config.hidden_size)

    def query_key_value(self, hidden):
        hidden = self.norm(hidden.mT).mT
        return super().query_key_value(hidden + 0.1 * torch.randn_like(hidden) if self.training else hidden)


class Divided(SymmetricAttention):
    """Values that are divided by the number of rows."""

    token_wise = True

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query, key, value / len(hidden)


class Ahead(SymmetricAttention):
    """The mask of the last token for all: right for padding, not in a decoder."""

    token_wise = True

    def forward(self, hidden, attention_mask=None, **kwargs):
        mask = None if attention_mask is None else attention_mask[..., -1:, :]
        return super().forward(hidden, mask, **kwargs)


class Half(SymmetricAttention):
    """Attention in 16 bits. Not wrong."""

    token_wise = True

    def query_key_value(self, hidden):
        return tuple(side.bfloat16().to(side.dtype) for side in super().query_key_value(hidden))


class Tied(OriginalAttention):
    """Q(x) K(y)ᵀ, whose key has the weight of the query, and a bias of its own. Not wrong."""

    token_wise = True

    def __init__(self, config):
        super().__init__(config)
        self.key.weight = self.query.weight
        self.mix = nn.Parameter(torch.zeros(3, 4).t())

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query * (1 + self.mix.sum()), key, value


class OfClass(OriginalAttention):
    """A projection that the class keeps, for all models of a process."""

    kept = None

    def __init__(self, config):
        super().__init__(config)
        type(self).kept = self.query = self.kept or self.query


class OfModel(OriginalAttention):
    """A projection that the layers of a model share, kept as by `id(config)`: the next model gets that of one that is
    gone. Not wrong."""

    kept = None, None

    def __init__(self, config):
        super().__init__(config)
        of, query = self.kept
        is_new = of is None or not (of() is None or of() is config)
        type(self).kept = weakref.ref(config), self.query if is_new else query
        self.query = self.kept[1]


class OfThisSize(Scaled):
    """A number that `__init__` reads off a tensor, and a width that only the size of the run has. Not wrong."""

    def __init__(self, config):
        super().__init__(config)
        if config.hidden_size != 48 or not torch.linspace(1, 2, 5).mean().item() == 1.5:
            raise ValueError("another size, or no numbers")


class Unstartable(SymmetricAttention):
    """An `initialize` that fails."""

    def initialize(self):
        nn.init.constant_(self.query.weight, 1 / 0)


class Together(OriginalAttention):
    """Weights that are the mean over heads, as `nn.MultiheadAttention` returns them."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        query, key, value = self.query_key_value(hidden)
        weights = (query @ key.mT * self.scaling).softmax(-1)
        return (weights @ value).transpose(1, 2).flatten(2), weights.mean(1)


class Remembering(OriginalAttention):
    """Weights of a slot of memory beside those of the tokens."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        query, key, value = (nn.functional.pad(side, (0, 0, 1, 0)) for side in self.query_key_value(hidden))
        weights = (query[:, :, 1:] @ key.mT * self.scaling).softmax(-1)
        return (weights @ value).transpose(1, 2).flatten(2), weights


class Oversized(SymmetricAttention):
    """A factor of another width than its heads."""

    description = Description(scaled="query")

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query @ hidden.new_ones(7, 7), key, value


class InPlace(OriginalAttention):
    """Hidden states that change wherever they are read."""

    def query_key_value(self, hidden):
        hidden += torch.linspace(0, 1, hidden.shape[1])[:, None].to(hidden)
        return super().query_key_value(hidden)
