"""The part of Hugging Face's transformers that attention needs, under its names, without importing transformers, which
takes seconds. Results are equal to the bit.

An operator's code ends where transformers begins, and so it ends here: another line of this file changes no run's key.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.errors import ConfigError

Attention = Callable[..., tuple[Tensor, Tensor | None]]  # mixed values `batch token heads head`, and the weights


class BertConfig(Protocol):
    """The keys of a configuration, ours or Hugging Face's, that an operator may read."""

    hidden_size: int
    num_attention_heads: int
    initializer_range: float  # standard deviation of a weight at its start
    attention_probs_dropout_prob: float
    _attn_implementation: str


def refuse_other_shapes(module: nn.Module, query: Tensor, key: Tensor, value: Tensor) -> None:
    """ConfigError for query, key and value of an operator that are not `batch heads token head`.

    Query and key may share another width of head, and key and value may have one head, or one row, for all.
    """
    heads, head = module.num_attention_heads, module.attention_head_size
    for name, side in {"query": query, "key": key, "value": value}.items():
        counts = (heads,) if name == "query" else (heads, 1)
        length, width = (key.shape[-2], head) if name == "value" else (side.shape[-2], query.shape[-1])
        is_right = side.ndim == 4 and side.shape[0] in (len(query), 1) and side.shape[1] in counts
        if not is_right or side.shape[2:] != (length, width):
            raise ConfigError(
                f"attention '{module.config.attention}': {name} has shape {shown(side)}, expected batch heads token "
                f"head with {heads} heads of {head}; self.split_heads makes it of batch token hidden"
            )


def shown(tensor: Tensor) -> str:
    """The shape of a tensor in words: 8 × 16 × 64."""
    return " × ".join(map(str, tensor.shape)) or "of a single number"


normal_, ones_, zeros_, copy_ = nn.init.normal_, nn.init.ones_, nn.init.zeros_, Tensor.copy_


def sdpa_attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs,
) -> tuple[Tensor, None]:
    """PyTorch's kernels, which give no weights. In a causal module without a mask, a token sees no later ones."""
    refuse_other_shapes(module, query, key, value)
    is_causal = module.is_causal and attention_mask is None and query.shape[2] > 1
    mixed = F.scaled_dot_product_attention(
        query, key, value, attn_mask=attention_mask, dropout_p=dropout, scale=scaling, is_causal=is_causal
    )
    return mixed.transpose(1, 2).contiguous(), None


def eager_attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float = 1.0,
    **kwargs,
) -> tuple[Tensor, Tensor]:
    """Step by step, with the weights `batch heads token token`; a mask is added to the logits, or hides where it is
    false."""
    refuse_other_shapes(module, query, key, value)
    if attention_mask is not None and attention_mask.dtype == torch.bool:
        lowest = torch.finfo(query.dtype).min
        attention_mask = torch.zeros(1, dtype=query.dtype, device=query.device).masked_fill(~attention_mask, lowest)
    logits = (query @ key.transpose(2, 3)) * scaling
    weights = (logits if attention_mask is None else logits + attention_mask).softmax(-1)
    weights = F.dropout(weights, dropout, module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


class AttentionFunctions:
    """Attention by the name of its kernel."""

    def get_interface(self, name: str, default: Attention) -> Attention:
        """The function of that name; the default for `eager`."""
        return {"sdpa": sdpa_attention_forward, "eager": default}[name]


ALL_ATTENTION_FUNCTIONS = AttentionFunctions()
