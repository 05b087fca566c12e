"""BERT on rows laid end to end: nothing is padded but inside attention, and nothing is computed that nobody reads.

Shapes: `1 token hidden` for the tokens of all rows, `row heads longest head` where rows are padded to the longest.
"""

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.bert.modeling_bert import BertLayer, BertModel

from symbert.model.attention import SelfAttention

MOVED = 0.1  # standard deviation: five times that of a start
# Largest relative difference of layers in float64 that rounds differently: products over rows of other lengths differ
# by some 1e-15, an operator that mixes tokens by 0.01 and more.
TOLERANCE = 1e-9

Encoder = Callable[[BertModel, Tensor, "Packing"], Tensor]  # computes what `encode` does
_encoders: dict[str, Encoder] = {}  # of each operator, by its name


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


def encode_by_length(bert: BertModel, embedded: Tensor, packing: Packing) -> Tensor:
    """As `encode`, for an operator that mixes tokens: its layers see rows of one length at a time, and no padding.

    So each row has what its own BERT makes of it alone, whatever the other rows are; a batch takes as many passes as
    it has lengths.
    """
    lengths, order, pooled = packing.attended.sum(-1).flatten(), [], []
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero().flatten()
        hidden = embedded[0, packing.first[rows, None] + torch.arange(length, device=rows.device)]
        for layer in bert.encoder.layer:
            hidden = layer(hidden)
        order.append(rows)
        pooled.append(bert.pooler(hidden))
    return torch.cat(pooled)[torch.cat(order).argsort()]


def encoder_for(bert: BertModel) -> Encoder:
    """What computes the model's operator: `encode`, unless it mixes tokens, which a line on stderr says.

    Every operator is tried once in a process.
    """
    operator = bert.config.attention
    if operator not in _encoders:
        _encoders[operator] = encode_by_length if mixes_tokens(bert) else encode
        if _encoders[operator] is encode_by_length:
            print(
                f"symbert: attention '{operator}' mixes tokens or has a forward of its own: rows of one "
                "length are computed at a time, which takes longer (docs/operators.md)",
                file=sys.stderr,
            )
    return _encoders[operator]


@torch.no_grad()
def mixes_tokens(bert: BertModel) -> bool:
    """Whether `encode` is wrong for the model's operator, by what becomes of rows of several lengths and of each alone.

    Compared are two of its layers with weights moved at random, so that what starts at zero shows, too. The random
    numbers are of a generator of their own.
    """
    generator = torch.Generator().manual_seed(0)
    device = bert.pooler.dense.weight.device

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device)

    layers = copy.deepcopy(nn.ModuleList(bert.encoder.layer[:1])).double().eval()
    for parameter in layers.parameters():
        parameter += MOVED * drawn(*parameter.shape)
    model = SimpleNamespace(encoder=SimpleNamespace(layer=[layers[0], layers[0]]), pooler=lambda hidden: hidden[:, 0])
    lengths = np.array([5, 2, 9, 5, 3])
    packing = Packing.of(lengths, device)
    rows = model, drawn(1, int(lengths.sum()), bert.config.hidden_size), packing
    expected, found = encode_by_length(*rows), encode(*rows)
    return not (expected - found).abs().max() <= TOLERANCE * expected.abs().max()


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
