"""The causal decoder beside Hugging Face's, and what no operator may do in it: see a later token."""

import math

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertLMHeadModel

from model.models import FOLDING, Averaged, LateMixing, Near, Shifted, define, moved, small_config, stock
from symbert.errors import ConfigError
from symbert.hosts import HOSTS, Rows
from symbert.model.anatomy import describe_attention
from symbert.model.attention import OriginalAttention, SelfAttention
from symbert.model.bert import DecoderModel, layer_weights, mask_for
from symbert.model.hf import fold
from symbert.operators import OPERATORS

IDS = torch.randint(100, (2, 12), generator=torch.Generator().manual_seed(0))


def test_original_equals_stock_hugging_face():
    for precision, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        model = moved(DecoderModel(small_config())).to(precision)
        theirs = stock(model, BertLMHeadModel)
        assert list(model.state_dict()) == list(theirs.state_dict())
        expected = theirs(IDS).logits
        torch.testing.assert_close(model.logits(IDS), expected, rtol=0, atol=tolerance)
        assert expected.std() > 0.1


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["original", "pairwise", "shared"])
def test_a_later_token_changes_no_earlier_logits_and_an_earlier_one_changes_all_that_follow(name, kernel):
    model = moved(DecoderModel(small_config(name, _attn_implementation=kernel)))
    expected = model.logits(IDS)
    for place in (1, 5, 11):
        changed = IDS.clone()
        changed[:, place] = (changed[:, place] + 1) % 100
        found = model.logits(changed)
        torch.testing.assert_close(found[:, :place], expected[:, :place], rtol=0, atol=1e-12)
        assert ((found - expected)[:, place:].abs().amax(-1) > 1e-6).all()


def written_out(module: SelfAttention, hidden: torch.Tensor) -> torch.Tensor:
    """Mixed values, a token at a time, over the tokens that it sees; the first of symmetric-others sees itself."""
    query, key, value = module.query_key_value(hidden)
    own = OPERATORS["symmetric-others"].path.endswith(type(module).__name__)
    mixed = torch.zeros_like(value)
    for token in range(hidden.shape[1]):
        seen = list(range(token + 1))[: token if own and token else None]
        logits = torch.stack([(query[:, :, token] * key[:, :, other]).sum(-1) for other in seen], -1)
        shares = (logits / math.sqrt(key.shape[-1])).exp()
        shares = shares / shares.sum(-1, keepdim=True)
        mixed[:, :, token] = sum(shares[..., [at]] * value[:, :, other] for at, other in enumerate(seen))
    return mixed.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("name", OPERATORS)
def test_causal_attention_equals_its_formula(name):
    module = moved(DecoderModel(small_config(name))).bert.encoder.layer[0].attention
    hidden = torch.randn(2, 7, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = module.self(hidden, mask_for(module.self, hidden))[0]
    torch.testing.assert_close(found, written_out(module.self, hidden), rtol=0, atol=1e-12)


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


def test_an_operator_that_may_look_at_later_tokens_is_refused_whatever_it_inherits(monkeypatch):
    """One that changed a projection alone, or a method of a class that says it, trained a decoder on what follows."""
    for operator in (Averaged, Shifted, LateMixing, Projected, Inherited):
        define(monkeypatch, "own", operator)
        with pytest.raises(ConfigError, match="keeps_tokens_apart"):
            DecoderModel(small_config("own"))


def test_the_formula_of_flops_is_what_pytorch_counts():
    for name in ("original", "pairwise", "shared"):
        config = small_config(name, _attn_implementation="eager")  # products that the counter sees on every device
        model = DecoderModel(config)
        with FlopCounterMode(display=False) as counter:
            model.logits(IDS).sum().backward()
        rows = Rows(100, IDS.shape[1] + 1)
        assert HOSTS["decoder"].step_flops(config, layer_weights(model), rows, len(IDS)) == counter.get_total_flops()


def test_a_described_token_attends_to_no_later_one():
    """Of even attention, the entropy of token t, counted from 1, is ln t: the mean was that of an encoder, ln 12."""
    model = moved(DecoderModel(small_config()))
    for layer in model.bert.encoder.layer:
        for parameter in layer.attention.self.query.parameters():
            parameter.data.zero_()
    described = describe_attention(model, IDS)
    expected = math.log(math.factorial(12)) / 12
    assert described["attention_entropy"] == pytest.approx([expected, expected])
    assert described["logit_std"] == pytest.approx([0, 0])


def test_a_folded_model_is_stock_and_has_equal_logits():
    for name in FOLDING:
        model = moved(DecoderModel(small_config(name)))
        folded = fold(model)
        assert type(folded) is BertLMHeadModel and folded.config.is_decoder
        torch.testing.assert_close(folded(IDS).logits, model.logits(IDS), rtol=0, atol=1e-12)
    with pytest.raises(ConfigError, match="attention 'symmetric-others' has no equal BERT"):
        fold(moved(DecoderModel(small_config("symmetric-others"))))
