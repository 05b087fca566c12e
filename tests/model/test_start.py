"""The width of an operator's initial logits: as it is measured, and as `start` sets it."""

import itertools
import math

import pytest
import torch

from model.models import dense, started
from symbert import operators
from symbert.errors import ConfigError
from symbert.model.anatomy import logits_of
from symbert.model.hf import fold, write_model
from symbert.model.loading import load_model
from symbert.model.start import width_of
from symbert.operators import OPERATORS, define

STARTS = ("narrow", "wide")
STARTED = ("original", "symmetric", "pairwise", "shared", "original-symmetric")
FACTORS = {"query.weight", "key.weight", "pairwise_factors", "query_scale", "key_scale"}


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Each operator by the name of its class and start: original-wide."""
    monkeypatch.setattr(operators, "OPERATORS", dict(OPERATORS))
    for name, start in itertools.product(STARTED, STARTS):
        define(f"{name}-{start}", {"class": name, "start": start})


def attention_of_first_layer(name):
    return started("tiny", name).bert.encoder.layer[0].attention.self


def between_tokens(attention):
    """The standard deviation of the logits of different tokens, of 512 with N(0, 1) hidden states."""
    hidden = torch.randn(1, 512, attention.config.hidden_size, generator=torch.Generator().manual_seed(0))
    logits = logits_of(attention, hidden)
    return logits[..., ~torch.eye(512, dtype=torch.bool)].std().item()


def test_the_width_of_the_weights_is_the_deviation_of_the_logits_of_two_tokens():
    for name in OPERATORS:
        attention = attention_of_first_layer(name)
        assert between_tokens(attention) == pytest.approx(width_of(attention), rel=0.05), name


@pytest.mark.parametrize("start", STARTS)
def test_all_operators_of_one_start_have_logits_of_equal_width(start):
    """Narrow is that of `original` at its usual start, wide that of `pairwise`."""
    attentions = {name: attention_of_first_layer(f"{name}-{start}") for name in STARTED}
    (head,) = {each.attention_head_size for each in attentions.values()}
    narrow = attentions["original"].config.hidden_size * attentions["original"].config.initializer_range ** 2
    expected = narrow * (1 if start == "narrow" else math.sqrt(head))
    usual = attention_of_first_layer("original" if start == "narrow" else "pairwise")
    assert width_of(usual) == pytest.approx(expected, rel=0.03)
    for name, attention in attentions.items():
        assert width_of(attention) == pytest.approx(expected, rel=1e-4), name
        assert between_tokens(attention) == pytest.approx(between_tokens(usual), rel=0.06), name


def test_a_start_multiplies_the_weights_of_the_logits_and_leaves_all_else():
    for name in STARTED:
        usual, *others = (started("tiny", each).state_dict() for each in (name, f"{name}-narrow", f"{name}-wide"))
        for state in others:
            for key, values in state.items():
                if key.rpartition(".self.")[2] in FACTORS:
                    ratio = values[usual[key] != 0] / usual[key][usual[key] != 0]
                    assert ratio.std() < 1e-5 * ratio.mean()
                else:
                    assert torch.equal(values, usual[key]), key
        assert not torch.equal(*(torch.cat([each.flatten() for each in state.values()]) for state in others))


def test_a_number_is_a_width_and_every_layer_has_it():
    define("shared-half", {"class": "shared", "start": 0.5})
    layers = started("tiny", "shared-half", seed=3).bert.encoder.layer
    assert [width_of(layer.attention.self) for layer in layers] == pytest.approx([0.5, 0.5], rel=1e-4)


def test_a_checkpoint_names_the_class_and_the_start_and_keeps_its_weights(tmp_path):
    model = started("tiny", "symmetric-wide")
    write_model(model, tmp_path)
    del operators.OPERATORS["symmetric-wide"]
    loaded = load_model(tmp_path)
    path = "symbert.model.attention:SymmetricAttention"
    assert loaded.config.operator == {"class": path, "start": "wide"}
    assert all(torch.equal(values, model.state_dict()[key]) for key, values in loaded.state_dict().items())
    ids = torch.arange(12)[None]
    torch.testing.assert_close(fold(loaded)(ids).logits, dense(loaded, ids), rtol=0, atol=1e-5)


def test_a_start_that_cannot_be_is_refused():
    for name, own, named in (
        *(("own", {"class": "original", "start": start}, "'start'") for start in ("thin", 0, True)),
        ("misdescribed", {"class": "model.wrong_operators:Misdescribed", "start": "wide"}, "'kye'"),
        ("rectified", {"class": "model.models:Rectified", "start": "wide"}, "start"),
    ):
        with pytest.raises(ConfigError, match=f"'{name}'.*{named}|{named}.*'{name}'"):
            attention_of_first_layer(define(name, own).name)
