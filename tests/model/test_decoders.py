"""Decoders beside Hugging Face's: no token sees a later one; and the operations of both architectures."""

import math

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertLMHeadModel

import model.models as models
from model.models import Averaged, LateMixing, Near, Rectified, Shifted, define, moved, small_config
from symbert.architectures import ARCHITECTURES, Rows
from symbert.errors import ConfigError
from symbert.model.anatomy import describe_attention
from symbert.model.attention import OriginalAttention
from symbert.model.bert import DecoderModel, MaskedModel, layer_weights

IDS = torch.randint(100, (2, 12), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_original_equals_stock_hugging_face(precision, tolerance):
    decoder = moved(DecoderModel(small_config())).to(precision)
    theirs = models.stock(decoder, BertLMHeadModel)
    assert list(decoder.state_dict()) == list(theirs.state_dict())
    expected = theirs(IDS).logits
    torch.testing.assert_close(decoder(IDS), expected, rtol=0, atol=tolerance)
    assert expected.std() > 0.1


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["original", "pairwise", "shared"])
def test_a_later_token_changes_no_earlier_logits_and_an_earlier_one_changes_all_that_follow(name, kernel):
    model = moved(DecoderModel(small_config(name, _attn_implementation=kernel)))
    expected = model(IDS)
    for place in (1, 5, 11):
        changed = IDS.clone()
        changed[:, place] = (changed[:, place] + 1) % 100
        found = model(changed)
        torch.testing.assert_close(found[:, :place], expected[:, :place], rtol=0, atol=1e-12)
        assert ((found - expected)[:, place:].abs().amax(-1) > 1e-6).all()


class Rolled(nn.Linear):
    """A projection of each token's successor."""

    def __init__(self, width):
        super().__init__(width, width)

    def forward(self, hidden):
        return super().forward(hidden.roll(-1, 1))


class Projected(OriginalAttention):
    """Of its own in a projection alone."""

    def __init__(self, config):
        super().__init__(config)
        self.query = Rolled(config.hidden_size)


class Inherited(Near):
    """Of a class that keeps tokens apart, with values that do not."""

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query, key, value + value.roll(-1, 2)


def test_an_operator_of_the_users_own_stands_there_or_is_refused_with_the_reason(monkeypatch):
    """One that changed a projection alone, or a method of a class that says it, trained a decoder on what follows."""
    define(monkeypatch, "own", Rectified)
    assert moved(DecoderModel(small_config("own")))(IDS).isfinite().all()
    for kind in (Averaged, Shifted, LateMixing, Projected, Inherited):
        define(monkeypatch, "own", kind)
        with pytest.raises(ConfigError, match="attention 'own'.* token_wise"):
            DecoderModel(small_config("own"))


FORWARD = {
    MaskedModel: lambda model: model.masked_logits(IDS, torch.arange(6)),
    DecoderModel: lambda model: model(IDS),
}


@pytest.mark.parametrize(("architecture", "rows"), [("encoder", Rows(100, 12, 6 / 24)), ("decoder", Rows(100, 13))])
def test_the_formula_of_flops_is_what_pytorch_counts(architecture, rows):
    for name in ("original", "pairwise", "shared"):
        config = small_config(name, _attn_implementation="eager")  # products that the counter sees on every device
        model = ARCHITECTURES[architecture].model_class(config)
        with FlopCounterMode(display=False) as counter:
            FORWARD[type(model)](model).sum().backward()
        assert (
            ARCHITECTURES[architecture].step_flops(config, layer_weights(model), rows, 2) == counter.get_total_flops()
        ), name


def test_the_model_compiles_to_one_graph():
    model = moved(DecoderModel(small_config("pairwise")))
    compiled = torch.compile(model.forward, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(IDS), model(IDS), rtol=0, atol=1e-12)


def test_a_described_token_attends_to_no_later_one():
    """Of even attention, the entropy is ln t of a decoder's token t."""
    model = moved(DecoderModel(small_config()))
    for layer in model.bert.encoder.layer:
        for parameter in layer.attention.self.query.parameters():
            parameter.data.zero_()
    described = describe_attention(model, IDS)
    assert described["attention_entropy"] == pytest.approx([math.log(math.factorial(12)) / 12] * 2)
    assert described["logit_std"] == pytest.approx([0, 0])
