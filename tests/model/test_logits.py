"""The scale that operators start with, against formulas in float64 and the measured values of the original sizes."""

import math

import pytest
import torch

from model.models import configured
from symbert.errors import DivergedError
from symbert.model.anatomy import describe_attention
from symbert.model.bert import MaskedModel, initialize
from symbert.operators import Operator


def model(attention: str, size: str = "tiny", **changes) -> MaskedModel:
    settings = configured(size, attention, vocabulary_size=2000)
    for name, value in changes.items():
        setattr(settings, name, value)
    built = MaskedModel(settings)
    initialize(built, 1)
    return built


def draw_ids(tokens: int, sequences: int = 1) -> torch.Tensor:
    return torch.randint(0, 2000, (sequences, tokens), generator=torch.Generator().manual_seed(0))


def written_out(attention: str, ids: torch.Tensor) -> dict[str, list[float]]:
    """Both numbers by explicit sums over the tokens' hidden states."""
    double = model(attention).double().eval()
    hidden = [double.bert.embeddings(ids)]
    for layer in double.bert.encoder.layer:
        hidden.append(layer(hidden[-1]))
    spreads, entropies = [], []
    for states, layer in zip(hidden, double.bert.encoder.layer, strict=False):
        query, key, _ = layer.attention.self.query_key_value(states)
        logits = torch.einsum("bhxd,bhyd->bhxy", query, key) / math.sqrt(query.shape[-1])
        attended = torch.ones_like(logits)
        if attention == "symmetric-others":
            attended -= torch.eye(logits.shape[-1])
        weights = attended * logits.exp() / (attended * logits.exp()).sum(-1, keepdim=True)
        spreads.append(((logits**2).mean() - logits.mean() ** 2).sqrt().item())
        entropies.append((weights * (1 / weights).log()).nansum(-1).mean().item())
    return {"logit_std": spreads, "attention_entropy": entropies}


def test_both_numbers_equal_their_formulas_in_float64():
    ids = draw_ids(tokens=11, sequences=3)
    for attention in ("original", "pairwise", "shared", "symmetric-others"):
        found, expected = describe_attention(model(attention), ids), written_out(attention, ids)
        for name in ("logit_std", "attention_entropy"):
            assert found[name] == pytest.approx(expected[name], rel=1e-5) and len(found[name]) == 2


def test_describing_leaves_the_model_and_the_random_numbers_as_they_were():
    trained = model("pairwise").train()
    torch.manual_seed(3)
    expected = trained.bert(draw_ids(8))  # with dropout
    torch.manual_seed(3)
    describe_attention(trained, draw_ids(8))
    assert torch.equal(trained.bert(draw_ids(8)), expected) and trained.training
    assert all(module.training and not module._forward_pre_hooks for module in trained.modules())


def test_normal_factors_start_with_logits_eight_times_wider_and_attention_less_even_than_original():
    """The confound of the paper's comparison in two layers of BERT-base on 512 random tokens, √64 = 8 apart."""
    measured = {"original": (0.305, 6.207, 0.005), "pairwise": (2.48, 4.44, 0.1)}
    for name, (deviation, entropy, tolerance) in measured.items():  # of at most ln 512 = 6.238
        described = describe_attention(model(name, "base", num_hidden_layers=2), draw_ids(512))
        assert described["logit_std"] == pytest.approx([deviation] * 2, rel=0.06)
        assert described["attention_entropy"] == pytest.approx([entropy] * 2, abs=tolerance)


def test_logits_that_are_not_finite_are_divergence():
    """A training that starts with them was an internal error."""
    own = Operator("own", "model.wrong_operators:Overflowing")
    with pytest.raises(DivergedError, match="attention 'own': the logits of layer 1 are not finite"):
        describe_attention(model(own), draw_ids(8))
