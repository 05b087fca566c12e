"""The width of an operator's initial logits: measured on its weights, and set to one that the configuration names.

Width is the standard deviation of the logits of two different tokens whose hidden states are independent N(0, 1), as
after a LayerNorm: √(mean over heads of ‖W_Q W_Kᵀ‖² / d), with weights h × d and without biases. What a token scores
with itself does not count: an operator with one projection for both sides begins with √d times the width there.
"""

import math

import torch

from symbert.errors import ConfigError
from symbert.model.attention import SelfAttention
from symbert.model.from_transformers import refuse_other_shapes
from symbert.operators import Operator

TOLERANCE = 1e-3  # of the width that was set, relative


@torch.no_grad()
def width_of(attention: SelfAttention) -> float:
    """The standard deviation of the logits of two independent tokens, over both and over the heads."""
    query, key = (side[0].double() for side in _weights(attention))
    products = (query.mT @ query) * (key.mT @ key)  # of a head they sum to the squared norm of W_Q W_Kᵀ
    return attention.scaling * math.sqrt(products.sum().item() / len(products))


def _weights(attention: SelfAttention) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key of unit vectors without the bias, `1 heads hidden head`."""
    device = next((parameter.device for parameter in attention.parameters()), None)
    units = torch.eye(attention.config.hidden_size, device=device)[None]
    sides, biases = attention.query_key_value(units), attention.query_key_value(torch.zeros_like(units[:, :1]))
    refuse_other_shapes(attention, *sides)
    return sides[0] - biases[0], sides[1] - biases[1]


@torch.no_grad()
def set_width(attention: SelfAttention, operator: Operator) -> None:
    """Multiply what `description.scaled` names by one factor, so that the width is that of the operator's `start`.

    Narrow is what `original` has on average at its usual start, h·σ² with weights of N(0, σ²), and wide what `pairwise`
    has, √d·h·σ². ConfigError for an operator that does not say what to scale, or whose width does not follow it.
    """
    narrow = attention.config.hidden_size * attention.config.initializer_range**2
    named = {"narrow": narrow, "wide": attention.attention_head_size**0.5 * narrow}
    target, before = named.get(operator.start, operator.start), width_of(attention)
    _scale(attention, operator.counted_as.scaled, 2.0)
    degree = (
        math.log2(max(width_of(attention) / before, 1.0)) if before else 0.0
    )  # how often the logits have the factor
    if degree > 0:
        _scale(attention, operator.counted_as.scaled, (target / before) ** (1 / degree) / 2)
    if not math.isclose(width_of(attention), target, rel_tol=TOLERANCE):
        raise ConfigError(
            f"attention '{operator.name}': its logits start {width_of(attention):.4g} wide, expected {target:.4g} by "
            f"'start'; name the weights to multiply in {operator.path}: description = Description(scaled='query key')"
        )


def _scale(attention: SelfAttention, scaled: str, factor: float) -> None:
    for name in scaled.split():
        part = getattr(attention, name, None)
        if not isinstance(part, torch.nn.Parameter) and not hasattr(part, "weight"):
            raise ConfigError(
                f"attention '{attention.config.attention}': 'scaled' of its description names '{name}', expected "
                "parameters and Linear layers of its class; correct it"
            )
        (part if isinstance(part, torch.nn.Parameter) else part.weight).mul_(factor)
