"""The operators of studies, which `operators` of a configuration names by module and class.

{pairwise-slow-query: {class: "studies.operators:PairwiseSlowQueryAttention"}}
"""

from torch import Tensor

from symbert.model.attention import PairwiseAttention, WideLinear
from symbert.model.from_transformers import BertConfig
from symbert.operators import Description


class SlowLinear(WideLinear):
    """A Linear layer that AdamW moves `slowness` times as slowly: its parameters are so many times its weights."""

    def __init__(self, features: int, deviation: float, slowness: float) -> None:
        super().__init__(features, deviation * slowness)
        self.slowness = slowness

    def forward(self, hidden: Tensor) -> Tensor:
        return super().forward(hidden) / self.slowness


class PairwiseSlowQueryAttention(PairwiseAttention):
    """Q(x) S Q(y)ᵀ, where Q learns at a rate divided by head^¼: a control of how far a step moves the logits.

    The initial function is that of `pairwise` of the same seed, to rounding.
    """

    description = Description(control_of="pairwise", color="#56B4E9", marker="v", line="dotted")

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.query = SlowLinear(config.hidden_size, config.initializer_range, self.attention_head_size**0.25)
