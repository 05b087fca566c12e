from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from msgspec import structs

from glue.protocol import SETTINGS
from symbert.glue import training
from symbert.glue.batches import read_rows
from symbert.glue.classifier import load_classifier, reset_head
from symbert.glue.pieces import own_pieces
from symbert.glue.tasks import GLUE

WORDS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture
def rows(prepared):
    return read_rows(prepared("cola"), GLUE["cola"], torch.device("cpu"))["train"]


@pytest.fixture
def classifier(checkpoint):
    model = load_classifier(checkpoint(), 2, SETTINGS.dropout).double()
    reset_head(model, 1)
    return model


@pytest.fixture
def trained(rows, checkpoint):
    """The weights after a training in float64."""

    def run(settings=SETTINGS, rows=rows):
        model = load_classifier(checkpoint(), 2, settings.dropout).double()
        reset_head(model, 1)
        training.train(model, rows, settings, "fp32", 1, lambda step: None)
        return model.state_dict()

    return run


def test_training_is_that_of_all_embeddings(trained, monkeypatch):
    own = trained()
    monkeypatch.setattr(training, "own_pieces", lambda model, rows: nullcontext(rows))
    for name, values in trained().items():
        torch.testing.assert_close(own[name], values, rtol=0, atol=1e-9, msg=name)


@pytest.fixture
def padded(rows):
    """The rows, one of which spells [PAD], whose number is 0, in its text."""
    assert (rows.input_ids > 0).all()
    return replace(rows, input_ids=rows.input_ids.index_fill(0, torch.tensor([2]), 0))


def test_a_padding_token_in_a_text_is_not_trained_as_in_all_embeddings(trained, padded, classifier):
    own, every = trained(rows=padded), trained(structs.replace(SETTINGS, weight_decay=1e-30), rows=padded)
    for name, values in every.items():
        torch.testing.assert_close(own[name], values, rtol=0, atol=1e-9, msg=name)
    before = classifier.state_dict()[WORDS]
    assert torch.equal(own[WORDS][0], before[0]) and not torch.equal(own[WORDS], before)


def test_pieces_that_the_task_lacks_keep_their_embeddings_to_the_bit(trained, rows, classifier):
    before, after = classifier.state_dict()[WORDS], trained()[WORDS]
    moved = (before != after).any(dim=1).nonzero()[:, 0]
    assert moved.tolist() == rows.input_ids.unique().tolist() and 10 < len(moved) < len(before)


def test_with_weight_decay_the_embeddings_of_all_pieces_shrink(trained, rows, classifier):
    after = trained(structs.replace(SETTINGS, weight_decay=0.1))[WORDS]
    absent = torch.ones(len(after), dtype=torch.bool).index_fill(0, rows.input_ids.unique().long(), False)
    rates = [training.learning_rate(step, 8, SETTINGS) for step in range(8)]
    shrunk = torch.tensor([1 - 0.1 * rate for rate in rates], dtype=torch.float64).prod()
    torch.testing.assert_close(after[absent], shrunk * classifier.state_dict()[WORDS][absent])


def test_a_training_that_breaks_off_leaves_all_embeddings_in_place(rows, classifier):
    before = classifier.state_dict()[WORDS].clone()
    with pytest.raises(KeyboardInterrupt), own_pieces(classifier, rows):
        assert len(classifier.state_dict()[WORDS]) < len(before)
        raise KeyboardInterrupt
    assert torch.equal(classifier.state_dict()[WORDS], before)
