"""BERT on rows laid end to end: pads only inside attention, and computes only [CLS] in the last layer of a classifier.

Fine-tuning on padded rows takes 1.4 to 1.7 × as long (measured). Shapes: `1 token hidden` for the tokens of all rows;
`row heads longest head` where rows are padded to the longest.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from symbert.model.attention import SelfAttention
from symbert.model.bert import PLAIN, Bert, Classifier, SpanModel, is_token_wise
from symbert.model.from_transformers import ALL_ATTENTION_FUNCTIONS, eager_attention_forward, refuse_other_shapes

Encoder = Callable[[Bert, Tensor, "Packing"], Tensor]  # as `encode`


@dataclass(frozen=True)
class Packing:
    """The places of the tokens of rows of any lengths: end to end, and in the padded rows."""

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


def forward(
    model: Classifier | SpanModel, ids: Tensor, types: Tensor, packing: Packing, encoder: Encoder | None = None
) -> Tensor:
    """Logits `row label` of ids and types `token`; of a model of spans `row token 2`, −∞ where a row has no token."""
    embedded = model.bert.embeddings(*(tokens.unsqueeze(0) for tokens in (ids, types, packing.position_ids)))
    encoded = (encoder or encoder_for(model.bert))(model.bert, embedded, packing)
    if isinstance(model, SpanModel):
        return packing.padded(model.qa_outputs(encoded).flatten(0, 1), -math.inf)
    return model.classifier(model.dropout(encoded))


def encoder_for(bert: Bert) -> Encoder:
    """`encode` where the operator's type says `token_wise` and has no forward of its own; otherwise
    `encode_by_length`, which takes longer."""
    site = bert.encoder.layer[0].attention.self
    return encode if is_token_wise(site) and type(site).forward in PLAIN else encode_by_length


def encode(bert: Bert, embedded: Tensor, packing: Packing) -> Tensor:
    """The pooler's output `row hidden` of embedded tokens `1 token hidden`, as of padded rows.

    The pooler reads the first token of each row. So the last layer has queries, and all that follows its attention,
    for these tokens alone. Of a BERT without pooler it is the last hidden states of all tokens, `1 token hidden`.
    """
    hidden, layers, has_pooler = embedded, bert.encoder.layer, hasattr(bert, "pooler")
    for number, layer in enumerate(layers, 1):
        operator, is_last = layer.attention.self, has_pooler and number == len(layers)
        sides = operator.query_key_value(hidden)
        refuse_other_shapes(operator, *sides)
        query, key, value = (side.transpose(1, 2).flatten(0, 1) for side in sides)
        key, value = (packing.padded(side, 0.0).transpose(1, 2) for side in (key, value))
        if is_last:
            query = query.index_select(0, packing.first).unsqueeze(2)
            hidden = hidden.flatten(0, 1).index_select(0, packing.first).unsqueeze(0)
        else:
            query = packing.padded(query, 0.0).transpose(1, 2)
        mixed = _attend(operator, query, key, value, packing.attended).flatten(0, 1)
        mixed = mixed if is_last else mixed.index_select(0, packing.slots)
        hidden = layer.feed_forward_chunk(layer.attention.output(mixed.unsqueeze(0), hidden))
    return bert.pooler(hidden).flatten(0, 1) if has_pooler else hidden


def _attend(operator: SelfAttention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Mixed values `row token hidden`."""
    function = ALL_ATTENTION_FUNCTIONS.get_interface(operator.config._attn_implementation, eager_attention_forward)
    dropout = operator.config.attention_probs_dropout_prob if operator.training else 0.0
    mixed, _ = function(operator, query, key, value, mask, dropout=dropout, scaling=operator.scaling)
    return mixed.flatten(2)


def encode_by_length(bert: Bert, embedded: Tensor, packing: Packing) -> Tensor:
    """As `encode`, with any operator: each row is computed as if alone. A batch takes a pass per length of its rows."""
    lengths, order, encoded, has_pooler = packing.attended.sum(-1).flatten(), [], [], hasattr(bert, "pooler")
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero().flatten()
        tokens = packing.first[rows, None] + torch.arange(length, device=rows.device)
        hidden = bert.encoder(embedded[0, tokens])
        order.append(rows if has_pooler else tokens.flatten())
        encoded.append(bert.pooler(hidden[:, 0]) if has_pooler else hidden.flatten(0, 1))
    in_order = torch.cat(encoded)[torch.cat(order).argsort()]
    return in_order if has_pooler else in_order.unsqueeze(0)
