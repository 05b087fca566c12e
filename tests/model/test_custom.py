"""Operators of the user's own that gave wrong numbers in silence; a test's name is what was believed."""

import math

import numpy as np
import pytest
import torch

from model import right_operators as right
from model import wrong_operators as wrong
from model.models import configured, defined, dense, started
from studies.probes import learn
from symbert.errors import ConfigError, FailedCheckError
from symbert.model import check
from symbert.model.anatomy import anatomy_of, describe_attention, logit_step, symmetry_of
from symbert.model.bert import initialize
from symbert.model.loading import model_of
from symbert.model.packed import Packing, encode
from symbert.model.projections import projections_of
from symbert.operators import Operator

IDS = torch.arange(24).reshape(2, 12)


@pytest.fixture
def own():
    """A class as an operator."""
    return lambda kind: Operator("own", f"{kind.__module__}:{kind.__name__}")


def test_numbers_that_a_class_draws_when_it_is_made_are_those_of_every_process(own):
    """A checkpoint was scored with other random features than it was trained with."""
    for operator in (wrong.RandomFeatures, wrong.KeptFeatures):
        torch.manual_seed(1)
        first = started("tiny", own(operator))
        torch.manual_seed(2)
        loaded = model_of(first.config)
        loaded.load_state_dict(first.state_dict())
        assert torch.equal(loaded.eval().bert(IDS), first.bert(IDS))
        assert first.bert.encoder.layer[1].attention.self.features.std() > 0.9


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        (wrong.LateFeatures, "its model computes otherwise once a checkpoint has restored it"),
        (wrong.OwnRandomness, "differs between two starts of one seed"),
        (wrong.RunningMean, "layer.0.mean changes from pass to pass"),
        (wrong.Counting, "layer.0.calls changes from pass to pass"),
        (wrong.Patient, "layer.0.calls changes from pass to pass"),
        (wrong.Tallying, "TALLY.passes changes from pass to pass"),
        (wrong.LateBuffer, "takes back no checkpoint of itself .*seen"),
        (wrong.InPlace, "changes the hidden states that it is given"),
        (wrong.Packaged, "no checkpoint can hold layer.0._extra_state"),
    ],
)
def test_state_that_no_checkpoint_restores_is_refused(own, operator, reason):
    """A resumed training and a scored checkpoint computed with other numbers; a count that showed after a hundred
    passes was not seen in two."""
    with pytest.raises(FailedCheckError, match=reason):
        check.check_state(own(operator), check.model_for(own(operator)))


def test_a_weight_that_all_models_of_a_process_share_is_refused(own):
    """The check of a training gave the weight its own start, and the seed had none."""
    with pytest.raises(FailedCheckError, match=r"layer.0.query.weight is one in all models"):
        check.check_state(own(wrong.OfClass), check.model_for(own(wrong.OfClass)))


def test_a_start_is_that_of_its_own_seed_where_a_class_reuses_modules_of_a_model_that_is_gone(own):
    """The same operator passed check-operator, and its training was refused: both compared whatever came last."""
    operator = own(wrong.OfModel)
    assert "every weight follows" in check.check_init(operator, check.model_for(operator))
    assert check.check_state(operator, check.model_for(operator))


@pytest.mark.parametrize("operator", [wrong.Noting, wrong.Caching])
def test_notes_constants_and_caches_of_a_class_are_no_state(own, operator):
    assert check.check_state(own(operator), check.model_for(own(operator))) == "checkpoints restore all state"


def test_an_init_scale_is_refused_where_a_forward_of_its_own_decides_the_logits():
    """The width of query and key was set, and the logits were four times wider."""
    with pytest.raises(
        ConfigError, match="attention 'sharp-wide': has a forward of its own, and 'init_scale' measures"
    ):
        started("tiny", defined("sharp-wide", **{"class": "model.wrong_operators:Sharp", "init_scale": "wide"}))


def test_the_logits_of_a_forward_of_its_own_are_not_known(own):
    """The width and the entropy of query and key were logged as those of the run."""
    model = started("tiny", own(wrong.Sharp))
    assert describe_attention(model, IDS) == {"logit_std": [], "attention_entropy": []}
    assert logit_step(model, IDS, lambda: pytest.fail("no step is taken")) == []
    head = anatomy_of(model.bert, IDS)[-1]
    assert head["symmetry"] == pytest.approx(1) and head["layer"] == 2
    assert head["logit_std"] is head["attention_entropy"] is head["own_share"] is None
    with pytest.raises(ConfigError, match="attention 'own': its forward returns no weights"):
        learn(own(wrong.Sharp), "cycle", own_position=True)
    telling = describe_attention(started("tiny", own(wrong.Telling)), IDS)
    assert telling == {"logit_std": [], "attention_entropy": pytest.approx([math.log(12)] * 2)}


def test_a_result_of_one_row_stands_for_all_tokens(own):
    """The whole model added the row to each token, and training ended with an IndexError."""
    model, positions = started("tiny", own(wrong.Even)), torch.tensor([3, 20])
    expected = dense(model, IDS).flatten(0, 1)[positions]
    torch.testing.assert_close(model.masked_logits(IDS, positions), expected)


def test_an_operator_that_forgets_to_split_heads_does_not_train(own):
    """`reshape` gave the mixed values the right shape, and the run a page."""
    for operator, side in ((wrong.Unsplit, "query"), (wrong.HalfSplit, "value")):
        model = started("tiny", own(operator))
        for is_training in (True, False):
            with pytest.raises(
                ConfigError, match=f"'own': {side} has shape 2 × 12 × 64, expected batch heads token head"
            ):
                model.train(is_training).bert(IDS)
    packing, embedded = Packing.of(np.array([12, 12]), IDS.device), model.bert.embeddings(IDS.reshape(1, 24))
    with pytest.raises(ConfigError, match="value has shape 1 × 24 × 64"):
        encode(model.bert, embedded, packing)


def test_a_forward_that_forgets_to_join_heads_does_not_train(own):
    with pytest.raises(ConfigError, match="Unjoined: .* mixed values of shape 2 × 2 × 12 × 32, .*2 × 12 × 64"):
        started("tiny", own(wrong.Unjoined)).bert(IDS)


@pytest.mark.parametrize("operator", [wrong.Together, wrong.Remembering])
def test_weights_that_are_not_of_each_head_and_token_are_refused(own, operator):
    """`anatomy` took tokens for heads, and slots of memory for tokens."""
    with pytest.raises(ConfigError, match="attention weights of shape .*, expected .*2 × 2 × 12 × 12; return None"):
        started("tiny", own(operator)).bert(IDS)


def test_keys_that_are_no_tokens_give_no_share_of_the_own_token(own):
    heads = anatomy_of(started("tiny", own(right.Condensed)).bert, IDS)
    assert all(head["own_share"] is None and head["symmetry"] is None for head in heads)
    assert all(0 < head["attention_entropy"] < math.log(4) for head in heads)
    with pytest.raises(ConfigError, match="keys are no tokens"):
        learn(own(right.Condensed), "cycle", own_position=True)


def test_a_wide_model_is_read_in_rows_that_are_no_longer_than_its_own(own):
    """A table of 32 places was asked for the 64 places of a row of unit vectors: base is wider than its rows are
    long."""
    config = configured("tiny", own(right.Placed), vocabulary_size=100)
    config.max_position_embeddings = 32
    initialize(model := model_of(config), 1)
    heads = anatomy_of(model.bert, IDS)
    operator = model.bert.encoder.layer[0].attention.self
    query, key = (side.weight.double().unflatten(0, (2, 32)) for side in (operator.query, operator.key))
    assert heads[0]["symmetry"] == pytest.approx(symmetry_of(query[0].mT @ key[0]), rel=1e-3, abs=1e-5)
    with pytest.raises(ConfigError, match="no equal BERT"):
        projections_of(operator)


def test_a_class_that_cannot_start_is_no_bug_of_ours(own):
    with pytest.raises(
        ConfigError,
        match=r"attention 'own': bert\..*self cannot start \(.*line \d+: ZeroDivisionError: .*correct the class",
    ):
        started("tiny", own(wrong.Unstartable))


def test_one_key_for_all_heads_is_that_key_for_each_head(own):
    model, alone = started("tiny", own(wrong.OneKey), layers=1), wrong.OneKey.query_key_value
    expected = model.bert(IDS)
    site = model.bert.encoder.layer[0].attention.self
    site.query_key_value = lambda hidden: [side.repeat(1, 2 // side.shape[1], 1, 1) for side in alone(site, hidden)]
    torch.testing.assert_close(model.bert(IDS), expected)


def test_a_class_that_says_it_is_causal_is_refused(own):
    """It trained as `original`, bit for bit."""
    with pytest.raises(ConfigError, match="attention 'own': sets is_causal, which the model decides"):
        started("tiny", own(wrong.LeftToRight))


def test_a_forward_returns_a_pair(own):
    """The first row of a tensor was taken for the mixed values of all."""
    model = started("tiny", own(wrong.Alone))
    for act in (model.bert, lambda ids: describe_attention(model, ids)):
        with pytest.raises(ConfigError, match="Alone: its forward returns a Tensor, expected a pair"):
            act(IDS[:1])
    with pytest.raises(ConfigError, match="Alone: its forward returns a Tensor, expected a pair"):
        check.check_gradients(own(wrong.Alone), check.model_for(own(wrong.Alone)))
