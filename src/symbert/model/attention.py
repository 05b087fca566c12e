"""Self-attention operators: how one token scores another.

Shapes: `batch token hidden` before the heads are split, `batch heads token head` after (hidden = heads · head).
Every operator's logits are `query · keyᵀ / √head`; an operator says only what query, key and value are, so that
masking, softmax, dropout and the fused kernels are the same for all of them.

A class here is an operator: `OriginalGainAttention` is original-gain in the configuration. The first line of its
docstring begins with its formula, and `description` is what tables and figures say of it. docs/operators.md shows how
to add one, here or in a package of one's own.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.operators import Description

if not TYPE_CHECKING:  # in a block: as part of transformers, which no operator's code covers (symbert.syntax)
    from symbert.model import from_transformers as init
    from symbert.model.from_transformers import ALL_ATTENTION_FUNCTIONS, BertConfig, eager_attention_forward

QueryKeyValue = tuple[Tensor, Tensor, Tensor]  # each `batch heads token head`


class SelfAttention(nn.Module, ABC):
    """Multi-head self-attention in the place of Hugging Face's `BertSelfAttention`."""

    is_causal = False
    description = Description()

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.num_attention_heads = config.num_attention_heads
        self.attention_head_size = config.hidden_size // config.num_attention_heads
        self.scaling = self.attention_head_size**-0.5

    @abstractmethod
    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        """Both sides of the dot product and what is mixed, from `batch token hidden`.

        Affine in `hidden`, token by token, or else `symbert.model.hf` refuses the operator.
        """

    def initialize(self) -> None:
        """Fill the parameters of this module itself; its Linear layers get BERT's N(0, initializer_range)."""

    def forward(self, hidden: Tensor, attention_mask: Tensor | None = None, **kwargs) -> tuple[Tensor, Tensor | None]:
        """Mixed values `batch token hidden` and, with the eager kernel only, the attention weights."""
        mixed, weights = self.attend(*self.query_key_value(hidden), attention_mask, **kwargs)
        return mixed.reshape(hidden.shape).contiguous(), weights

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs
    ) -> tuple[Tensor, Tensor | None]:
        """Mixed values `batch token heads head` and, with the eager kernel only, the attention weights."""
        kernel = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        dropout = self.config.attention_probs_dropout_prob if self.training else 0.0
        return kernel(self, query, key, value, attention_mask, dropout=dropout, scaling=self.scaling, **kwargs)

    def projection_of_hidden(self) -> nn.Linear:
        """A new projection of the hidden states to all heads, with biases."""
        return nn.Linear(self.config.hidden_size, self.config.hidden_size)

    def split_heads(self, hidden: Tensor) -> Tensor:
        """`batch token hidden` as `batch heads token head`."""
        return hidden.unflatten(-1, (self.num_attention_heads, self.attention_head_size)).transpose(1, 2)


class OriginalAttention(SelfAttention):
    """Q(x) K(y)ᵀ: separate projections for the two sides.

    Vaswani et al. 2017; the paper's equation 2. Equal to Hugging Face's own.
    """

    description = Description(
        parameters="3(h² + h)",
        leading="3h²",
        scaled="query key",
        color="#000000",
        marker="o",
        line="solid",
    )

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.query = self.projection_of_hidden()
        self.key = self.projection_of_hidden()
        self.value = self.projection_of_hidden()

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        return tuple(self.split_heads(project(hidden)) for project in (self.query, self.key, self.value))


class SymmetricAttention(SelfAttention):
    """Q(x) Q(y)ᵀ: one projection for both sides, so x scores y as y scores x.

    The paper's equation 3.
    """

    description = Description(
        parameters="2(h² + h)",
        leading="2h²",
        scaled="query",
        color="#E69F00",
        marker="s",
        line="dashed",
    )

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

    description = Description(
        parameters="2(h² + h) + h²/n",
        leading="2h² + h²/n",
        scaled="pairwise_factors",
        color="#0072B2",
        marker="^",
        line="solid",
    )

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
    """(P(x)∘a) (P(y)∘b)ᵀ, values P(y)∘c: one projection P for query, key and value, with vectors a, b, c.

    Kowsher et al. 2024, arXiv 2412.00359, where P is S and the vectors are the diagonals of D_q, D_k, D_v. They
    start as ones: its scores start as those of `symmetric`.
    """

    description = Description(
        parameters="(h² + h) + 3h",
        leading="h²",
        scaled="query_scale key_scale",
        color="#009E73",
        marker="D",
        line="dash-dot",
    )

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
    """Q(x) K(y)ᵀ, where Q starts √head wider than in `original`: a control of the initialization.

    Its initial logits are as wide as those of `pairwise`, whose N(0, 1) factors multiply a query's standard
    deviation by √head. The draws are those of `original`.
    """

    description = Description(control_of="original", color="#CC79A7", marker="P", line="long-dashed")

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.query = WideLinear(config.hidden_size, self.attention_head_size**0.5 * config.initializer_range)


class CopiedLinear(nn.Linear):
    """A Linear layer that starts with the weights of another one, which is drawn before it."""

    def __init__(self, source: nn.Linear) -> None:
        self.source = (source,)  # in a tuple, which makes it no part of this module
        super().__init__(source.in_features, source.out_features)

    def initialize(self) -> None:
        init.copy_(self.weight, self.source[0].weight)
        init.copy_(self.bias, self.source[0].bias)


class OriginalSymmetricAttention(OriginalAttention):
    """Q(x) K(y)ᵀ, where K starts as Q and is then trained freely: a control of the initialization.

    Its scores start as those of `symmetric` (Saponati et al. 2025, arXiv 2502.10927, start BERT in this way).
    """

    description = Description(control_of="original", color="#880066", marker="d", line="dashed")

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.key = CopiedLinear(self.query)


class OriginalUnscaledAttention(OriginalAttention):
    """√d Q(x) K(y)ᵀ: logits that are not divided by √d in the end, with the weights of `original` at the start.

    A control of the initialization: its logits are those of `original-gain`, and a step of training moves them further.
    The query carries the factor, so that a plain BERT equals it.
    """

    description = Description(control_of="original", color="#5500EE", marker="*", line="dotted")

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        query, key, value = super().query_key_value(hidden)
        return self.attention_head_size**0.5 * query, key, value


class PairwiseIdentityAttention(PairwiseAttention):
    """Q(x) S Q(y)ᵀ, where S starts as the identity: a control of the initialization.

    Its scores start as those of `symmetric`.
    """

    description = Description(control_of="pairwise", color="#56B4E9", marker="v", line="dotted")

    def initialize(self) -> None:
        identity = torch.eye(self.attention_head_size, device=self.pairwise_factors.device)
        init.copy_(self.pairwise_factors, identity.expand_as(self.pairwise_factors))


class PairwiseScaledAttention(PairwiseAttention):
    """Q(x) S Q(y)ᵀ, where S starts as N(0, 1/head): a control of the initialization.

    The draws are those of `pairwise` divided by √head, which keep a query's standard deviation.
    """

    description = Description(control_of="pairwise", color="#D55E00", marker="X", line="dash-dot-dot")

    def initialize(self) -> None:
        init.normal_(self.pairwise_factors, 0.0, self.attention_head_size**-0.5)


class SymmetricOthersAttention(SymmetricAttention):
    """Q(x) Q(y)ᵀ, where a token attends to the others only: a control of what a token scores with itself.

    A token that stands alone attends to itself. No plain BERT equals it.
    """

    description = Description(control_of="symmetric", color="#DD00DD", marker="H", line="long-dashed")

    def forward(self, hidden: Tensor, attention_mask: Tensor | None = None, **kwargs) -> tuple[Tensor, Tensor | None]:
        own = torch.eye(hidden.shape[1], dtype=torch.bool, device=hidden.device)[None, None]
        attended = ~own
        if attention_mask is not None:  # true, or zeros that are added to logits, where a token is attended
            attended = attended & (attention_mask if attention_mask.dtype == torch.bool else attention_mask == 0)
        attended = attended | (own & ~attended.any(-1, keepdim=True))
        if self.config._attn_implementation == "eager":
            attended = torch.zeros(1).to(hidden).masked_fill(~attended, torch.finfo(hidden.dtype).min)
        return super().forward(hidden, attended, **kwargs)


class QKNormAttention(OriginalAttention):
    """g √d Q(x) K(y)ᵀ/(‖Q(x)‖ ‖K(y)‖): the cosine of query and key, times √d and a gain g per head.

    Henry et al. 2020, arXiv 2010.04245; read were the abstract and the authors' code, which learns one gain for a layer
    that starts as log₂(L² − L)/√d for rows of L tokens. Of independent tokens g is the width of the initial logits.
    `learned: false` keeps it as it starts.
    """

    description = Description(
        parameters="3(h² + h) + learned n",
        leading="3h²",
        scaled="gain",
        color="#8A6D00",
        marker="<",
        line="dash-dot",
    )

    def __init__(self, config: BertConfig, gain: float = 1.0, learned: bool = True) -> None:
        super().__init__(config)
        self.start, gains = gain, torch.empty(self.num_attention_heads)
        if learned:
            self.gain = nn.Parameter(gains)
        else:
            self.register_buffer("gain", gains)

    def initialize(self) -> None:
        init.copy_(self.gain, torch.full_like(self.gain, self.start))

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        query, key, value = super().query_key_value(hidden)
        root = self.attention_head_size**0.5  # the norm of a side with numbers of mean square 1
        query = self.gain[:, None, None] * root * F.normalize(query, dim=-1)
        return query.to(value.dtype), (root * F.normalize(key, dim=-1)).to(value.dtype), value


class KeyValueAttention(SelfAttention):
    """Q(x) K(y)ᵀ, values K(y): one projection for key and value.

    Kayyam et al. 2026, arXiv 2606.04032 ("Q-K=V"); read were the abstract and the authors' code, not the paper.
    """

    description = Description(
        parameters="2(h² + h)",
        leading="2h²",
        scaled="query",
        color="#7F7F7F",
        marker="p",
        line="dashed",
    )

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.query = self.projection_of_hidden()
        self.key = self.projection_of_hidden()

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        key = self.split_heads(self.key(hidden))
        return self.split_heads(self.query(hidden)), key, key


class IdentityQueryAttention(SelfAttention):
    """½ x K(y)ᵀ: W_Q is the identity, so the query of a head is its part of the hidden state.

    Karbevski and Mijoski 2025, arXiv 2510.23912; read were the abstract and the authors' code, not the paper. The ½ is
    in their settings, where it also has a third of the weight decay of `original`, which is not set here.
    """

    description = Description(
        parameters="2(h² + h)",
        leading="2h²",
        scaled="key",
        color="#A0522D",
        marker=">",
        line="dotted",
    )

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.key = self.projection_of_hidden()
        self.value = self.projection_of_hidden()

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        key, value = self.split_heads(self.key(hidden)), self.split_heads(self.value(hidden))
        return 0.5 * self.split_heads(hidden).to(value.dtype), key, value


class CoupledAttention(OriginalAttention):
    """(Q(x) + t K(x)) (K(y) + t f(Q(y)))ᵀ: query and key of a token move each other by a step t before the scores.

    f is a perceptron with d inputs, d SiLU units and d outputs. Gahtan and Bronstein 2026, arXiv 2604.01683; the paper
    itself was not read. Its abstract says that one Euler step does what more steps and symplectic ones do; a review
    has the equations. Our choice: the width of f, that all heads of a layer share f and t, and where t starts.
    """

    description = Description(
        parameters="3(h² + h) + 2(h²/n² + h/n) + 1",
        leading="3h² + 2h²/n²",
        scaled="query key",
        color="#117733",
        marker="h",
        line="long-dashed",
    )

    def __init__(self, config: BertConfig, step: float = 0.1) -> None:
        super().__init__(config)
        head, self.start = self.attention_head_size, step
        self.dynamics = nn.Sequential(nn.Linear(head, head), nn.SiLU(), nn.Linear(head, head))
        self.step = nn.Parameter(torch.empty(1))

    def initialize(self) -> None:
        init.copy_(self.step, torch.full_like(self.step, self.start))

    def query_key_value(self, hidden: Tensor) -> QueryKeyValue:
        query, key, value = super().query_key_value(hidden)
        step = self.step.to(value.dtype)
        return query + step * key, key + step * self.dynamics(query), value


class ExclusiveAttention(OriginalAttention):
    """Q(x) K(y)ᵀ, where of the mixed values y of a token x only y − (y·v) v/‖v‖² is left, v = V(x): orthogonal to v.

    Zhai 2026, arXiv 2603.09078; the paper itself was not read. The formula is in its author's announcement, and the
    abstract says the same. A token still attends to itself (`symmetric-others` masks that). No plain BERT equals it.
    """

    description = Description(
        parameters="3(h² + h)",
        leading="3h²",
        scaled="query key",
        color="#332288",
        marker="8",
        line="dash-dot-dot",
    )

    def forward(self, hidden: Tensor, attention_mask: Tensor | None = None, **kwargs) -> tuple[Tensor, Tensor | None]:
        query, key, value = self.query_key_value(hidden)
        mixed, weights = self.attend(query, key, value, attention_mask, **kwargs)
        own = F.normalize(value.transpose(1, 2), dim=-1).to(mixed.dtype)
        mixed = mixed - (mixed * own).sum(-1, keepdim=True) * own
        return mixed.reshape(hidden.shape), weights
