"""How wide a model's attention logits are and how flat its attention is: the scale that an operator starts with."""

import copy
import math

import torch
from torch import Tensor, nn

from symbert.errors import DivergedError
from symbert.model.attention import SelfAttention
from symbert.model.layers import CrossAttention
from symbert.model.rotary import turned_sides
from symbert.model.sites import mask_for, query_key_value


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
