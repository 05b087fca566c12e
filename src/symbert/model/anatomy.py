"""Measurements of attention: width of the logits, entropy of the weights, and the structure of each head's projections.

The scores of W_Q W_Kᵀ are those of Saponati et al., "The underlying structures of self-attention: symmetry,
directionality, and emergent dynamics in Transformer training", ICML 2025, arXiv 2502.10927.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from symbert.errors import DivergedError
from symbert.model.attention import SelfAttention
from symbert.model.bert import OF_QUERY_AND_KEY, Attention, BaseModel, Bert, checked_pair, mask_for
from symbert.model.projections import in_rows

DEVIATIONS = 2  # above the mean: rows and columns that count for the directionality, as in the authors' code
ROUNDING = 1e-6  # of weights in float32, relative


@torch.no_grad()
def _visit(model: Bert, ids: Tensor, describe: Callable[[SelfAttention, Tensor], None]) -> None:
    """Call `describe(operator, hidden)` of each layer in turn, as the model computes without dropout."""
    hooks = [
        module.register_forward_pre_hook(lambda module, given: describe(module.self, given[0]))
        for module in model.modules()
        if isinstance(module, Attention)
    ]
    was_training = model.training
    try:
        model.eval()(ids)
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()


def describe_attention(model: BaseModel, ids: Tensor) -> dict[str, list[float]]:
    """`logit_std` and `attention_entropy` (nats, at most ln(token)) of each layer, without dropout, on `ids` (batch
    token, no padding). A list is empty where a class with a `forward` of its own does not say: nobody knows its logits,
    and its weights where it returns none.

    The standard deviation is over all pairs of tokens of all heads and sequences, the entropy a mean over all tokens.
    Needs memory for the logits of one layer: give few sequences. DivergedError where a number is not finite.
    """
    numbers: list[tuple[float | None, float | None]] = []

    def describe(operator: SelfAttention, hidden: Tensor) -> None:
        pairs = logits_of(operator, hidden)
        if type(operator).forward is SelfAttention.forward and not operator.is_causal:
            entropies = -(pairs.softmax(-1) * pairs.log_softmax(-1)).sum(-1)
        else:
            weights = weights_of(operator, hidden)
            entropies = None if weights is None else _entropy(weights)
        std = None if pairs is None else pairs.std(correction=0).item()
        numbers.append((std, None if entropies is None else entropies.mean().item()))

    _visit(model.bert, ids, describe)
    for layer, pair in enumerate(numbers, 1):
        if not all(math.isfinite(number) for number in pair if number is not None):
            raise DivergedError(
                f"attention '{model.config.attention}': the logits of layer {layer} are not finite, or too large for "
                "32 bits; start it with smaller weights (`symbert check-operator` shows where)"
            )
    stds, entropies = ([number for number in column if number is not None] for column in zip(*numbers, strict=True))
    return {"logit_std": stds, "attention_entropy": entropies}


def logit_step(model: BaseModel, ids: Tensor, step: Callable[[], None]) -> list[float]:
    """How far `step`, which changes the weights of the operators, moves the logits of each layer: the mean absolute
    change between distinct tokens of `ids` (batch token, no padding), on the hidden states from before the step.

    So a layer's number is its own operator's, whatever moves beneath it. Empty, and no step taken, where a class with a
    `forward` of its own decides the logits; empty where a number is not finite, which is for the training to refuse.
    """
    layers: list[tuple[SelfAttention, SelfAttention, Tensor]] = []
    _visit(model.bert, ids, lambda operator, hidden: layers.append((operator, copy.deepcopy(operator), hidden)))
    if type(layers[0][0]).forward not in OF_QUERY_AND_KEY:
        return []
    step()
    steps = []
    with torch.no_grad():
        for operator, before, hidden in layers:
            change = (logits_of(operator, hidden) - logits_of(before, hidden)).abs()
            own = torch.eye(*change.shape[-2:], dtype=torch.bool, device=change.device)
            steps.append(change[..., ~own].mean().item())
    return steps if all(map(math.isfinite, steps)) else []


def _entropy(weights: Tensor) -> Tensor:
    return torch.special.entr(weights).sum(-1)


def logits_of(operator: SelfAttention, hidden: Tensor) -> Tensor | None:
    """The logits of a layer without any mask, `batch heads token token`; None where a `forward` of the user's own, not
    query and key alone, decides them."""
    if type(operator).forward not in OF_QUERY_AND_KEY:
        return None
    query, key, _ = operator.query_key_value(hidden)
    return (query @ key.transpose(-1, -2)).float() * operator.scaling


def weights_of(operator: SelfAttention, hidden: Tensor) -> Tensor | None:
    """The attention weights of a layer by its own forward pass, `batch heads token token`; None where that gives
    none."""
    usual, operator.config = operator.config, copy.copy(operator.config)
    operator.config._attn_implementation = "eager"
    try:
        _, weights = checked_pair(operator, operator.forward(hidden, mask_for(operator, hidden)), hidden)
    finally:
        operator.config = usual
    return None if weights is None else weights.float()


def symmetry_of(matrix: Tensor) -> float:
    """(‖S‖² − ‖N‖²) / ‖M‖², where S and N are the symmetric and the skew-symmetric part of M: 1 for a symmetric matrix,
    −1 for a skew-symmetric one, about 0 for a random one."""
    return ((matrix * matrix.mT).sum() / (matrix**2).sum()).item()


def directionality_of(matrix: Tensor) -> float:
    """(c − r) / (c + r), where c sums the excess of norms of columns over their mean plus two deviations, r of rows: 1
    where only columns stand out, −1 where only rows do, 0 where none does."""
    columns, rows = (_excess(torch.linalg.vector_norm(matrix, dim=side)) for side in (0, 1))
    difference, total = columns - rows, columns + rows
    return difference / total if abs(difference) > ROUNDING * total else 0.0


def _excess(norms: Tensor) -> float:
    if norms.std() <= ROUNDING * norms.mean():
        return 0.0
    return (norms - norms.mean() - DEVIATIONS * norms.std()).clamp(min=0).sum().item()


def anatomy_of(model: Bert, rows: Tensor) -> list[dict[str, Any]]:
    """A dictionary per layer and head, both counted from 1, of a model with any operator.

    On `rows` (`batch token`, no padding) and without dropout: `logit_std` over all pairs of tokens, and as means over
    the tokens `attention_entropy` (nats) and `own_share`, the attention of a token to itself. `symmetry` and
    `directionality` are None for an operator that is not affine in the hidden states, token by token; the others
    where a class with a `forward` of its own does not say, as in `describe_attention`.
    """
    heads: list[dict[str, Any]] = []

    def describe(operator: SelfAttention, hidden: Tensor) -> None:
        layer = heads[-1]["layer"] + 1 if heads else 1
        logits, weights, products = logits_of(operator, hidden), weights_of(operator, hidden), _products(operator)
        own = None if weights is None or weights.shape[-2] != weights.shape[-1] else weights.diagonal(0, -2, -1)
        for head in range(operator.num_attention_heads):
            product = None if products is None else products[head]
            heads.append(
                {
                    "layer": layer,
                    "head": head + 1,
                    "symmetry": None if product is None else symmetry_of(product),
                    "directionality": None if product is None else directionality_of(product),
                    "logit_std": None if logits is None else logits[:, head].std(correction=0).item(),
                    "attention_entropy": None if weights is None else _entropy(weights[:, head]).mean().item(),
                    "own_share": None if own is None else own[:, head].mean().item(),
                }
            )

    _visit(model, rows, describe)
    return heads


def _products(operator: SelfAttention) -> Tensor | None:
    """W_Q W_Kᵀ of each head, `heads hidden hidden`, read off unit vectors; None where the sides are not affine."""
    hidden_size, longest = operator.config.hidden_size, operator.config.max_position_embeddings
    random = torch.randn(1, hidden_size, hidden_size, generator=torch.Generator().manual_seed(0))[0]
    inputs = [in_rows(tokens, longest) for tokens in (torch.zeros(random.shape), torch.eye(hidden_size), random)]
    sides = [operator.query_key_value(rows)[:2] for rows in inputs]
    if any(side.shape[2] != inputs[0].shape[1] for side in sides[0]):  # keys that are no tokens
        return None
    biases, weights, others = ([side.transpose(0, 1).flatten(1, 2) for side in of_rows] for of_rows in sides)
    query, key = (weight - bias for weight, bias in zip(weights, biases, strict=True))
    for other, bias, product in zip(others, biases, (random @ query, random @ key), strict=True):
        if not torch.allclose(other - bias, product, rtol=1e-3, atol=1e-3):
            return None
    return query.double() @ key.double().mT
