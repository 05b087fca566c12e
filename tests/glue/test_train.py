import math
from dataclasses import replace as replace_field

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import load_file
from transformers import BertForSequenceClassification

from glue.protocol import SETTINGS, naive_training, one_by_one
from model.models import Averaged, define
from symbert.errors import DataError, DivergedError
from symbert.glue import train as module
from symbert.glue.tasks import GLUE
from symbert.glue.train import Packed, load_classifier, predict, read_rows, reset_head, train
from symbert.model.hf import fold


@pytest.fixture
def splits(prepared):
    return read_rows(prepared("cola"), GLUE["cola"], torch.device("cpu"))


@pytest.fixture
def rows(splits):
    return splits["train"]


@pytest.fixture
def classifier(checkpoint):
    """A classifier of CoLA, in float64."""
    model = load_classifier(checkpoint(), 2, SETTINGS.dropout).double()
    reset_head(model, 1)
    return model


@pytest.fixture
def trained(splits, checkpoint):
    """Fine-tunes CoLA's stand-in; gives the model and its rows."""

    def run(seed=1, noise=0):
        torch.manual_seed(noise)
        model = load_classifier(checkpoint(), 2, SETTINGS.dropout)
        reset_head(model, seed)
        train(Packed(model), splits["train"], SETTINGS, seed, lambda step: None)
        return model, splits

    return run


def parameters(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_one_seed_gives_one_result_to_the_bit(trained, classifier):
    assert classifier.bert.pooler.dense.weight.std().item() == pytest.approx(0.02, rel=0.2)
    assert torch.equal(parameters(trained(seed=1, noise=5)[0]), parameters(trained(seed=1, noise=6)[0]))
    assert not torch.equal(parameters(trained(seed=1)[0]), parameters(trained(seed=2)[0]))


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_training_is_that_of_a_naive_loop_over_padded_rows(rows, checkpoint, weight_decay):
    """In float64, with a head that gives large losses, so that the clip bites; an ε that Adam feels."""
    settings = replace(SETTINGS, dropout=0.0, gradient_clip=0.5, adam_epsilon=1e-3, weight_decay=weight_decay)
    ours = load_classifier(checkpoint("original"), 2, 0.0).double()
    reset_head(ours, 1)
    ours.classifier.weight.data *= 100
    stock = fold(ours).double()
    assert type(stock) is BertForSequenceClassification
    norms = naive_training(stock, rows, settings, seed=3)
    train(Packed(ours), rows, settings, 3, lambda step: None)
    assert len(norms) == 8 and min(norms) > settings.gradient_clip
    for name, values in fold(ours).double().state_dict().items():
        torch.testing.assert_close(values, stock.state_dict()[name], rtol=0, atol=1e-9, msg=name)


def test_losses_are_squared_error_of_grades_and_cross_entropy_of_classes():
    grades, classes = module.HEADS["grades"], module.HEADS["classes"]
    assert grades.loss(torch.tensor([[1.0], [3.0]]), torch.tensor([2.0, 5.0])).item() == pytest.approx((1 + 4) / 2)
    expected = -math.log(math.exp(1) / (math.exp(1) + math.exp(3)))
    assert classes.loss(torch.tensor([[1.0, 3.0]]), torch.tensor([0])).item() == pytest.approx(expected)


def test_predictions_are_those_of_stock_bert_row_by_row_without_dropout(prepared, checkpoint):
    """Grades show every digit of what the classifier puts out."""
    rows = read_rows(prepared("stsb"), GLUE["stsb"], torch.device("cpu"))["validation"]
    model = load_classifier(checkpoint(), 1, 0.5).double()
    reset_head(model, 1)
    model.classifier.weight.data *= 1000
    predicted, stock = predict(Packed(model.train()), rows), fold(model).double().eval()
    for row, grade in enumerate(predicted):
        batch = Packed(model).batch(rows, np.array([row]))
        expected = stock(batch.input_ids[None], None, batch.token_type_ids[None]).logits
        assert grade == pytest.approx(expected.item(), abs=1e-6)
    assert len({*predicted.round(6)}) > 30


GPU = torch.device("cuda")


def test_what_is_compiled_for_a_gpu_is_one_graph_for_all_lengths_and_seeds(trained, monkeypatch):
    """The graphs are traced and counted, and run as they are."""
    graphs, compile_ = [], torch.compile
    backend = lambda graph, inputs: graphs.append(graph) or graph.forward  # noqa: E731
    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", lambda function, **options: compile_(function, backend=backend, **options))
    plain = [parameters(trained(seed)[0]) for seed in (1, 2)]
    assert graphs == []
    monkeypatch.setattr(module, "encoder_of", lambda model, *_, choose=module.encoder_of: choose(model, True, GPU))
    for seed, expected in zip((1, 2), plain, strict=True):
        assert torch.allclose(parameters(trained(seed)[0]), expected, rtol=0, atol=1e-6)
    assert len(graphs) == 1


@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_operator_that_mixes_tokens_is_fine_tuned_and_scored_as_its_own_bert(
    monkeypatch, splits, checkpoint, is_compiled
):
    """In float64 and without dropout: weights after a naive loop over rows one by one, and classes."""
    define(monkeypatch, "mixing", Averaged)
    settings = replace(SETTINGS, dropout=0.0, epochs=1, adam_epsilon=1e-3)
    models, rows = [load_classifier(checkpoint("mixing"), 2, 0.0).double() for _ in range(2)], splits
    for model in models:
        reset_head(model, 1)
    ours, naive = models
    choose = module.encoder_of
    monkeypatch.setattr(module, "encoder_of", lambda model, is_compiled, _: choose(model, is_compiled, GPU))
    train(Packed(ours, is_compiled=is_compiled), rows["train"], settings, 3, lambda step: None)
    naive_training(naive, rows["train"], settings, 3, one_by_one)
    for name, values in naive.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], values, rtol=0, atol=1e-9, msg=name)
    with torch.no_grad():
        expected = one_by_one(naive, rows["validation"], np.arange(40)).argmax(dim=1).tolist()
    assert predict(Packed(ours), rows["validation"]).tolist() == expected


def test_bf16_is_near_fp32(rows, classifier):
    trainees = [Packed(classifier.float().eval(), precision) for precision in ("fp32", "bf16")]
    with torch.no_grad():
        exact, rounded = (trainee.logits(trainee.batch(rows, np.arange(16))) for trainee in trainees)
    assert rounded.dtype == torch.float32 and not torch.equal(exact, rounded)
    assert torch.allclose(exact, rounded, rtol=0, atol=0.02 * exact.abs().max().item())


def test_a_step_that_ruins_the_weights_stops_the_run_also_the_last(rows, checkpoint, monkeypatch):
    """The losses of an epoch are those before its updates: after the last one nothing was looked at."""
    last = module.steps_of(64, SETTINGS) - 1
    for rate, ruined in ((math.inf, 0), (math.nan, 3), (math.inf, last), (math.nan, last)):
        rates = {ruined: rate}
        monkeypatch.setattr(module, "learning_rate", lambda step, steps, settings, rates=rates: rates.get(step, 1e-5))
        with pytest.raises(DivergedError):
            train(Packed(load_classifier(checkpoint(), 2, 0.1)), rows, SETTINGS, 1, lambda step: None)


def test_logits_that_are_not_finite_are_no_predictions(rows, classifier):
    for value in (math.inf, -math.inf, math.nan):
        classifier.classifier.bias.data[1] = value
        with pytest.raises(DivergedError):
            predict(Packed(classifier), rows)


def test_the_encoder_is_that_of_the_checkpoint_with_the_dropout_that_is_asked_for(checkpoint):
    for attention in ("original", "pairwise", "shared"):
        stored = load_file(checkpoint(attention) / "model.safetensors")
        model = load_classifier(checkpoint(attention), 3, dropout=0.3)
        encoder = {name: values for name, values in stored.items() if name.startswith("bert.")}
        assert len(encoder) > 15
        assert all(torch.equal(values, model.state_dict()[name]) for name, values in encoder.items())
        assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.3}
        assert model.config.attention_probs_dropout_prob == 0.3


WORDS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture
def weights_after(rows, checkpoint):
    """The weights after a training in float64."""

    def run(settings=SETTINGS, rows=rows):
        model = load_classifier(checkpoint(), 2, settings.dropout).double()
        reset_head(model, 1)
        train(Packed(model), rows, settings, 1, lambda step: None)
        return model.state_dict()

    return run


def test_of_the_embeddings_those_of_the_task_alone_move_and_a_padding_token_in_a_text_does_not(
    weights_after, rows, classifier
):
    """As where all embeddings are trained, which a weight decay of almost nothing asks for."""
    before, seen = classifier.state_dict()[WORDS], rows.input_ids.unique().tolist()
    padding = replace_field(rows, input_ids=rows.input_ids.index_fill(0, torch.tensor([2]), 0))
    assert 0 not in seen and 10 < len(seen) < len(before)
    for trained_on in (rows, padding):
        own, every = (weights_after(replace(SETTINGS, weight_decay=decay), trained_on) for decay in (0.0, 1e-30))
        for name, values in every.items():
            torch.testing.assert_close(own[name], values, rtol=0, atol=1e-9, msg=name)
        moved = (before != own[WORDS]).any(dim=1).nonzero()[:, 0].tolist()
        assert moved == sorted({*trained_on.input_ids.tolist()} - {0})


def test_with_weight_decay_the_embeddings_of_all_pieces_shrink(weights_after, rows, classifier):
    after = weights_after(replace(SETTINGS, weight_decay=0.1))[WORDS]
    absent = torch.ones(len(after), dtype=torch.bool).index_fill(0, rows.input_ids.unique().long(), False)
    shrunk = math.prod(1 - 0.1 * module.learning_rate(step, 8, SETTINGS) for step in range(8))
    torch.testing.assert_close(after[absent], shrunk * classifier.state_dict()[WORDS][absent])


def test_a_flipped_bit_among_prepared_rows_is_not_another_row(prepared):
    """Parquet says nothing of its content unless its pages have checksums, and they are compared."""
    file = prepared("mrpc")
    intact = file.read_bytes()
    places = range(4, len(intact) - 4000, 97)  # of the columns; the footer with all names is at the end
    assert len(places) > 5
    for place in places:
        content = bytearray(intact)
        content[place] ^= 1
        file.write_bytes(content)
        with pytest.raises(DataError, match=r"mrpc\.parquet: not a parquet file, or damaged"):
            read_rows(file, GLUE["mrpc"], torch.device("cpu"))
