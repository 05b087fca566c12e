"""The width of an operator's initial logits: as it is measured, and as `init_scale` sets it."""

import math
import re

import pytest
import torch

from model import right_operators as right
from model.models import configured, defined, dense, started
from symbert.errors import ConfigError
from symbert.model.anatomy import logits_of
from symbert.model.attention import OriginalAttention
from symbert.model.bert import initialize
from symbert.model.hf import fold, write_model
from symbert.model.init import width_of
from symbert.model.loading import load_model, model_of
from symbert.operators import OPERATORS, Description, operator_of

SCALES = ("narrow", "wide")
PUBLISHED = ("qk-norm", "key-value", "identity-query", "coupled", "exclusive")
SCALED = ("original", "symmetric", "pairwise", "shared", "original-symmetric", *PUBLISHED)
FACTORS = {"query.weight", "key.weight", "pairwise_factors", "query_scale", "key_scale", "gain"}


def with_init(name, init_scale, of=None):
    """An operator of a class, or of one of this project, whose logits start in a width."""
    return defined(name, **{"class": of or name.rpartition("-")[0], "init_scale": init_scale})


def attention_of_first_layer(operator):
    return started("tiny", operator).bert.encoder.layer[0].attention.self


def between_tokens(attention):
    """The standard deviation of the logits of different tokens, of 512 with N(0, 1) hidden states."""
    hidden = torch.randn(1, 512, attention.config.hidden_size, generator=torch.Generator().manual_seed(0))
    logits = logits_of(attention, hidden)
    return logits[..., ~torch.eye(512, dtype=torch.bool)].std().item()


def test_the_width_of_the_weights_is_the_deviation_of_the_logits_of_two_tokens():
    for name in OPERATORS:
        attention = attention_of_first_layer(name)
        assert between_tokens(attention) == pytest.approx(width_of(attention), rel=0.05), name


@pytest.mark.parametrize("init_scale", SCALES)
def test_all_operators_of_one_init_scale_have_logits_of_equal_width(init_scale):
    """Narrow is that of `original` without an `init_scale`, wide that of `pairwise`."""
    attentions = {name: attention_of_first_layer(with_init(f"{name}-{init_scale}", init_scale)) for name in SCALED}
    (head,) = {each.attention_head_size for each in attentions.values()}
    narrow = attentions["original"].config.hidden_size * attentions["original"].config.initializer_range ** 2
    expected = narrow * (1 if init_scale == "narrow" else math.sqrt(head))
    usual = attention_of_first_layer("original" if init_scale == "narrow" else "pairwise")
    assert width_of(usual) == pytest.approx(expected, rel=0.03)
    for name, attention in attentions.items():
        assert width_of(attention) == pytest.approx(expected, rel=1e-4), name
        assert between_tokens(attention) == pytest.approx(between_tokens(usual), rel=0.06), name


def test_an_init_scale_multiplies_the_weights_of_the_logits_and_leaves_all_else():
    for name in SCALED:
        operators = name, *(with_init(f"{name}-{init_scale}", init_scale) for init_scale in SCALES)
        usual, *others = (started("tiny", each).state_dict() for each in operators)
        for state in others:
            for key, values in state.items():
                if key.rpartition(".self.")[2] in FACTORS:
                    ratio = values[usual[key] != 0] / usual[key][usual[key] != 0]
                    assert ratio.std() < 1e-5 * ratio.mean()
                else:
                    assert torch.equal(values, usual[key]), key
        assert not torch.equal(*(torch.cat([each.flatten() for each in state.values()]) for state in others))


def test_a_number_is_a_width_and_every_layer_has_it():
    layers = started("tiny", with_init("shared-half", 0.5), seed=3).bert.encoder.layer
    assert [width_of(layer.attention.self) for layer in layers] == pytest.approx([0.5, 0.5], rel=1e-4)
    fixed = defined("fixed", **{"class": "qk-norm", "learned": False, "init_scale": 0.5})
    assert width_of(attention_of_first_layer(fixed)) == pytest.approx(0.5, rel=1e-4)


def test_a_checkpoint_names_the_class_and_the_init_scale_and_keeps_its_weights(tmp_path):
    wide = with_init("symmetric-wide", "wide")
    model = started("tiny", wide)
    write_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert operator_of(vars(loaded.config)) == wide and wide.path == "symbert.model.attention:SymmetricAttention"
    assert all(torch.equal(values, model.state_dict()[key]) for key, values in loaded.state_dict().items())
    ids = torch.arange(12)[None]
    torch.testing.assert_close(fold(loaded)(ids).logits, dense(loaded, ids), rtol=0, atol=1e-5)


class Bounded(OriginalAttention):
    """tanh Q(x) tanh K(y)ᵀ: a width that saturates, at 1."""

    description = Description(scaled="query key")

    def query_key_value(self, hidden):
        return [side.tanh() for side in super().query_key_value(hidden)]


class Humped(OriginalAttention):
    """4 q exp(-1.4 |q|) · k: a width that grows and falls again, with a peak between two powers of two."""

    description = Description(scaled="query")

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return 4 * query * torch.exp(-1.4 * query.abs()), key, value


class Exponential(OriginalAttention):
    """exp Q(x) · exp K(y): logits whose mean is far from 0."""

    description = Description(scaled="query key")

    def query_key_value(self, hidden):
        query, key, value = super().query_key_value(hidden)
        return query.exp(), key.exp(), value


@pytest.mark.parametrize(
    ("kind", "init_scale", "expected"),
    [(Bounded, "narrow", None), (Bounded, 0.9, 0.9), (Humped, 0.3, 0.3), (Exponential, 0.5, 0.5)],
)
def test_sides_that_are_not_linear_start_at_any_width_that_they_reach(kind, init_scale, expected):
    """The factor was found by a power of it, as of linear sides; the remedy was what had been done."""
    attention = attention_of_first_layer(with_init("own", init_scale, f"{__name__}:{kind.__name__}"))
    narrow = attention.config.hidden_size * attention.config.initializer_range**2
    assert width_of(attention) == pytest.approx(expected or narrow, rel=1e-3)
    assert between_tokens(attention) == pytest.approx(expected or narrow, rel=0.05)


@pytest.mark.parametrize("kind", [right.Placed, right.Noisy, right.Condensed])
def test_a_width_is_measured_in_rows_as_long_as_the_models_and_without_dropout(kind):
    """Rows of h tokens were longer than a table of places; dropout gave each measurement another width."""
    own = with_init("own", 0.5, f"{kind.__module__}:{kind.__name__}")
    config = configured("tiny", own, vocabulary_size=100)
    config.num_hidden_layers, config.max_position_embeddings = 1, 32
    initialize(model := model_of(config), 1)
    attention = model.eval().bert.encoder.layer[0].attention.self
    one, other = torch.randn(2, 256, 32, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = attention.query_key_value(one)[0] @ attention.query_key_value(other)[1].mT * attention.scaling
    assert logits.std().item() == pytest.approx(0.5, rel=0.05)


def test_a_class_whose_width_cannot_be_measured_is_no_bug_of_ours():
    own = with_init("own", 0.5, "model.wrong_operators:Oversized")
    with pytest.raises(ConfigError, match=r"self cannot start \(wrong_operators.py, line \d+: RuntimeError"):
        attention_of_first_layer(own)


@pytest.mark.parametrize(("kind", "most"), [(Bounded, 1.0), (Humped, 0.48)])
def test_a_width_that_no_factor_gives_is_refused_with_those_that_there_are(kind, most):
    own = with_init("own", "wide", f"{__name__}:{kind.__name__}")
    with pytest.raises(ConfigError, match="'own': 'init_scale' asks for logits 1.774 wide") as refusal:
        attention_of_first_layer(own)
    told = float(re.search(r" to ([\d.]+);", str(refusal.value))[1])
    assert told == pytest.approx(most, rel=0.02)
    within = with_init("within", 0.96 * told, f"{__name__}:{kind.__name__}")  # other layers reach less
    assert width_of(attention_of_first_layer(within)) == pytest.approx(0.96 * told, rel=1e-3)


def test_an_init_scale_that_cannot_be_is_refused():
    for name, own, named in (
        *(("own", {"class": "original", "init_scale": init_scale}, "'init_scale'") for init_scale in ("thin", 0, True)),
        ("misdescribed", {"class": "model.wrong_operators:Misdescribed", "init_scale": "wide"}, "'kye'"),
        ("rectified", {"class": "model.models:Rectified", "init_scale": "wide"}, "Description"),
    ):
        with pytest.raises(ConfigError, match=f"'{name}'.*{named}|{named}.*'{name}'"):
            attention_of_first_layer(defined(name, **own))
