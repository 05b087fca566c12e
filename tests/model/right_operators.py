"""Operators that are right, of the kinds that papers and their code have."""

import torch
from torch import nn
from torch.nn import functional as F

from symbert.model.attention import OriginalAttention
from symbert.operators import Description


class SoftmaxIn32Bits(OriginalAttention):
    """Q(x) K(y)ᵀ: with a softmax in 32 bits, as Hugging Face's models have it."""

    token_wise = True

    def forward(self, hidden, attention_mask=None, **kwargs):
        query, key, value = self.query_key_value(hidden)
        logits = query @ key.mT * self.scaling
        if attention_mask is not None:
            logits = logits.masked_fill(~attention_mask, torch.finfo(logits.dtype).min)
        weights = logits.softmax(-1, dtype=torch.float32).to(query.dtype)
        weights = F.dropout(weights, self.config.attention_probs_dropout_prob, self.training)
        return (weights @ value).transpose(1, 2).flatten(2), weights


class Rectified(OriginalAttention):
    """relu(Q(x) K(y)ᵀ) / n: weights with a kink."""

    def forward(self, hidden, attention_mask=None, **kwargs):
        query, key, value = self.query_key_value(hidden)
        weights = (query @ key.mT * self.scaling).relu() / hidden.shape[1]
        return (weights @ value).transpose(1, 2).flatten(2), weights


class Averaging(OriginalAttention):
    """(Q(x) − m) K(y)ᵀ: m is a mean of earlier steps, and no row sees another of its own step."""

    token_wise = True

    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("mean", torch.zeros(config.hidden_size))

    def query_key_value(self, hidden):
        query, shift = self.query(hidden), self.mean.to(hidden.dtype, copy=True)
        if self.training:
            self.mean.lerp_(query.detach().to(self.mean.dtype).mean((0, 1)), 0.1)
        return tuple(self.split_heads(side) for side in (query - shift, self.key(hidden), self.value(hidden)))


class LowRank(OriginalAttention):
    """Q(x) K(y)ᵀ: of a rank that need not be given."""

    token_wise = True
    description = Description(parameters="2(h·rank + rank) + h² + h")

    def __init__(self, config, rank=16, *, scale=1.0):
        super().__init__(config)
        self.query, self.key = (nn.Linear(config.hidden_size, rank) for _ in range(2))
        self.scale = scale

    def query_key_value(self, hidden):
        sides = (project(hidden).unflatten(-1, (self.num_attention_heads, -1)) for project in (self.query, self.key))
        return *(side.transpose(1, 2) for side in sides), self.split_heads(self.value(hidden))


class Placed(OriginalAttention):
    """Q(x + p) K(y + q)ᵀ: with a table of places as long as the model's rows."""

    description = Description(scaled="query key")

    def __init__(self, config):
        super().__init__(config)
        self.places = nn.Embedding(config.max_position_embeddings, config.hidden_size)

    def query_key_value(self, hidden):
        places = torch.arange(hidden.shape[1], device=hidden.device)
        return super().query_key_value(hidden + self.places(places))


class Noisy(OriginalAttention):
    """Q(x) K(y)ᵀ: with dropout of its own."""

    description = Description(scaled="query")

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return F.dropout(query, 0.1, self.training), key, value


class Condensed(OriginalAttention):
    """Q(x) (E K)ᵀ: the keys and values of a row are four mixtures of its tokens' (Linformer)."""

    description = Description(scaled="query key")

    def __init__(self, config):
        super().__init__(config)
        self.mixture = nn.Parameter(torch.empty(4, config.max_position_embeddings))

    def initialize(self):
        nn.init.normal_(self.mixture)

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        mixture = self.mixture[:, : hidden.shape[1]].to(key.dtype)
        return query, mixture @ key, mixture @ value
