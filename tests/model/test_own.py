"""Operators of the user's own that gave wrong numbers in silence; a test's name is what was believed."""

import pytest
import torch

from model.models import define, started
from model.wrong_operators import KeptFeatures, LateFeatures, OwnRandomness, RandomFeatures, RunningMean
from symbert.errors import ConfigError
from symbert.model import check
from symbert.model.loading import model_of, refuse_unrestored
from symbert.operators import operator_named

IDS = torch.arange(24).reshape(2, 12)


@pytest.fixture
def own(monkeypatch):
    """The name of a class as an operator."""

    def name(operator: type) -> str:
        define(monkeypatch, "own", operator)
        return "own"

    return name


def test_numbers_that_a_class_draws_when_it_is_made_are_those_of_every_process(own):
    """A checkpoint was scored with other random features than it was trained with."""
    for operator in (RandomFeatures, KeptFeatures):
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
        (LateFeatures, "no checkpoint restores .*self.features; draw it"),
        (OwnRandomness, ".*self.features differs between two starts of one seed"),
        (RunningMean, "no checkpoint restores .*self.mean; draw it"),
    ],
)
def test_state_that_no_checkpoint_restores_is_refused(own, operator, reason):
    """A resumed training and a scored checkpoint computed with other numbers."""
    models = [started("tiny", own(operator)) for _ in range(2)]
    with pytest.raises(ConfigError, match=f"attention 'own': {reason}"):
        refuse_unrestored(*models, IDS)
    with pytest.raises(ConfigError, match=reason):
        check.check_start(operator_named("own"), check._model("own"))
