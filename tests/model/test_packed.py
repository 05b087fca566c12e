"""Rows laid end to end against the same rows padded to 128 tokens, in float64."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from model.models import FOLDING, MIXING, Rectified, define, dense, started, trained
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


def padded(ids, types, lengths, longest=128):
    """Ids, mask and types of padded rows."""
    mask = torch.arange(longest) < torch.from_numpy(lengths)[:, None]
    ids, types = (torch.zeros(mask.shape, dtype=torch.long).masked_scatter(mask, tokens) for tokens in (ids, types))
    return ids, mask.long(), types


def loss_and_gradients(model, logits):
    model.zero_grad()
    loss = F.cross_entropy(logits, LABELS)
    loss.backward()
    return {"loss": loss.detach(), **{name: parameter.grad.clone() for name, parameter in model.named_parameters()}}


def close(one, other):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-12, msg=name)


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared", "qk-norm", "coupled"])
def test_logits_loss_and_gradients_are_those_of_padding_to_128(attention):
    model, rows = trained(attention, "classification").double(), rows_of(LENGTHS)
    assert encoder_for(model.bert) is encode
    ours, expected = packed_logits(model, *rows, LENGTHS), dense(model, *padded(*rows, LENGTHS))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)
    close(loss_and_gradients(model, ours), loss_and_gradients(model, expected))


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
        outputs = [packed_logits(model.train(), *rows).double(), dense(model, *padded(*rows, longest=16)).double()]
    means, spreads = (torch.stack([getattr(each, what)(dim=0) for each in outputs]) for what in ("mean", "std"))
    assert (spreads > 0).all()
    assert ((means[0] - means[1]).abs() < 5 * spreads.mean(dim=0) * (2 / count) ** 0.5).all()
    assert ((spreads[0] / spreads[1] - 1).abs() < 5 / count**0.5).all()


@pytest.mark.parametrize("operator", MIXING)
def test_each_row_of_any_other_operator_has_what_its_own_bert_gives_it(monkeypatch, operator):
    """Attention masked beyond 16 tokens, or noise in training, was fine-tuned as full attention."""
    define(monkeypatch, "mixing", operator)
    model, (ids, types) = trained("mixing", "classification").double(), rows_of(LENGTHS)
    assert encoder_for(model.bert) is encode_by_length
    rows = zip(ids.split(LENGTHS.tolist()), types.split(LENGTHS.tolist()), strict=True)
    alone = torch.cat([dense(model, row[None], None, kinds[None]) for row, kinds in rows])
    together = packed_logits(model, ids, types, LENGTHS)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)
    close(loss_and_gradients(model, together), loss_and_gradients(model, alone))


def test_our_operators_and_those_that_say_so_are_laid_end_to_end(monkeypatch):
    define(monkeypatch, "own", Rectified)
    for attention in (*FOLDING, "own"):
        assert encoder_for(started("tiny", attention, "classification").bert) is encode, attention
