"""BERT on rows laid end to end: nothing is padded but inside attention, and nothing is computed that nobody reads.

Shapes: `1 token hidden` for the tokens of all rows; `row heads longest head` where rows are padded to the longest.
"""

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from symbert.model.attention import SelfAttention
from symbert.model.bert import Bert, Layer, attends_as, is_shipped
from symbert.model.from_transformers import turned_sides

MOVED = 0.1  # standard deviation: five times that of a start
# Largest relative difference in float64 that is rounding: products over rows of other lengths differ by some 1e-15, an
# operator that mixes tokens by 0.01 and more.
TOLERANCE = 1e-9

Encoder = Callable[[Bert, Tensor, "Packing"], Tensor]  # computes what `encode` does
_encoders: dict[tuple, Encoder] = {}  # of each operator of the user's own, by its class, its definition and its width


@dataclass(frozen=True)
class Packing:
    """Where the tokens of rows of any lengths stand: end to end, and in the padded rows."""

    position_ids: Tensor  # `token`: in its row
    slots: Tensor  # `token`: among the padded rows, counted through
    first: Tensor  # `row`: the token that it begins with
    attended: Tensor  # `row 1 1 longest`: whether a slot has a token

    def padded(self, tokens: Tensor, filler: float) -> Tensor:
        """Values `token …` as `row longest …`, with the filler in the slots that no value is put into."""
        rows, longest = self.attended.shape[0], self.attended.shape[-1]
        empty = tokens.new_full((rows * longest, *tokens.shape[1:]), filler)
        return empty.index_copy(0, self.slots, tokens).unflatten(0, (rows, longest))

    @classmethod
    def of(cls, lengths: np.ndarray, device: torch.device) -> "Packing":
        """The packing of rows of these lengths `row` (tokens, at least one each)."""
        longest = lengths.max()
        attended = np.arange(longest) < lengths[:, None]
        slots = np.flatnonzero(attended)
        arrays = slots % longest, slots, np.cumsum(lengths) - lengths, attended[:, None, None]
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))


def encode(bert: Bert, embedded: Tensor, packing: Packing) -> Tensor:
    """The pooler's output `row hidden` of embedded tokens `1 token hidden`, as of padded rows.

    The pooler reads the first token of each row. So the last layer has queries, and all that follows its attention,
    for these tokens alone. Of a BERT without pooler it is the last hidden states of all tokens, `1 token hidden`.
    """
    *layers, last = bert.encoder.layer
    hidden = embedded
    for layer in layers:
        hidden = _all_tokens(layer, hidden, packing)
    if not hasattr(bert, "pooler"):
        return _all_tokens(last, hidden, packing)
    return _pooled(bert, _first_tokens(last, hidden, packing)).flatten(0, 1)


def encode_by_length(bert: Bert, embedded: Tensor, packing: Packing) -> Tensor:
    """As `encode`, for an operator that mixes tokens: its layers see rows of one length at a time, and no padding.

    So each row has what its own BERT makes of it alone, whatever the other rows are; a batch takes as many passes as
    it has lengths.
    """
    lengths, order, encoded = packing.attended.sum(-1).flatten(), [], []
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero().flatten()
        tokens = packing.first[rows, None] + torch.arange(length, device=rows.device)
        hidden = embedded[0, tokens]
        for layer in bert.encoder.layer:
            hidden = layer(hidden)
        has_pooler = hasattr(bert, "pooler")
        order.append(rows if has_pooler else tokens.flatten())
        encoded.append(_pooled(bert, hidden[:, 0]) if has_pooler else hidden.flatten(0, 1))
    in_order = torch.cat(encoded)[torch.cat(order).argsort()]
    return in_order if hasattr(bert, "pooler") else in_order.unsqueeze(0)


def encoder_for(bert: Bert) -> Encoder:
    """The computation of the model's operator: `encode` where its class has no forward of its own and treats each token
    by itself; otherwise `encode_by_length`, which a line on stderr says once in a process."""
    sites = [layer.attention.self for layer in bert.encoder.layer]
    if all(is_shipped(site) and attends_as(site) for site in sites):
        return encode
    config = bert.config
    operator = (
        *map(type, sites),
        repr(getattr(config, "operator", None)),
        config.hidden_size,
        config.max_position_embeddings,
    )
    if operator not in _encoders:
        is_packed = all(map(attends_as, sites)) and all(map(treats_tokens_alone, sites))
        _encoders[operator] = encode if is_packed else encode_by_length
        if not is_packed:
            print(
                f"warning: attention '{bert.config.attention}' has a forward or random numbers of its own, or mixes "
                "tokens: rows of one length are computed at a time, which takes longer (docs/operators.md)",
                file=sys.stderr,
            )
    return _encoders[operator]


@torch.no_grad()
def treats_tokens_alone(operator: SelfAttention) -> bool:
    """Whether query, key and value of rows laid end to end are those of each row alone, up to the longest row of the
    model, in training and in evaluation mode, and without random numbers.

    The weights are moved at random, so that what starts at zero shows, too.
    """
    generator, config = torch.Generator().manual_seed(0), operator.config
    device = next((parameter.device for parameter in operator.parameters()), torch.device("cpu"))

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device)

    tried, scalings = copy.deepcopy(operator).double(), set()

    def computed(hidden: Tensor) -> tuple[Tensor, ...]:
        found = tried.query_key_value(hidden)
        scalings.add(tried.scaling)
        return found

    for parameter in tried.parameters():
        parameter += MOVED * drawn(*parameter.shape)
    rows = [drawn(1, length, config.hidden_size) for length in (5, 2, config.max_position_embeddings, 9, 5, 17)]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        before = _random_state(device)
        for is_training in (True, False):
            tried.train(is_training)
            for laid, sides, along in ((rows, 1, 2), (rows[::4], 0, 0)):  # end to end, and two of one length in a batch
                try:
                    found = computed(torch.cat(laid, sides))
                except (IndexError, RuntimeError):  # of a table of places: it has none beyond the longest row
                    return False
                for one, *alone in zip(found, *map(computed, laid), strict=True):
                    other = torch.cat(alone, along)
                    if not (one - other).abs().max() <= TOLERANCE * other.abs().max():
                        return False
        return torch.equal(_random_state(device), before) and len(scalings) == 1


def _random_state(device: torch.device) -> Tensor:
    state = torch.get_rng_state()
    return torch.cat([state, torch.cuda.get_rng_state(device)]) if device.type == "cuda" else state


def _all_tokens(layer: Layer, hidden: Tensor, packing: Packing) -> Tensor:
    query, key, value = layer.attention.self.query_key_value(hidden)
    mixed = _mix(layer.attention.self, _padded(query, packing), key, value, packing)
    return _finish(layer, mixed.flatten(0, 1).index_select(0, packing.slots).reshape(hidden.shape), hidden)


def _first_tokens(layer: Layer, hidden: Tensor, packing: Packing) -> Tensor:
    """The layer's output `1 row hidden` for the first token of each row."""
    query, key, value = layer.attention.self.query_key_value(hidden)
    first = _tokens(query).index_select(0, packing.first).unsqueeze(2)
    mixed = _mix(layer.attention.self, first, key, value, packing)
    rows = hidden.flatten(0, 1).index_select(0, packing.first).unflatten(0, (len(hidden), -1))
    return _finish(layer, mixed.reshape(rows.shape), rows)


def _mix(attention: SelfAttention, query: Tensor, key: Tensor, value: Tensor, packing: Packing) -> Tensor:
    """Mixed values `row query hidden` of padded queries; keys and values are padded here."""
    query, key = turned_sides(attention, query, _padded(key, packing))  # the first token's place is 0, too
    mixed = F.scaled_dot_product_attention(
        query,
        key,
        _padded(value, packing),
        attn_mask=packing.attended,
        dropout_p=attention.config.attention_probs_dropout_prob if attention.training else 0.0,
        scale=attention.scaling,
    )
    return mixed.transpose(1, 2).flatten(2)


def _tokens(values: Tensor) -> Tensor:
    """`1 heads token head` as `token heads head`."""
    return values.transpose(1, 2).flatten(0, 1)


def _padded(values: Tensor, packing: Packing) -> Tensor:
    """`1 heads token head` as `row heads longest head`, with zeros in the slots without a token."""
    return packing.padded(_tokens(values), 0.0).transpose(1, 2)


def _finish(layer: Layer, mixed: Tensor, hidden: Tensor) -> Tensor:
    """What follows attention: its projection, and the feed-forward half, each with its residual."""
    return layer.feed_forward_chunk(layer.attention.output(mixed, hidden))


def _pooled(bert: Bert, first: Tensor) -> Tensor:
    """What Hugging Face's pooler makes of the first token of each row."""
    return bert.pooler.activation(bert.pooler.dense(first))
