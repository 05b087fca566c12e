"""The model of spans: its loss by hand, and its logits beside stock transformers'."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.nn import functional as F
from transformers import BertForQuestionAnswering

from model.models import Averaged, define
from symbert.corpus.wordpiece import encoder
from symbert.errors import DivergedError
from symbert.glue.squad import tokenise_questions
from symbert.glue.tasks import task_named
from symbert.glue.train import HEADS, load_classifier, logits_of, predict, read_rows, reset_head
from symbert.model.bert import SpanModel
from symbert.model.configuration import read_configuration

CPU = torch.device("cpu")
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def test_the_loss_is_the_mean_of_both_ends_over_the_tokens_of_a_row():
    """Of two rows, the second a token shorter: that slot takes no part."""
    logits = torch.tensor([[[0.0, 1.0], [2.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 0.0], [-math.inf, -math.inf]]])
    labels = torch.tensor([[1, 2], [0, 0]])
    first = (math.log(2 + math.exp(2)) - 2 + math.log(math.e + 1 + math.exp(3)) - 3) / 2
    second = (math.log(math.e + 1) - 1 + math.log(2)) / 2
    head = HEADS["spans"]
    assert head.loss(logits[:1], labels[:1]).item() == pytest.approx(first)
    assert head.loss(logits, labels).item() == pytest.approx((first + second) / 2)
    logits.requires_grad_()
    head.loss(logits, labels).backward()
    assert logits.grad.isfinite().all() and (logits.grad[1, 2] == 0).all()


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    """Questions on contexts of some words, whose answer is the word after the one that is asked for, or none."""
    folder = tmp_path_factory.mktemp("questions")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    return folder, encoder(folder / "vocab.txt")


def rows_of(questions, count, split="train", max_length=32):
    """The first `count` questions on contexts of three to forty words; every third has no answer."""
    folder, tokenizer = questions
    draw, rows = np.random.default_rng(1), []
    for number in range(count):
        words = [WORDS[each] for each in draw.integers(0, 8, draw.integers(3, 40))]
        at = int(draw.integers(0, len(words) - 1))
        start = len(" ".join([*words[:at], words[at], ""]))
        answers = {"text": [words[at + 1]], "answer_start": [start]} if number % 3 else {"text": [], "answer_start": []}
        asked = words[at] if number % 3 else "kappa"
        rows.append({"id": str(number), "title": "", "context": " ".join(words), "question": asked, "answers": answers})
    table = tokenise_questions(split, pa.Table.from_pylist(rows), tokenizer, max_length)
    pq.write_table(table, folder / "rows.parquet")
    return read_rows(folder / "rows.parquet", task_named("squad2"), CPU)[split]


@pytest.fixture
def models(checkpoint):
    """A model of spans, in float64."""

    def make(attention="pairwise", dropout=0.1):
        model = load_classifier(checkpoint(attention), 2, dropout, SpanModel).double()
        reset_head(model, 1)
        return model

    return make


def padded(model, rows, index):
    """The logits `row token 2` that a model in Hugging Face's class has of padded rows."""
    batches = [rows.batch(np.array([row])) for row in index]
    longest = max(batch.input_ids.shape[0] for batch in batches)
    ids, types, attended = torch.zeros(3, len(batches), longest, dtype=torch.int64)
    for row, batch in enumerate(batches):
        length = len(batch.input_ids)
        ids[row, :length], types[row, :length], attended[row, :length] = batch.input_ids, batch.token_type_ids, 1
    outputs = model(ids, attended, types)
    logits = torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)
    return logits.masked_fill(attended[..., None] == 0, -math.inf)


def test_logits_loss_and_gradients_are_those_of_stock_transformers(questions, models, checkpoint):
    rows, ours = rows_of(questions, 12), models(attention="original", dropout=0.0)
    values = {
        **read_configuration(checkpoint("original")).to_dict(),
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    stock = BertForQuestionAnswering(BertForQuestionAnswering.config_class.from_dict(values)).double()
    stock.load_state_dict(ours.state_dict())
    index = np.arange(len(rows))
    batch = rows.batch(index)
    found, expected = logits_of(ours, batch, "fp32"), padded(stock, rows, index)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    rows.head.loss(found, batch.labels).backward()
    start, end = (F.cross_entropy(expected[..., place], batch.labels[:, place]) for place in (0, 1))
    ((start + end) / 2).backward()
    theirs = dict(stock.named_parameters())
    for name, weights in ours.named_parameters():
        torch.testing.assert_close(weights.grad, theirs[name].grad, rtol=0, atol=1e-12, msg=name)


def test_an_operator_that_mixes_tokens_has_the_logits_of_each_row_alone(monkeypatch, questions, models):
    define(monkeypatch, "mixing", Averaged)
    rows, model = rows_of(questions, 6), models(attention="mixing", dropout=0.0).eval()
    together = logits_of(model, rows.batch(np.arange(len(rows))), "fp32")
    for row, length in enumerate(rows.lengths):
        alone = logits_of(model, rows.batch(np.array([row])), "fp32")[0]
        torch.testing.assert_close(together[row, :length], alone, rtol=0, atol=1e-12)


def test_spans_of_logits_that_are_not_finite_are_no_answers(questions, models):
    """Slots without a token have −∞ on purpose: these are not meant."""
    rows, model = rows_of(questions, 6, split="validation"), models()
    predict(model, rows, "fp32")
    for value in (math.inf, -math.inf, math.nan):
        model.qa_outputs.bias.data[1] = value
        with pytest.raises(DivergedError, match="a logit is not finite"):
            predict(model, rows, "fp32")
