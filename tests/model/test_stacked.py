"""Models computed as one against the same models one by one, in float64."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from model.models import MIXING, Bottleneck, Measured, Rectified, Tied, define, started, widened
from symbert.model import packed
from symbert.model.packed import Packing
from symbert.model.stacked import Draws, Stack, StackedEmbedding, why_not_stacked
from symbert.operators import OPERATORS

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def no_operator_seen(monkeypatch):
    """As in a process that has seen no operator yet."""
    monkeypatch.setattr(packed, "_encoders", {})


def stack_of(together):
    return nn.Parameter(torch.stack(list(together)))


@given(st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=1, max_size=4))
def test_what_fills_up_a_seed_has_an_empty_slot_of_its_own_rows(lengths):
    packing, longest, tokens = Packing.of(np.array(lengths), CPU), max(map(max, lengths)), max(map(sum, lengths))
    slots = packing.slots.view(len(lengths), tokens)
    assert len(slots.unique()) == slots.numel()
    for seed, own in enumerate(lengths):
        alone, begin = Packing.of(np.array(own), CPU), seed * len(own) * longest
        rows = alone.slots // max(own) * longest + alone.slots % max(own)
        assert slots[seed, : sum(own)].tolist() == (begin + rows).tolist()
        filling = slots[seed, sum(own) :]
        assert ((filling >= begin) & (filling < begin + len(own) * longest)).all()
        assert not packing.attended.flatten()[filling].any()
        assert packing.first.view(len(lengths), -1)[seed].tolist() == (alone.first + seed * tokens).tolist()


@given(st.integers(1, 4), st.floats(0.01, 10), st.integers(0, 99))
def test_the_gradient_of_each_seed_is_clipped_as_pytorch_clips_one(seeds, limit, number):
    torch.manual_seed(number)
    models = {seed: nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)).double() for seed in range(seeds)}
    stack = Stack(models)
    for together in stack.model.parameters():
        scale = 10 ** torch.linspace(-1, 1, seeds, dtype=torch.float64)
        together.grad = torch.randn_like(together) * scale.view(-1, *[1] * (together.ndim - 1))
    for seed, model in enumerate(models.values()):
        for own, together in zip(model.parameters(), stack.model.parameters(), strict=True):
            own.grad = together.grad[seed].clone()
    norms = stack.clip(limit)
    for seed, model in enumerate(models.values()):
        norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
        assert norms[seed].item() == pytest.approx(norm.item(), rel=1e-12)
        for own, together in zip(model.parameters(), stack.model.parameters(), strict=True):
            torch.testing.assert_close(together.grad[seed], own.grad, rtol=1e-12, atol=0)


def test_dropout_of_each_seed_is_to_the_bit_that_of_pytorch_after_its_seed():
    draws, values, share = Draws([3, 8], CPU), torch.ones(2, 6, 5), 0.3
    draws.begin(np.array([[4, 2], [1, 3]]))
    dropped = [draws.dropout(values, share) for _ in range(2)]
    for place, (seed, tokens) in enumerate(((3, 6), (8, 4))):
        torch.manual_seed(seed)
        for found in dropped:
            assert torch.equal(found[place, :tokens], F.dropout(values[place, :tokens], share))
            assert not found[place, tokens:].any()


def test_attention_drops_weights_as_pytorch_does_for_each_seed_alone():
    lengths, share = np.array([[4, 2, 3], [1, 5, 2]]), 0.4
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 6, 2, 5, 4, dtype=torch.float64)
    attended = torch.from_numpy(np.arange(5) < lengths.reshape(-1, 1))[:, None, None]
    draws = Draws([3, 8], CPU)
    draws.begin(lengths)
    both = (
        draws.attend(query, key, value, attended, share, 0.7),
        draws.attend(query[:, :, :1], key, value, attended, share, 0.7),
    )
    for place, seed in enumerate((3, 8)):
        rows, longest = slice(3 * place, 3 * place + 3), lengths[place].max()
        torch.manual_seed(seed)
        for found, queries in zip(both, (longest, 1), strict=True):
            own = query[rows, :, :queries], key[rows, :, :longest], value[rows, :, :longest]
            mask = attended[rows, :, :, :longest]
            alone = F.scaled_dot_product_attention(*own, attn_mask=mask, dropout_p=share, scale=0.7)
            torch.testing.assert_close(found[rows, :, :queries], alone, rtol=0, atol=1e-12)


def test_the_embedding_of_padding_is_not_trained():
    tables = [nn.Embedding(5, 3, padding_idx=2).double() for _ in range(2)]
    together, ids = StackedEmbedding(tables, stack_of), torch.tensor([[2, 1, 2], [4, 2, 1]])
    found = together(ids)
    (found**3).sum().backward()
    for seed, table in enumerate(tables):
        alone = table(ids[seed])
        (alone**3).sum().backward()
        assert torch.equal(found[seed], alone) and torch.equal(together.weight.grad[seed], table.weight.grad)


@pytest.mark.parametrize("attention", OPERATORS)
def test_every_operator_of_ours_but_one_with_a_forward_of_its_own_is_stacked(attention):
    refused = why_not_stacked(started("tiny", attention, "classification"))
    assert refused == ("mixes tokens or has a forward of its own" if attention == "symmetric-others" else None)


@pytest.mark.parametrize("operator", [Rectified, Bottleneck])
def test_operators_of_a_user_are_stacked(monkeypatch, operator):
    define(monkeypatch, "own", operator)
    assert why_not_stacked(started("tiny", "own", "classification")) is None


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        *((operator, "mixes tokens or has a forward of its own") for operator in MIXING),
        (Measured, "cannot be computed by torch.vmap (RuntimeError: vmap: It looks like you're calling .item()"),
        (Tied, "shares weights between its layers"),
    ],
)
def test_what_cannot_be_stacked_says_why(monkeypatch, operator, reason):
    define(monkeypatch, "own", operator)
    assert why_not_stacked(started("tiny", "own", "classification")).startswith(reason)


def test_what_computes_something_else_under_vmap_is_found(monkeypatch):
    define(monkeypatch, "own", Rectified)
    model = started("tiny", "own", "classification")
    monkeypatch.setattr("symbert.model.stacked.functional_call", lambda code, weights, inputs: code(*inputs))
    assert why_not_stacked(model) == "computes something else under torch.vmap"


def test_weights_come_back_to_the_model_of_their_seed():
    first = started("tiny", "pairwise", "classification")
    models = {3: first, 8: widened(copy.deepcopy(first), 0.1)}
    before = {seed: copy.deepcopy(model.state_dict()) for seed, model in models.items()}
    stack = Stack(models)
    with torch.no_grad():
        for together in stack.model.parameters():
            together += torch.tensor([1.0, 2.0]).view(2, *[1] * (together.ndim - 1))
    stack.write_back()
    for moved, (seed, model) in zip((1, 2), models.items(), strict=True):
        for name, weights in model.named_parameters():
            torch.testing.assert_close(weights, before[seed][name] + moved)
