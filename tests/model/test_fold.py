"""Folded models: stock classes of Hugging Face with equal logits, and operators that no BERT equals."""

from itertools import product

import pytest
import torch
from transformers import BertForMaskedLM, BertForSequenceClassification, BertLMHeadModel

from model.models import (
    FOLDING,
    IDS,
    MASK,
    NOT_FOLDING,
    Doubled,
    LateMixing,
    Near,
    Rectified,
    Shifted,
    Unscaled,
    define,
    dense,
    moved,
    small_config,
    started,
    trained,
    widened,
)
from symbert.errors import ConfigError, IntegrityError
from symbert.model import bert
from symbert.model.hf import fold

STOCK = {"masked": BertForMaskedLM, "classification": BertForSequenceClassification}


@pytest.mark.parametrize(("attention", "head"), [*product(FOLDING, ["masked"]), ("pairwise", "classification")])
def test_a_folded_model_has_equal_logits_and_the_model_stays_as_it_was(attention, head):
    model = trained(attention, head).double()
    before, config = {name: values.clone() for name, values in model.state_dict().items()}, model.config.to_dict()
    folded = fold(model)
    assert type(folded) is STOCK[head] and folded.dtype == torch.float64 and not folded.training
    assert model.config.to_dict() == config
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())
    for mask in (None, MASK):
        expected = dense(model, IDS, mask)
        torch.testing.assert_close(folded(IDS, attention_mask=mask).logits, expected, rtol=0, atol=1e-12)
    assert expected.std() > 0.1  # the tolerance is small beside what is compared


@pytest.mark.parametrize("attention", FOLDING)
def test_a_folded_decoder_has_equal_logits(attention):
    model = moved(bert.DecoderModel(small_config(attention)))
    folded = fold(model)
    assert type(folded) is BertLMHeadModel and folded.config.is_decoder
    torch.testing.assert_close(folded(IDS).logits, model(IDS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("attention", ["pairwise", "shared"])
def test_a_folded_base_is_as_near_to_the_exact_logits_as_the_unfolded(attention):
    """1e-5 was believed of any weights: with N(0, 0.05²) added, pairwise differs by 1e-4, as float32 does."""
    model = started("base", attention)
    torch.testing.assert_close(fold(model)(IDS).logits, dense(model, IDS), rtol=0, atol=1e-5)
    model = widened(model, 0.05)
    unfolded, folded = dense(model, IDS), fold(model)(IDS).logits
    exact = dense(model.double(), IDS)
    largest = exact.abs().max()
    assert (folded - unfolded).abs().max() <= 1e-4 * largest
    assert (folded - exact).norm() <= 2 * (unfolded - exact).norm() and largest > 3


def test_an_operator_that_no_bert_equals_is_refused_by_name(monkeypatch):
    """Attention masked beyond 16 tokens was folded "exactly" into a BERT that differs from the 17th token on."""
    for operator in (Rectified, Shifted, Unscaled, LateMixing, Near, Doubled):
        define(monkeypatch, "own", operator)
        with pytest.raises(ConfigError, match="attention 'own' has no equal BERT"):
            fold(trained("own"))
    for architecture, name in product((bert.MaskedModel, bert.DecoderModel), NOT_FOLDING):
        reason = "affine in each hidden state" if name in ("qk-norm", "coupled") else "forward of its own"
        with pytest.raises(ConfigError, match=f"attention '{name}' has no equal BERT, .*{reason}"):
            fold(moved(architecture(small_config(name))))


def test_weights_that_are_not_finite_are_refused_although_attention_gives_zeros_for_them():
    model = trained("pairwise")
    model.bert.encoder.layer[1].attention.self.pairwise_factors.data[:] = float("nan")
    with pytest.raises(IntegrityError, match=r"'bert\.encoder\.layer\.1.*pairwise_factors' is not finite"):
        fold(model)


def test_a_product_that_overflows_the_type_of_the_model_is_refused():
    model = trained("pairwise").half()
    attention = model.bert.encoder.layer[0].attention.self
    attention.pairwise_factors.data[:] = attention.query.weight.data[:] = 1000
    with pytest.raises(IntegrityError, match=r"plain BERT in torch\.float16: 'bert.*query.weight' is not finite"):
        fold(model)
