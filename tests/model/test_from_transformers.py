"""Ours beside transformers' own functions: equal to the bit."""

import pytest
import torch
from torch import nn
from transformers.integrations import sdpa_attention
from transformers.models.bert import modeling_bert

from symbert.model import from_transformers


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_attention_mask_weights_and_dropout_are_theirs(kind, dropout):
    module = nn.Module().train()
    module.is_causal = False
    generator = torch.Generator().manual_seed(0)
    sides = [torch.randn(2, 3, 5, 4, generator=generator) for _ in range(3)]
    own, name = from_transformers, f"{kind}_attention_forward"
    theirs = getattr(sdpa_attention if kind == "sdpa" else modeling_bert, name)
    for mask in (torch.zeros(2, 1, 5, 5).masked_fill(torch.arange(5) > 3, -1e9), None):
        found = []
        for attend in (own.ALL_ATTENTION_FUNCTIONS.get_interface(kind, own.eager_attention_forward), theirs):
            torch.manual_seed(1)
            found.append(attend(module, *sides, mask, dropout=dropout, scaling=0.4))
        (mixed, weights), (its_mixed, its_weights) = found
        assert torch.equal(mixed, its_mixed) and mixed.is_contiguous()
        assert weights is its_weights if kind == "sdpa" else torch.equal(weights, its_weights)
