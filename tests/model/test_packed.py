"""Rows laid end to end against the same rows padded to 128 tokens, in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F
from transformers import BertForSequenceClassification

from model.models import (
    FOLDING,
    MIXING,
    ODD,
    SELDOM,
    WITH_FORWARD,
    Biased,
    Convolved,
    Dropping,
    Weightless,
    define,
    started,
    trained,
)
from symbert.model import packed
from symbert.model.attention import SelfAttention
from symbert.model.hf import fold
from symbert.model.packed import Packing, encode, encode_by_length, encoder_for

CPU = torch.device("cpu")
LENGTHS = np.array([7, 1, 30, 12, 12, 128])
LABELS = torch.tensor([0, 1, 2, 2, 1, 0])


def rows_of(lengths):
    """Ids and types, end to end."""
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randint(highest, (int(lengths.sum()),), generator=generator) for highest in (200, 2))


def packed_logits(model, ids, types, lengths):
    packing = Packing.of(lengths, CPU)
    embedded = model.bert.embeddings(ids[None], types[None], packing.position_ids[None])
    return model.classifier(model.dropout(encoder_for(model.bert)(model.bert, embedded, packing)))


def padded_logits(model, ids, types, lengths, longest=128):
    mask = torch.arange(longest) < torch.from_numpy(lengths)[:, None]
    padded = [torch.zeros(mask.shape, dtype=torch.long).masked_scatter(mask, tokens) for tokens in (ids, types)]
    return model(padded[0], mask.long(), padded[1]).logits


def loss_and_gradients(model, logits):
    model.zero_grad()
    loss = F.cross_entropy(logits, LABELS)
    loss.backward()
    return {"loss": loss.detach(), **{name: parameter.grad.clone() for name, parameter in model.named_parameters()}}


def close(one, other):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-12, msg=name)


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_logits_loss_and_gradients_are_those_of_padding_to_128(attention):
    model, rows = trained(attention, "classification").double(), rows_of(LENGTHS)
    ours, padded = packed_logits(model, *rows, LENGTHS), padded_logits(model, *rows, LENGTHS)
    torch.testing.assert_close(ours, padded, rtol=0, atol=1e-12)
    close(loss_and_gradients(model, ours), loss_and_gradients(model, padded))


def test_logits_loss_and_gradients_of_original_are_those_of_stock_transformers():
    ours, rows = trained("original", "classification").double(), rows_of(LENGTHS)
    stock = fold(ours).double()
    assert type(stock) is BertForSequenceClassification
    end_to_end, padded = packed_logits(ours, *rows, LENGTHS), padded_logits(stock, *rows, LENGTHS)
    torch.testing.assert_close(end_to_end, padded, rtol=0, atol=1e-12)
    close(loss_and_gradients(ours, end_to_end), loss_and_gradients(stock, padded))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_every_token_has_its_position_and_its_slot(lengths):
    packing, longest = Packing.of(np.array(lengths), CPU), max(lengths)
    expected = [(row, token) for row, length in enumerate(lengths) for token in range(length)]
    assert packing.position_ids.tolist() == [token for _, token in expected]
    assert packing.slots.tolist() == [row * longest + token for row, token in expected]
    assert packing.first.tolist() == [expected.index((row, 0)) for row in range(len(lengths))]
    assert packing.attended.sum(dim=3).flatten().tolist() == lengths


def test_no_layer_sees_padding_and_the_last_one_finishes_first_tokens_alone():
    model, seen = started("tiny", "symmetric", "classification", layers=3), []
    for layer in model.bert.encoder.layer:
        layer.intermediate.register_forward_pre_hook(lambda _, inputs: seen.append(tuple(inputs[0].shape)))
    packed_logits(model, *rows_of(LENGTHS), LENGTHS)
    assert seen == [(1, LENGTHS.sum(), 64)] * 2 + [(1, len(LENGTHS), 64)]


@pytest.mark.parametrize("place", ["hidden_dropout_prob", "attention_probs_dropout_prob"])
def test_dropout_has_the_distribution_that_it_has_in_padded_rows(place):
    """The same row many times over: mean and spread of its outputs, each within five standard errors."""
    model, count = started("tiny", "pairwise", "classification"), 2000
    ids, types = rows_of(np.array([9]))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.3 * (place == "hidden_dropout_prob")
    model.config.attention_probs_dropout_prob = 0.3 * (place == "attention_probs_dropout_prob")
    torch.manual_seed(1)
    with torch.no_grad():
        rows = ids.repeat(count), types.repeat(count), np.full(count, 9)
        outputs = [logits(model.train(), *rows).double() for logits in (packed_logits, shortest_logits)]
    means, spreads = (torch.stack([getattr(each, what)(dim=0) for each in outputs]) for what in ("mean", "std"))
    assert (spreads > 0).all()
    assert ((means[0] - means[1]).abs() < 5 * spreads.mean(dim=0) * (2 / count) ** 0.5).all()
    assert ((spreads[0] / spreads[1] - 1).abs() < 5 / count**0.5).all()


def shortest_logits(model, ids, types, lengths):
    return padded_logits(model, ids, types, lengths, longest=16)


@pytest.mark.parametrize("operator", MIXING)
def test_an_operator_that_mixes_tokens_gives_each_row_what_its_own_bert_gives_it(monkeypatch, capsys, operator):
    """Logits and gradients in float64, against the model on each row alone."""
    define(monkeypatch, "mixing", operator)
    monkeypatch.setattr(packed, "_encoders", {})  # as in a process that has seen no operator yet
    model, (ids, types) = trained("mixing", "classification").double(), rows_of(LENGTHS)
    drawn = torch.random.get_rng_state()
    found = packed_logits(model, ids, types, LENGTHS)
    assert torch.equal(torch.random.get_rng_state(), drawn)
    rows = zip(ids.split(LENGTHS.tolist()), types.split(LENGTHS.tolist()), strict=True)
    alone = torch.cat([model(row[None], token_type_ids=kinds[None]).logits for row, kinds in rows])
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-12)
    close(loss_and_gradients(model, found), loss_and_gradients(model, alone))
    assert capsys.readouterr().err.startswith("warning: attention 'mixing' ")


@pytest.mark.parametrize("operator", [*WITH_FORWARD, *SELDOM, *ODD, Dropping])
def test_no_operator_with_a_forward_or_random_numbers_of_its_own_is_computed_as_another_one(monkeypatch, operator):
    """Attention masked beyond 16 tokens, or noise in training, was fine-tuned as full attention."""
    define(monkeypatch, "own", operator)
    model, (ids, types) = trained("own", "classification").double(), rows_of(LENGTHS)
    assert encoder_for(model.bert) is encode_by_length
    rows = zip(ids.split(LENGTHS.tolist()), types.split(LENGTHS.tolist()), strict=True)
    alone = torch.cat([model(row[None], token_type_ids=kinds[None]).logits for row, kinds in rows])
    torch.testing.assert_close(packed_logits(model, ids, types, LENGTHS), alone, rtol=0, atol=1e-12)


def test_an_operator_of_the_users_own_that_treats_each_token_by_itself_is_laid_end_to_end(monkeypatch):
    define(monkeypatch, "own", Biased)
    assert encoder_for(trained("own", "classification").bert) is encode


def test_an_operator_without_weights_is_laid_end_to_end_and_folds(monkeypatch):
    define(monkeypatch, "own", Weightless)
    model = trained("own", "classification").double()
    assert encoder_for(model.bert) is encode
    ids = rows_of(np.array([9]))[0][None]
    torch.testing.assert_close(fold(model)(ids).logits, model(ids).logits, rtol=0, atol=1e-12)


def test_another_forward_for_all_operators_is_seen(monkeypatch):
    """A module of the user's own may put one into `SelfAttention`."""
    usual = SelfAttention.forward
    monkeypatch.setattr(SelfAttention, "forward", lambda *given, **named: (2 * usual(*given, **named)[0], None))
    assert encoder_for(started("tiny", "symmetric", "classification").bert) is encode_by_length


def test_what_mixes_tokens_only_after_some_training_is_found_at_its_start(monkeypatch):
    define(monkeypatch, "mixing", Convolved)
    monkeypatch.setattr(packed, "_encoders", {})
    model = started("tiny", "mixing", "classification")
    assert not any(layer.attention.self.gate.any() for layer in model.bert.encoder.layer)
    assert encoder_for(model.bert) is encode_by_length


@pytest.mark.parametrize("attention", FOLDING)
def test_our_operators_leave_tokens_apart(attention):
    assert encoder_for(started("tiny", attention, "classification").bert) is encode
