"""BERT below its heads as torch modules: embeddings, and layers whose attention is exchangeable.

Parameters have Hugging Face's names and order.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from symbert.model.configuration import Configuration, has_rotary_positions
from symbert.model.sites import attend_across, attention_of, causal_attention_of, cross_attention_of, mask_for


class Embeddings(nn.Module):
    """The sum of the embeddings of a token's piece, of its place, unless positions are rotary, and of its text,
    normalised."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.has_places = not has_rotary_positions(config)
        if self.has_places:
            self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.register_buffer("places", torch.arange(config.max_position_embeddings)[None], persistent=False)

    def forward(self, ids: Tensor, types: Tensor | None = None, places: Tensor | None = None) -> Tensor:
        """`batch token hidden`; without `types` there is one text, without `places` each row begins at the first."""
        types = torch.zeros_like(ids) if types is None else types
        places = self.places[:, : ids.shape[1]] if places is None else places
        summed = self.word_embeddings(ids) + self.token_type_embeddings(types)
        if self.has_places:
            summed = summed + self.position_embeddings(places)
        return self.dropout(self.LayerNorm(summed))


class Residual(nn.Module):
    """A projection, added to what it began with, normalised."""

    def __init__(self, features: int, config: Configuration) -> None:
        super().__init__()
        self.dense = nn.Linear(features, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, values: Tensor, hidden: Tensor) -> Tensor:
        """`batch token hidden`."""
        return self.LayerNorm(self.dropout(self.dense(values)) + hidden)


class Attention(nn.Module):
    """The operator of a layer and its projection; the tokens of a decoder see no later ones."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.self = causal_attention_of(config) if config.is_decoder else attention_of(config)
        self.output = Residual(config.hidden_size, config)

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """`batch token hidden`; an encoder's `mask` is `batch 1 1 token`, true for a token that is none of padding."""
        return self.output(self.self(hidden, mask_for(self.self, hidden, mask))[0], hidden)


class CrossAttention(nn.Module):
    """The operator between a sequence and its context, and its projection."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.self = cross_attention_of(config)
        self.output = Residual(config.hidden_size, config)

    def forward(self, hidden: Tensor, context: Tensor, context_mask: Tensor | None) -> Tensor:
        """`batch token hidden`."""
        return self.output(attend_across(self.self, hidden, context, context_mask), hidden)


class Intermediate(nn.Module):
    """A projection to the wide half of a layer, and GELU."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """`batch token intermediate`."""
        return F.gelu(self.dense(hidden))


class Layer(nn.Module):
    """Attention, that to a context where there is one, then the feed-forward half."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.attention = Attention(config)
        if config.add_cross_attention:
            self.crossattention = CrossAttention(config)
        self.intermediate = Intermediate(config)
        self.output = Residual(config.intermediate_size, config)

    def feed_forward_chunk(self, hidden: Tensor) -> Tensor:
        """The feed-forward half, by Hugging Face's name."""
        return self.output(self.intermediate(hidden), hidden)

    def forward(
        self,
        hidden: Tensor,
        mask: Tensor | None = None,
        context: Tensor | None = None,
        context_mask: Tensor | None = None,
    ) -> Tensor:
        """`batch token hidden`."""
        hidden = self.attention(hidden, mask)
        if context is not None:
            hidden = self.crossattention(hidden, context, context_mask)
        return self.feed_forward_chunk(hidden)


class Layers(nn.ModuleList):
    """Layers, one after the other. With `recomputes`, only what each begins with is kept for the gradients; the rest is
    computed again, with the same dropout."""

    recomputes = False

    def forward(self, hidden: Tensor, *attended: Tensor | None) -> Tensor:
        """`batch token hidden`; `attended` is what a layer takes beside."""
        for layer in self:
            if self.recomputes:
                hidden = checkpoint(layer, hidden, *attended, use_reentrant=False)
            else:
                hidden = layer(hidden, *attended)
        return hidden


class Encoder(nn.Module):
    """The layers of a BERT."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.layer = Layers(Layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, hidden: Tensor, *attended: Tensor | None) -> Tensor:
        """`batch token hidden`."""
        return self.layer(hidden, *attended)


class Pooler(nn.Module):
    """What a classifier reads of a row: its first token, projected."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = nn.Tanh()


class Bert(nn.Module):
    """Embeddings and layers; `symbert.model.packed` has what a pooler makes of them."""

    def __init__(self, config: Configuration, has_pooler: bool) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        if has_pooler:
            self.pooler = Pooler(config)

    def forward(self, ids: Tensor, *attended: Tensor | None) -> Tensor:
        """The last hidden states `batch token hidden`; `attended` is what a layer takes beside: nothing for an encoder
        of rows without padding."""
        return self.encoder(self.embeddings(ids), *attended)
