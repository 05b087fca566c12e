import pytest
import torch
from transformers import BertForMaskedLM, BertForSequenceClassification, BertModel

from model.models import (
    FOLDING,
    HEADS,
    IDS,
    MASK,
    WITH_FORWARD,
    LateMixing,
    Rectified,
    Shifted,
    Unscaled,
    define,
    started,
    trained,
    widened,
)
from symbert.errors import ConfigError, IntegrityError
from symbert.model.hf import SymBertModel, fold

STOCK = {"masked": BertForMaskedLM, "classification": BertForSequenceClassification}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("attention", FOLDING)
def test_a_folded_model_has_equal_logits(attention, head):
    model = trained(attention, head).double()
    folded = fold(model)
    assert type(folded) is STOCK[head] and folded.dtype == torch.float64 and not folded.training
    for inputs in ({}, {"attention_mask": MASK}):
        found, expected = folded(IDS, **inputs).logits, model(IDS, **inputs).logits
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert expected.std() > 0.1  # the tolerance is small beside what is compared


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_base_as_it_starts_has_equal_logits_to_1e_5_in_float32(attention):
    model = started("base", attention)
    torch.testing.assert_close(fold(model)(IDS).logits, model(IDS).logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_a_folded_base_with_wide_weights_is_as_near_to_the_exact_logits_as_the_unfolded(attention):
    """1e-5 was believed of any weights: with N(0, 0.05²) added, pairwise differs by 1e-4, as float32 does."""
    model = widened(started("base", attention), 0.05)
    unfolded, folded = model(IDS).logits, fold(model)(IDS).logits
    exact = model.double()(IDS).logits
    largest = exact.abs().max()
    assert (folded - unfolded).abs().max() <= 1e-4 * largest
    assert (folded - exact).norm() <= 2 * (unfolded - exact).norm() and largest > 3


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_a_folded_encoder_has_equal_hidden_states(attention):
    model = SymBertModel(trained(attention).config).double().eval()
    folded = fold(model)
    assert type(folded) is BertModel
    expected = model(IDS, attention_mask=MASK)
    found = folded(IDS, attention_mask=MASK)
    torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.pooler_output, expected.pooler_output, rtol=0, atol=1e-12)


def test_folding_leaves_the_model_and_its_configuration_as_they_were():
    model = trained("shared")
    before, config = {name: values.clone() for name, values in model.state_dict().items()}, model.config.to_dict()
    fold(model)
    assert model.config.to_dict() == config and model.dtype == torch.float32
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())


@pytest.mark.parametrize("operator", [Rectified, Shifted, Unscaled, LateMixing, *WITH_FORWARD])
def test_an_operator_that_no_bert_equals_is_refused_by_name(operator, monkeypatch):
    """Attention masked beyond 16 tokens was folded "exactly" into a BERT that differs from the 17th token on."""
    define(monkeypatch, operator.__name__.lower(), operator)
    model = trained(operator.__name__.lower())
    with pytest.raises(ConfigError, match=f"attention '{operator.__name__.lower()}' has no equal BERT") as refusal:
        fold(model)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_although_attention_gives_zeros_for_them(value):
    model = trained("pairwise")
    model.bert.encoder.layer[1].attention.self.pairwise_factors.data[:] = value
    with pytest.raises(IntegrityError, match=r"'bert\.encoder\.layer\.1.*pairwise_factors' is not finite"):
        fold(model)


def test_a_product_that_overflows_the_type_of_the_model_is_refused():
    model = trained("pairwise").half()
    attention = model.bert.encoder.layer[0].attention.self
    attention.pairwise_factors.data[:] = attention.query.weight.data[:] = 1000
    with pytest.raises(IntegrityError, match=r"plain BERT in torch\.float16: 'bert.*query.weight' is not finite"):
        fold(model)
