"""BERT on rows laid end to end: nothing is padded but inside attention, and nothing is computed that nobody reads.

Shapes: `1 token hidden` for the tokens of all rows, `row heads longest head` where rows are padded to the longest.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.models.bert.modeling_bert import BertLayer, BertModel

from symbert.model.attention import SelfAttention


@dataclass(frozen=True)
class Packing:
    """Where the tokens of rows of any lengths stand: end to end, and in the padded rows."""

    position_ids: Tensor  # `token`: in its row
    slots: Tensor  # `token`: among the padded rows, counted through
    first: Tensor  # `row`: the token that it begins with
    attended: Tensor  # `row 1 1 longest`: whether a slot has a token

    @classmethod
    def of(cls, lengths: np.ndarray, device: torch.device) -> "Packing":
        """The packing of rows of these lengths (tokens, at least one each)."""
        attended = np.arange(lengths.max()) < lengths[:, None]
        slots = np.flatnonzero(attended)
        arrays = slots % lengths.max(), slots, np.cumsum(lengths) - lengths, attended[:, None, None]
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))


def encode(bert: BertModel, embedded: Tensor, packing: Packing) -> Tensor:
    """The pooler's output `row hidden` of embedded tokens `1 token hidden`, as of padded rows.

    The pooler reads the first token of each row. So the last layer has queries, and all that follows its attention,
    for these tokens alone.
    """
    *layers, last = bert.encoder.layer
    hidden = embedded
    for layer in layers:
        hidden = _all_tokens(layer, hidden, packing)
    return bert.pooler(_first_tokens(last, hidden, packing))


def _all_tokens(layer: BertLayer, hidden: Tensor, packing: Packing) -> Tensor:
    query, key, value = layer.attention.self.query_key_value(hidden)
    mixed = _mix(layer.attention.self, _padded(query, packing), key, value, packing)
    return _finish(layer, mixed.flatten(0, 1).index_select(0, packing.slots)[None], hidden)


def _first_tokens(layer: BertLayer, hidden: Tensor, packing: Packing) -> Tensor:
    """The layer's output `row 1 hidden` for the first token of each row."""
    query, key, value = layer.attention.self.query_key_value(hidden)
    first = query[0].index_select(1, packing.first).transpose(0, 1).unsqueeze(2)
    mixed = _mix(layer.attention.self, first, key, value, packing)
    return _finish(layer, mixed, hidden[0].index_select(0, packing.first).unsqueeze(1))


def _mix(attention: SelfAttention, query: Tensor, key: Tensor, value: Tensor, packing: Packing) -> Tensor:
    """Mixed values `row query hidden` of padded queries; keys and values are padded here."""
    mixed = F.scaled_dot_product_attention(
        query,
        _padded(key, packing),
        _padded(value, packing),
        attn_mask=packing.attended,
        dropout_p=attention.config.attention_probs_dropout_prob if attention.training else 0.0,
        scale=attention.scaling,
    )
    return mixed.transpose(1, 2).flatten(2)


def _padded(tokens: Tensor, packing: Packing) -> Tensor:
    """`1 heads token head` as `row heads longest head`, with zeros in the slots without a token."""
    tokens = tokens[0].transpose(0, 1)
    rows, longest = packing.attended.shape[0], packing.attended.shape[-1]
    empty = tokens.new_zeros(rows * longest, *tokens.shape[1:])
    return empty.index_copy(0, packing.slots, tokens).unflatten(0, (rows, longest)).transpose(1, 2)


def _finish(layer: BertLayer, mixed: Tensor, hidden: Tensor) -> Tensor:
    """What follows attention: its projection, and the feed-forward half, each with its residual."""
    return layer.feed_forward_chunk(layer.attention.output(mixed, hidden))
