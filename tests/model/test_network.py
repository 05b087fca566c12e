"""What is trained, beside Hugging Face's classes with the same operators: equal to the bit."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from transformers import BertForMaskedLM

from symbert.errors import ConfigError
from symbert.model.bert import Classifier, MaskedModel, initialize
from symbert.model.configuration import configuration_of
from symbert.model.hf import (
    SymBertForMaskedLM,
    SymBertForSequenceClassification,
    build_config,
    in_hugging_face,
)

IDS = torch.arange(5, 45).reshape(2, 20)


def classifier(config) -> Classifier:
    return Classifier(config, 2)


PAIRS = [(MaskedModel, SymBertForMaskedLM), (classifier, SymBertForSequenceClassification)]


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
@pytest.mark.parametrize(("make", "hugging_face"), PAIRS, ids=["masked", "classifier"])
def test_names_start_dropout_outputs_and_gradients_are_those_of_hugging_face(attention, make, hugging_face):
    """Order counts: the norm of all gradients is summed in it, and optimizers keep their state in it."""
    ours, other = make(configuration_of("tiny", attention, 100)), hugging_face(build_config("tiny", attention, 100))
    outputs = []
    for model in (ours, other):
        initialize(model, 3)
        torch.manual_seed(1)
        output = model.train().bert(IDS)
        outputs.append(output if torch.is_tensor(output) else output.last_hidden_state)
        outputs[-1].square().sum().backward()
    assert torch.equal(*outputs)
    assert list(ours.state_dict()) == list(other.state_dict())
    for (name, one), (its_name, its) in zip(ours.named_parameters(), other.named_parameters(), strict=True):
        assert name == its_name and torch.equal(one, its), name
        assert one.grad is its.grad is None or torch.equal(one.grad, its.grad), name


def test_masked_logits_are_those_of_stock_bert():
    ours = MaskedModel(configuration_of("tiny", "original", 100)).eval()
    initialize(ours, 1)
    stock = BertForMaskedLM(build_config("tiny", "original", 100)).eval()
    stock.load_state_dict(ours.state_dict())
    positions = torch.tensor([0, 7, 23])
    expected = stock(IDS).logits.flatten(0, 1)[positions]
    torch.testing.assert_close(ours.masked_logits(IDS, positions), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("make", "hugging_face"), PAIRS, ids=["masked", "classifier"])
def test_a_model_in_hugging_faces_class_has_its_weights_labels_and_mode(make, hugging_face):
    ours = make(configuration_of("tiny", "pairwise", 100)).eval()
    initialize(ours, 2)
    other = in_hugging_face(ours)
    assert type(other) is hugging_face and not other.training
    for name, weights in ours.state_dict().items():
        assert torch.equal(weights, other.state_dict()[name]), name
    assert other(IDS).logits.shape[-1] == (100 if make is MaskedModel else 2)
    assert in_hugging_face(Classifier(ours.config, 3)).config.num_labels == 3


class Normed(nn.Module):
    """A part of an operator of the user's own that BERT does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed, self.scaled = nn.Conv1d(4, 4, 1), nn.RMSNorm(4)


@pytest.mark.parametrize("build", [MaskedModel, SymBertForMaskedLM])
def test_modules_that_bert_lacks_start_as_hugging_face_fills_them(build):
    config = configuration_of if build is MaskedModel else build_config
    model = build(config("tiny", "original", 100))
    model.own = Normed()
    for parameter in model.own.parameters():
        parameter.data.fill_(torch.nan)
    initialize(model, 1)
    assert (model.own.scaled.weight == 1).all() and (model.own.mixed.bias == 0).all()
    assert model.own.mixed.weight.std().item() == pytest.approx(model.config.initializer_range, rel=0.6)


@pytest.mark.parametrize("key", ["is_decoder", "add_cross_attention"])
def test_a_decoder_is_refused(key):
    config = configuration_of("tiny", "original", 100)
    setattr(config, key, True)
    with pytest.raises(ConfigError, match=f"'{key}' is true"):
        MaskedModel(config)


def test_another_activation_is_refused_and_not_taken_for_gelu():
    config = configuration_of("tiny", "original", 100)
    config.hidden_act = "relu"
    with pytest.raises(ConfigError, match="'hidden_act' is relu, expected gelu"):
        Classifier(config, 2)


TRAIN = """
import sys
import symbert.cli, torch
from symbert.model.configuration import configuration_of
from symbert.model.bert import EncoderDecoderModel
from symbert.model.bert import MaskedModel, initialize
config = configuration_of("tiny", "symmetric-others", 100)
ids = torch.arange(12)[None]
pairs = EncoderDecoderModel(config)
initialize(pairs, 1)
pairs.logits(ids, ids > 0, ids).sum().backward()
model = MaskedModel(configuration_of("tiny", "original-symmetric", 100))
initialize(model, 1)
model.masked_logits(torch.arange(12)[None], torch.tensor([3])).sum().backward()
sys.exit("transformers" in sys.modules)
"""


def test_a_step_of_a_command_takes_nothing_of_transformers():
    assert subprocess.run([sys.executable, "-c", TRAIN]).returncode == 0
