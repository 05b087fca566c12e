"""The width of an operator's initial logits: measured on its weights, and set to one that the configuration names.

Width is the standard deviation of the logits of two different tokens whose hidden states are independent N(0, 1), as
after a LayerNorm. Of linear sides it is √(mean over heads of ‖W_Q W_Kᵀ‖² / d), with weights h × d; of others it is
measured. What a token scores with itself does not count: an operator with one projection for both sides begins with √d
times the width there.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from symbert.errors import ConfigError
from symbert.model.attention import SelfAttention
from symbert.model.from_transformers import refuse_other_shapes
from symbert.model.projections import in_rows
from symbert.operators import Operator

TOLERANCE = 1e-3  # of the width that was set, relative
REACH = 16  # the factors that are tried are 2^-REACH to 2^REACH


@torch.no_grad()
def width_of(attention: SelfAttention) -> float:
    """The standard deviation of the logits of two independent tokens, over both and over the heads.

    Measured between h tokens and h others. Both are orthogonal, of random directions and of norm √h, which LayerNorm
    gives them, and come with their opposites: exact for linear sides, as these have the moments of N(0, 1).
    """
    like = next(attention.parameters(), torch.empty(0))
    query, key = _sides(attention, _tokens(attention.config.hidden_size).to(like))
    squares = ((query.mT @ query) * (key.mT @ key)).sum((1, 2)) / (query.shape[1] * key.shape[1])  # mean (q · k)²
    means = (query.mean(1) * key.mean(1)).sum(1)
    return attention.scaling * math.sqrt(max(squares.mean().item() - means.mean().item() ** 2, 0.0))


def _sides(attention: SelfAttention, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Query of the first and key of the last of `side … token hidden`, each `heads token head`, computed in rows no
    longer than the model's."""
    longest, is_training = attention.config.max_position_embeddings, attention.training
    attention.eval()  # without dropout
    sides = [attention.query_key_value(in_rows(some, longest)) for some in tokens]
    attention.train(is_training)
    for some in sides:
        refuse_other_shapes(attention, *some)
    query, key = (some.double().transpose(0, 1).flatten(1, 2) for some in (sides[0][0], sides[-1][1]))
    return query, key


@lru_cache(1)
def _tokens(size: int) -> Tensor:
    """`2 2 hidden hidden`: some tokens and others, each with the opposites."""
    drawn = torch.randn(2, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    tokens = size**0.5 * torch.linalg.qr(drawn)[0]
    return torch.stack([tokens, -tokens], 1)


@torch.no_grad()
def set_width(attention: SelfAttention, operator: Operator) -> None:
    """Multiply what `description.scaled` names by one factor, so that the width is that of the operator's `init_scale`.

    Narrow is what `original` has on average without an `init_scale`, h·σ² with weights of N(0, σ²), and wide what
    `pairwise` has, √d·h·σ². Of several factors it is one nearest to 1. ConfigError for an operator that does not say
    what to scale, and for one that no factor makes so wide, which says the widths that there are.
    """
    narrow = attention.config.hidden_size * attention.config.initializer_range**2
    named = {"narrow": narrow, "wide": attention.attention_head_size**0.5 * narrow}
    target, scaled = named.get(operator.init_scale, operator.init_scale), operator.scaled
    if not scaled:
        raise ConfigError(
            f"attention '{operator.name}': nothing says which weights 'init_scale' multiplies; name them in "
            f"{operator.path}: description = Description(scaled='query key')"
        )
    weights = _weights_named(attention, scaled)
    drawn = [each.clone() for each in weights]

    def scale(factor: float) -> None:
        for each, values in zip(weights, drawn, strict=True):
            each.copy_(values * factor)

    def width(power: float) -> float:
        scale(2.0**power)
        return width_of(attention)

    scale(_power_law(attention, scale, target))
    if math.isclose(width_of(attention), target, rel_tol=TOLERANCE):
        return
    power, widths = _searched(width, target)
    widths = [each for each in widths if math.isfinite(each)] or [math.nan]
    if not math.isclose(width(power), target, rel_tol=TOLERANCE):
        raise ConfigError(
            f"attention '{operator.name}': 'init_scale' asks for logits {target:.4g} wide, and times any factor "
            f"'{scaled}' gives {min(widths):.4g} to {max(widths):.4g}; write a number between as its 'init_scale', or "
            f"name other weights in 'scaled' of {operator.path}"
        )


def _power_law(attention: SelfAttention, scale: Callable[[float], None], target: float) -> float:
    """The factor for a width that grows as a power of it, as that of linear sides does; 1 where it does not grow."""
    before = _linear_width(attention)
    scale(2.0)
    growth = _linear_width(attention) / before if before else 1.0
    degree = math.log2(max(growth, 1.0))  # how often the logits have the factor
    return (target / before) ** (1 / degree) if degree > 0 else 1.0


def _linear_width(attention: SelfAttention) -> float:
    """The width by the responses of query and key to unit vectors, without biases."""
    like = next(attention.parameters(), torch.empty(0))
    units = torch.eye(attention.config.hidden_size).to(like)
    (query, key), biases = (_sides(attention, some[None]) for some in (units, torch.zeros_like(units)))
    query, key = query - biases[0], key - biases[1]
    products = (query.mT @ query) * (key.mT @ key)  # of a head they sum to the squared norm of W_Q W_Kᵀ
    return attention.scaling * math.sqrt(products.sum().item() / len(products))


def _searched(width: Callable[[float], float], target: float) -> tuple[float, list[float]]:
    """The power of two nearest to 1 by which the width, monotone or not, becomes the target or comes as near as it can;
    and the widths that were tried."""
    from scipy.optimize import brentq, minimize_scalar  # take a second

    widths = {0: width(0)}
    for reach in range(1, REACH + 1):
        for power, before in ((reach, reach - 1), (-reach, 1 - reach)):
            widths[power] = width(power)
            if (widths[power] - target) * (widths[before] - target) <= 0:
                return brentq(lambda power: width(power) - target, before, power, xtol=1e-9), [*widths.values()]
    nearest = min(widths, key=lambda power: abs(widths[power] - target))  # a peak may lie beside it
    power = minimize_scalar(lambda power: abs(width(power) - target), bounds=(nearest - 1, nearest + 1)).x
    return power, [*widths.values(), width(power)]


def _weights_named(attention: SelfAttention, scaled: str) -> list[Tensor]:
    parts = [(name, getattr(attention, name, None)) for name in scaled.split()]
    for name, part in parts:
        if not isinstance(part, Tensor) and not hasattr(part, "weight"):
            raise ConfigError(
                f"attention '{attention.config.attention}': 'scaled' of its description names '{name}', expected "
                "parameters and Linear layers of its class; correct it"
            )
    return [part if isinstance(part, Tensor) else part.weight for _, part in parts]
