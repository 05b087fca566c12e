"""What the attention of a model looks like, head by head: its weights, and what it does with rows of text.

The scores of W_Q W_Kᵀ are those of Saponati et al., "The underlying structures of self-attention: symmetry,
directionality, and emergent dynamics in Transformer training", ICML 2025, arXiv 2502.10927.
"""

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from symbert.errors import DivergedError
from symbert.model.attention import SelfAttention
from symbert.model.bert import CrossAttention, mask_for, query_key_value
from symbert.model.from_transformers import turned_sides


@torch.no_grad()
def describe_attention(model: nn.Module, *inputs: Tensor) -> dict[str, list[float]]:
    """`logit_std` and `attention_entropy` (nats) of each layer, without dropout, on what the model reads: for BERT, ids
    (batch token). A layer that attends to a source, too, has a number of that after its own.

    The standard deviation is over all pairs of tokens of all heads and sequences, the entropy a mean over all
    tokens that attend; at most ln(token) nats. Padding that a layer is told of is no token. Needs memory for the logits
    of one layer: give few sequences. The model's mode stays as it was. DivergedError where a number is not finite.
    """
    found: list[tuple[float, float]] = []

    def describe(module: SelfAttention, inputs: tuple[Tensor, ...]) -> None:
        hidden, mask = (*inputs, None)[:2]
        pairs = logits = logits_of(module, hidden)
        if mask is not None and not module.is_causal:
            pairs = logits[(mask & mask.mT).expand_as(logits)]
            entropies = torch.special.entr(weights_of(module, hidden, mask)).sum(-1)
            entropies = entropies[mask.squeeze(-2).expand_as(entropies)]
        elif type(module).forward is SelfAttention.forward and not module.is_causal:
            entropies = -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)
        else:
            entropies = torch.special.entr(weights_of(module, hidden)).sum(-1)
        found.append((pairs.std(correction=0).item(), entropies.mean().item()))

    def describe_across(module: CrossAttention, inputs: tuple[Tensor, ...]) -> None:
        hidden, context, mask = inputs
        query, key, _ = query_key_value(module.self, hidden, context)
        logits = (query @ key.mT).float() * module.self.scaling
        weights = logits.masked_fill(~mask, -torch.inf).softmax(-1)
        pairs = logits[mask.expand_as(logits)]
        found.append((pairs.std(correction=0).item(), torch.special.entr(weights).sum(-1).mean().item()))

    hooks = [
        module.register_forward_pre_hook(describe if isinstance(module, SelfAttention) else describe_across)
        for module in model.modules()
        if isinstance(module, SelfAttention | CrossAttention)  # whose own operator is never called
    ]
    training = model.training
    try:
        model.eval().base_model(*inputs)
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    for layer, numbers in enumerate(found, 1):
        if not all(map(math.isfinite, numbers)):
            raise DivergedError(
                f"attention '{model.config.attention}': the logits of layer {layer} are not finite, or too large for "
                "32 bits; start it with smaller weights (`symbert check-operator` shows where)"
            )
    return {"logit_std": [std for std, _ in found], "attention_entropy": [entropy for _, entropy in found]}


def logits_of(module: SelfAttention, hidden: Tensor) -> Tensor:
    """The logits of a layer without any mask, `batch heads token token`."""
    query, key = turned_sides(module, *module.query_key_value(hidden)[:2])
    return (query @ key.transpose(-1, -2)).float() * module.scaling


def weights_of(module: SelfAttention, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
    """The attention weights of a layer by its own forward pass, `batch heads token token`.

    `mask`, `batch 1 1 token`, is true for a token that is none of padding. Of a forward pass that gives no weights, the
    softmax of the logits.
    """
    usual, module.config = module.config, copy.copy(module.config)
    module.config._attn_implementation = "eager"
    try:
        weights = module.forward(hidden, mask_for(module, hidden, mask))[1]
    finally:
        module.config = usual
    if weights is not None:
        return weights.float()
    logits = logits_of(module, hidden)
    return (logits if mask is None else logits.masked_fill(~mask, -torch.inf)).softmax(-1)


DEVIATIONS = 2  # above the mean: rows and columns that count for the directionality, as in the authors' code
ROUNDING = 1e-6  # of weights in float32, relative


def symmetry_of(matrix: Tensor) -> float:
    """(‖S‖² − ‖N‖²) / ‖M‖², where S and N are the symmetric and the skew-symmetric part of M: 1 for a symmetric matrix,
    −1 for a skew-symmetric one, about 0 for a random one."""
    return ((matrix * matrix.mT).sum() / (matrix**2).sum()).item()


def directionality_of(matrix: Tensor) -> float:
    """(c − r) / (c + r), where c is by how much norms of columns exceed their mean by more than two deviations, summed,
    and r that of rows: 1 where only columns stand out, −1 where only rows do, 0 where none does."""
    columns, rows = (_excess(torch.linalg.vector_norm(matrix, dim=side)) for side in (0, 1))
    difference, total = columns - rows, columns + rows
    return difference / total if abs(difference) > ROUNDING * total else 0.0


def _excess(norms: Tensor) -> float:
    return (
        (norms - norms.mean() - DEVIATIONS * norms.std()).clamp(min=0).sum().item()
        if norms.std() > ROUNDING * norms.mean()
        else 0.0
    )


@torch.no_grad()
def anatomy_of(model: nn.Module, rows: Tensor) -> list[dict[str, Any]]:
    """A dictionary per layer and head, both counted from 1, of whatever operator the model has.

    On `rows` (`batch token`, no padding) and without dropout: `logit_std` over all pairs of tokens, and as means over
    the tokens that attend `attention_entropy` (nats) and `own_share`, the attention of a token to itself.
    `symmetry` and `directionality` are None for an operator that is not affine in the hidden states, token by token.
    """
    heads: list[dict[str, Any]] = []

    def describe(module: SelfAttention, inputs: tuple[Tensor, ...]) -> None:
        layer = heads[-1]["layer"] + 1 if heads else 1
        logits, weights = logits_of(module, inputs[0]), weights_of(module, inputs[0])
        products = _products(module)
        for head in range(logits.shape[1]):
            product = None if products is None else products[head]
            heads.append(
                {
                    "layer": layer,
                    "head": head + 1,
                    "symmetry": None if product is None else symmetry_of(product),
                    "directionality": None if product is None else directionality_of(product),
                    "logit_std": logits[:, head].std(correction=0).item(),
                    "attention_entropy": torch.special.entr(weights[:, head]).sum(-1).mean().item(),
                    "own_share": weights[:, head].diagonal(dim1=-2, dim2=-1).mean().item(),
                }
            )

    layers = [module for module in model.modules() if isinstance(module, SelfAttention)]
    hooks = [layer.register_forward_pre_hook(describe) for layer in layers]
    try:
        model.eval()(rows)
    finally:
        for hook in hooks:
            hook.remove()
    return heads


def _products(module: SelfAttention) -> Tensor | None:
    """W_Q W_Kᵀ of each head, `heads hidden hidden`, read off unit vectors; None where that is not all there is."""
    hidden_size = module.config.hidden_size
    units, zeros = torch.eye(hidden_size)[None], torch.zeros(1, hidden_size, hidden_size)
    random = torch.randn(1, hidden_size, hidden_size, generator=torch.Generator().manual_seed(0))
    biases, weights, sides = (module.query_key_value(hidden)[:2] for hidden in (zeros, units, random))
    query, key = (side - bias for side, bias in zip(weights, biases, strict=True))
    for side, bias, product in zip(sides, biases, (random @ query, random @ key), strict=True):
        if not torch.allclose(side - bias, product, rtol=1e-3, atol=1e-3):
            return None
    return query[0].double() @ key[0].double().mT
