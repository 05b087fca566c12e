"""Self-attention operators: how one token scores another.

Shapes: `batch token hidden` before the heads are split, `batch heads token head` after (hidden = heads · head).
Every operator's logits are `query · keyᵀ / √head`; an operator says only what query and key are, so that
masking, softmax, dropout, the value path and the fused kernels are the same for all of them.

To add one: a class with `query_and_key`, its line in `ATTENTION`, its word in the schema's enum
(workflow/schemas/config.schema.yaml) and in `sweep.attention` of the configuration.
"""

import difflib

import torch
from torch import Tensor, nn
from transformers import BertConfig
from transformers import initialization as init
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import eager_attention_forward

from symbert.errors import ConfigError


class SelfAttention(nn.Module):
    """Multi-head self-attention in the place of Hugging Face's `BertSelfAttention`."""

    is_causal = False

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.num_attention_heads = config.num_attention_heads
        self.attention_head_size = config.hidden_size // config.num_attention_heads
        self.scaling = self.attention_head_size**-0.5
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def query_and_key(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """The two sides of the dot product, each `batch heads token head`, from `batch token hidden`."""
        raise NotImplementedError("an operator defines query_and_key")

    def initialize(self) -> None:
        """Fill the parameters that are not Linear layers (those get BERT's N(0, 0.02))."""

    def forward(self, hidden: Tensor, attention_mask: Tensor | None = None, **kwargs) -> tuple[Tensor, Tensor | None]:
        """Mixed values `batch token hidden` and, with the eager kernel only, the attention weights."""
        query, key = self.query_and_key(hidden)
        value = self.split_heads(self.value(hidden))
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        dropout = self.config.attention_probs_dropout_prob if self.training else 0.0
        mixed, weights = attend(
            self, query, key, value, attention_mask, dropout=dropout, scaling=self.scaling, **kwargs
        )
        return mixed.reshape(hidden.shape).contiguous(), weights

    def split_heads(self, hidden: Tensor) -> Tensor:
        """`batch token hidden` as `batch heads token head`."""
        return hidden.unflatten(-1, (self.num_attention_heads, self.attention_head_size)).transpose(1, 2)


class OriginalAttention(SelfAttention):
    """Q(x) · K(y): separate projections for the two sides (Vaswani et al. 2017; paper, equation 2)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)

    def query_and_key(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return self.split_heads(self.query(hidden)), self.split_heads(self.key(hidden))


class SymmetricAttention(SelfAttention):
    """Q(x) · Q(y): one projection for both sides, so x scores y as y scores x (paper, equation 3)."""

    def query_and_key(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        query = self.split_heads(self.query(hidden))
        return query, query


class PairwiseAttention(SelfAttention):
    """Q(x) S Q(y)ᵀ: one projection and a free head × head matrix S per head (paper, equation 6).

    S starts as N(0, 1), as in the authors' code; it is not constrained, so the scores are not symmetric.
    It is applied to the query, which leaves a plain dot product for the fused kernels.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        head = self.attention_head_size
        self.pairwise_factors = nn.Parameter(torch.empty(self.num_attention_heads, head, head))

    def initialize(self) -> None:
        init.normal_(self.pairwise_factors, 0.0, 1.0)

    def query_and_key(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        query = self.split_heads(self.query(hidden))
        return query @ self.pairwise_factors, query


ATTENTION: dict[str, type[SelfAttention]] = {
    "original": OriginalAttention,
    "symmetric": SymmetricAttention,
    "pairwise": PairwiseAttention,
}


def attention_class(name: str) -> type[SelfAttention]:
    """The operator of that name; ConfigError names the nearest one (never a silent fallback)."""
    if name in ATTENTION:
        return ATTENTION[name]
    near = difflib.get_close_matches(name, ATTENTION, n=1) or list(ATTENTION)
    raise ConfigError(f"attention '{name}' is unknown; did you mean {' or '.join(near)}?")
