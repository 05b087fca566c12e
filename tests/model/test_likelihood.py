"""How likely models find rows: beside naive loops over stock Hugging Face models in float64."""

import pytest
import torch
from torch.nn import functional as F
from transformers import BertForMaskedLM, BertLMHeadModel

from model.models import moved, small_config, stock
from symbert.model import likelihood
from symbert.model.bert import DecoderModel, MaskedModel
from symbert.model.likelihood import log_likelihoods

CLS, SEP, MASK = 1, 2, 3
GENERATOR = torch.Generator().manual_seed(0)
LENGTHS = (5, 1, 3, 5, 8, 3, 12, 5)  # of the rows without their ends, in no order
ROWS = [[CLS, *torch.randint(4, 100, (length,), generator=GENERATOR).tolist(), SEP] for length in LENGTHS]


@torch.no_grad()
def pseudo(theirs, row):
    """Equation 1 of Salazar et al., a token at a time."""
    total = 0.0
    for place in range(1, len(row) - 1):
        masked = torch.tensor([row])
        masked[0, place] = MASK
        total += F.log_softmax(theirs(masked).logits[0, place], dim=-1)[row[place]].item()
    return total


@torch.no_grad()
def in_order(theirs, row):
    """The log likelihood of a decoder, a token at a time, each given a prefix."""
    total = 0.0
    for place in range(1, len(row) - 1):
        logits = theirs(torch.tensor([row[:place]])).logits[0, -1]
        total += F.log_softmax(logits, dim=-1)[row[place]].item()
    return total


KINDS = {MaskedModel: (BertForMaskedLM, pseudo), DecoderModel: (BertLMHeadModel, in_order)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_likelihood_is_that_of_a_loop_over_stock_bert(kind, monkeypatch):
    reference, loop = KINDS[kind]
    model = moved(kind(small_config())).double()
    theirs = stock(model, reference)
    expected = [loop(theirs, row) for row in ROWS]
    assert len(set(expected)) == len(ROWS) and max(expected) < -1
    for at_a_time in (2**24, 1):
        monkeypatch.setattr(likelihood, "MOST_LOGITS", at_a_time)
        assert log_likelihoods(model, ROWS, MASK).tolist() == pytest.approx(expected, rel=1e-10)


def test_no_part_of_the_computation_is_larger_than_the_bound(monkeypatch):
    """A long row has as many copies as tokens: they were one batch."""
    model, sizes = moved(MaskedModel(small_config())), []
    masked_logits = model.masked_logits
    monkeypatch.setattr(likelihood, "MOST_TOKENS", 40)
    monkeypatch.setattr(model, "masked_logits", lambda ids, at: sizes.append(ids.numel()) or masked_logits(ids, at))
    log_likelihoods(model, [*ROWS, [CLS, *range(4, 40), SEP]], MASK)
    assert max(sizes) <= 40 and sum(sizes) == sum((n + 2) * n for n in (*LENGTHS, 36))
