"""Self-attention operators: how one token scores another.

Shapes: `batch token hidden` before the heads are split, `batch heads token head` after (hidden = heads · head).
Every operator's logits are `query · keyᵀ / √head`; an operator says only what query, key and value are, so that
masking, softmax, dropout and the fused kernels are the same for all of them. The first line of a class's
docstring is its formula: model cards quote it.

To add one: a class with `query_key_value`, its line in `ATTENTION`, its word in the schema's enum
(workflow/schemas/config.schema.yaml) and in `sweep.attention` of the configuration. docs/operators.md says more.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from transformers import BertConfig
from transformers import initialization as init
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import eager_attention_forward

from symbert.syntax import unknown_operator

QueryKeyValue = tuple[Tensor, Tensor, Tensor]  # each `batch heads token head`


class SelfAttention(nn.Module, ABC):
    """Multi-head self-attention in the place of Hugging Face's `BertSelfAttention`."""

    is_causal = False

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.num_attention_heads = config.num_attention_heads
        self.attention_head_size = config.hidden_size // config.num_attention_heads
        self.scaling = self.attention_head_size**-0.5

    @abstractmethod
    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        """Both sides of the dot product and what is mixed, from `batch token hidden`.

        Affine in `hidden`, token by token, or else `symbert.model.fold` refuses the operator.
        """

    def initialize(self) -> None:
        """Fill the parameters of this module itself; its Linear layers get BERT's N(0, initializer_range)."""

    def forward(self, hidden: Tensor, attention_mask: Tensor | None = None, **kwargs) -> tuple[Tensor, Tensor | None]:
        """Mixed values `batch token hidden` and, with the eager kernel only, the attention weights."""
        query, key, value = self.query_key_value(hidden)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        dropout = self.config.attention_probs_dropout_prob if self.training else 0.0
        mixed, weights = attend(
            self, query, key, value, attention_mask, dropout=dropout, scaling=self.scaling, **kwargs
        )
        return mixed.reshape(hidden.shape).contiguous(), weights

    def projection_of_hidden(self) -> nn.Linear:
        """A new projection of the hidden states to all heads, with biases."""
        return nn.Linear(self.config.hidden_size, self.config.hidden_size)

    def split_heads(self, hidden: Tensor) -> Tensor:
        """`batch token hidden` as `batch heads token head`."""
        return hidden.unflatten(-1, (self.num_attention_heads, self.attention_head_size)).transpose(1, 2)


class OriginalAttention(SelfAttention):
    """Q(x) · K(y): separate projections for the two sides.

    Vaswani et al. 2017; the paper's equation 2. Equal to Hugging Face's own.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.query = self.projection_of_hidden()
        self.key = self.projection_of_hidden()
        self.value = self.projection_of_hidden()

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        return tuple(self.split_heads(project(hidden)) for project in (self.query, self.key, self.value))


class SymmetricAttention(SelfAttention):
    """Q(x) · Q(y): one projection for both sides, so x scores y as y scores x.

    The paper's equation 3.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.query = self.projection_of_hidden()
        self.value = self.projection_of_hidden()

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        query = self.split_heads(self.query(hidden))
        return query, query, self.split_heads(self.value(hidden))


class PairwiseAttention(SymmetricAttention):
    """Q(x) S Q(y)ᵀ: one projection for both sides and a free head × head matrix S per head.

    The paper's equation 6. S starts as N(0, 1), as in the authors' code; it is not constrained, so the scores
    are not symmetric. It is applied to the query, which leaves a plain dot product for the fused kernels.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        head = self.attention_head_size
        self.pairwise_factors = nn.Parameter(torch.empty(self.num_attention_heads, head, head))

    def initialize(self) -> None:
        init.normal_(self.pairwise_factors, 0.0, 1.0)

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        query, key, value = super().query_key_value(hidden)
        return query @ self.pairwise_factors, key, value


class SharedAttention(SelfAttention):
    """(P(x) ∘ a) · (P(y) ∘ b), values P(y) ∘ c: one projection P for query, key and value, with vectors a, b, c.

    Kowsher et al. 2024, arXiv 2412.00359, where P is S and the vectors are the diagonals of D_q, D_k, D_v. They
    start as ones: its scores start as those of `symmetric`.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.projection = self.projection_of_hidden()
        self.query_scale = nn.Parameter(torch.empty(config.hidden_size))
        self.key_scale = nn.Parameter(torch.empty(config.hidden_size))
        self.value_scale = nn.Parameter(torch.empty(config.hidden_size))

    def initialize(self) -> None:
        for scale in (self.query_scale, self.key_scale, self.value_scale):
            init.ones_(scale)

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        shared = self.projection(hidden)
        scales = (scale.to(shared.dtype) for scale in (self.query_scale, self.key_scale, self.value_scale))
        return tuple(self.split_heads(shared * scale) for scale in scales)


class WideLinear(nn.Linear):
    """A Linear layer whose weights start as N(0, `deviation`) and whose biases start as zeros."""

    def __init__(self, features: int, deviation: float) -> None:
        self.deviation = deviation
        super().__init__(features, features)

    def initialize(self) -> None:
        init.normal_(self.weight, 0.0, self.deviation)
        init.zeros_(self.bias)


class OriginalGainAttention(OriginalAttention):
    """Q(x) · K(y), where Q starts √head wider than in `original`: a control of the start.

    Its initial logits are as wide as those of `pairwise`, whose N(0, 1) factors multiply a query's standard
    deviation by √head. The draws are those of `original`.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.query = WideLinear(config.hidden_size, self.attention_head_size**0.5 * config.initializer_range)


class PairwiseIdentityAttention(PairwiseAttention):
    """Q(x) S Q(y)ᵀ, where S starts as the identity: a control of the start.

    Its scores start as those of `symmetric`.
    """

    def initialize(self) -> None:
        identity = torch.eye(self.attention_head_size, device=self.pairwise_factors.device)
        init.copy_(self.pairwise_factors, identity.expand_as(self.pairwise_factors))


class PairwiseScaledAttention(PairwiseAttention):
    """Q(x) S Q(y)ᵀ, where S starts as N(0, 1/head): a control of the start.

    The draws are those of `pairwise` divided by √head, which keep a query's standard deviation.
    """

    def initialize(self) -> None:
        init.normal_(self.pairwise_factors, 0.0, self.attention_head_size**-0.5)


ATTENTION: dict[str, type[SelfAttention]] = {
    "original": OriginalAttention,
    "symmetric": SymmetricAttention,
    "pairwise": PairwiseAttention,
    "shared": SharedAttention,
    "original-gain": OriginalGainAttention,
    "pairwise-identity": PairwiseIdentityAttention,
    "pairwise-scaled": PairwiseScaledAttention,
}


def attention_class(name: str) -> type[SelfAttention]:
    """The operator of that name; ConfigError for an unknown one."""
    if name in ATTENTION:
        return ATTENTION[name]
    raise unknown_operator(name, list(ATTENTION))
