import math
from dataclasses import replace as replace_field

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification, get_linear_schedule_with_warmup

from glue.protocol import SETTINGS, naive_training, one_by_one
from model.models import Averaged, define
from symbert.errors import ConfigError, DivergedError, IntegrityError
from symbert.files import read_json, write_json
from symbert.glue import train as module
from symbert.glue.tasks import GLUE
from symbert.glue.train import (
    HEADS,
    encoder_of,
    learning_rate,
    load_classifier,
    logits_of,
    predict,
    read_rows,
    reset_head,
    steps_of,
    train,
)
from symbert.model.hf import fold
from symbert.operators import operator_code
from symbert.pretrain.compute import RECIPES


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
        train(model, splits["train"], SETTINGS, "fp32", seed, lambda step: None)
        return model, splits

    return run


def parameters(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_one_seed_gives_one_result_to_the_bit(trained):
    assert torch.equal(parameters(trained(seed=1, noise=5)[0]), parameters(trained(seed=1, noise=6)[0]))
    assert not torch.equal(parameters(trained(seed=1)[0]), parameters(trained(seed=2)[0]))


@given(st.integers(1, 300), st.floats(0, 0.9))
def test_the_schedule_is_the_linear_one_of_hugging_face(steps, ratio):
    settings = replace(SETTINGS, warmup_ratio=ratio)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=SETTINGS.learning_rate)
    reference = get_linear_schedule_with_warmup(optimizer, math.ceil(ratio * steps), steps)
    for step in {0, steps // 20, steps // 2, steps - 1}:
        assert learning_rate(step, steps, settings) == pytest.approx(1e-3 * reference.lr_lambdas[0](step))


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
    train(ours, rows, settings, "fp32", 3, lambda step: None)
    assert len(norms) == 8 and min(norms) > settings.gradient_clip
    for name, values in fold(ours).double().state_dict().items():
        torch.testing.assert_close(values, stock.state_dict()[name], rtol=0, atol=1e-9, msg=name)


def test_no_dropout_acts_in_prediction(prepared, checkpoint):
    """Grades show every digit of what the classifier puts out."""
    rows = read_rows(prepared("stsb"), GLUE["stsb"], torch.device("cpu"))
    model = load_classifier(checkpoint(), 1, 0.5)
    reset_head(model, 1)
    train(model, rows["train"], replace(SETTINGS, epochs=1, dropout=0.5), "fp32", 1, lambda step: None)
    predicted = predict(model.train(), rows["validation"], "fp32")
    batch = rows["validation"].batch(np.arange(40))
    with torch.no_grad():
        dropped, expected = (logits_of(mode(), batch, "fp32")[:, 0].numpy() for mode in (model.train, model.eval))
    assert predicted == pytest.approx(expected, abs=1e-6) and np.abs(dropped - expected).min() > 1e-5


def test_losses_are_squared_error_of_grades_and_cross_entropy_of_classes():
    grades, classes = HEADS["grades"], HEADS["classes"]
    assert grades.loss(torch.tensor([[1.0], [3.0]]), torch.tensor([2.0, 5.0])).item() == pytest.approx((1 + 4) / 2)
    expected = -math.log(math.exp(1) / (math.exp(1) + math.exp(3)))
    assert classes.loss(torch.tensor([[1.0, 3.0]]), torch.tensor([0])).item() == pytest.approx(expected)


def test_predictions_stand_in_the_order_of_the_rows(trained):
    model, rows = trained()
    predicted, stock = predict(model, rows["validation"], "fp32"), fold(model)
    with torch.no_grad():
        for place in (0, 7, 39):
            batch = rows["validation"].batch(np.array([place]))
            logits = stock(batch.input_ids[None], None, batch.token_type_ids[None]).logits
            assert predicted[place] == logits.argmax().item()


GPU, FAST = torch.device("cuda"), RECIPES["fast"]


def test_what_the_fast_recipe_compiles_for_a_gpu_is_one_graph_for_all_lengths_and_seeds(trained, monkeypatch):
    """The graphs are traced and counted, and run as they are."""
    graphs, compile_ = [], torch.compile
    backend = lambda graph, inputs: graphs.append(graph) or graph.forward  # noqa: E731
    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", lambda function, **options: compile_(function, backend=backend, **options))
    faithful = [parameters(trained(seed)[0]) for seed in (1, 2)]
    assert graphs == []
    monkeypatch.setattr(module, "encoder_of", lambda model, *_, choose=encoder_of: choose(model, FAST, GPU))
    for seed, expected in zip((1, 2), faithful, strict=True):
        assert torch.allclose(parameters(trained(seed)[0]), expected, rtol=0, atol=1e-6)
    assert len(graphs) == 1


@pytest.mark.parametrize("recipe", ["faithful", "fast"])
def test_an_operator_that_mixes_tokens_is_fine_tuned_and_scored_as_its_own_bert(
    monkeypatch, splits, checkpoint, recipe
):
    """In float64 and without dropout: weights after a naive loop over rows one by one, and classes."""
    define(monkeypatch, "mixing", Averaged)
    settings = replace(SETTINGS, dropout=0.0, epochs=1, adam_epsilon=1e-3, recipe=recipe)
    models, rows = [load_classifier(checkpoint("mixing"), 2, 0.0).double() for _ in range(2)], splits
    for model in models:
        reset_head(model, 1)
    ours, naive = models
    monkeypatch.setattr(module, "encoder_of", lambda model, recipe, _, choose=encoder_of: choose(model, recipe, GPU))
    train(ours, rows["train"], settings, "fp32", 3, lambda step: None)
    naive_training(naive, rows["train"], settings, 3, one_by_one)
    for name, values in naive.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], values, rtol=0, atol=1e-9, msg=name)
    with torch.no_grad():
        expected = one_by_one(naive, rows["validation"], np.arange(40)).argmax(dim=1).tolist()
    assert predict(ours, rows["validation"], "fp32").tolist() == expected


def test_bf16_is_near_fp32(rows, classifier):
    batch, model = rows.batch(np.arange(16)), classifier.float().eval()
    with torch.no_grad():
        exact, rounded = (logits_of(model, batch, precision) for precision in ("fp32", "bf16"))
    assert rounded.dtype == torch.float32 and not torch.equal(exact, rounded)
    assert torch.allclose(exact, rounded, rtol=0, atol=0.02 * exact.abs().max().item())


@pytest.mark.parametrize(("rate", "place"), [(math.inf, 0), (math.nan, 3), (math.inf, -1), (math.nan, -1)])
def test_a_step_that_ruins_the_weights_stops_the_run_also_the_last(rows, checkpoint, monkeypatch, rate, place):
    """The losses of an epoch are those before its updates: after the last one nothing was looked at."""
    ruined = range(steps_of(64, SETTINGS))[place]
    monkeypatch.setattr(module, "learning_rate", lambda step, steps, settings: rate if step == ruined else 1e-5)
    with pytest.raises(DivergedError):
        train(load_classifier(checkpoint(), 2, 0.1), rows, SETTINGS, "fp32", 1, lambda step: None)


def test_logits_that_are_not_finite_are_no_predictions(rows, classifier):
    for value in (math.inf, -math.inf, math.nan):
        classifier.classifier.bias.data[1] = value
        with pytest.raises(DivergedError):
            predict(classifier, rows, "fp32")


def test_the_encoder_is_that_of_the_checkpoint_with_the_dropout_that_is_asked_for(checkpoint):
    for attention in ("original", "pairwise", "shared"):
        stored = load_file(checkpoint(attention) / "model.safetensors")
        model = load_classifier(checkpoint(attention), 3, dropout=0.3)
        encoder = {name: values for name, values in stored.items() if name.startswith("bert.")}
        assert len(encoder) > 15
        assert all(torch.equal(values, model.state_dict()[name]) for name, values in encoder.items())
        assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.3}
        assert model.config.attention_probs_dropout_prob == 0.3


def test_a_missing_or_misshapen_weight_of_the_encoder_is_refused_not_drawn_at_random(checkpoint):
    file = checkpoint() / "model.safetensors"
    tensors, name = load_file(file), "bert.encoder.layer.0.attention.self.pairwise_factors"
    factors = tensors.pop(name)
    for kept in (tensors, tensors | {name: factors[:1]}):
        save_file(kept, file, metadata={"format": "pt"})
        with pytest.raises(IntegrityError, match=r"1 weights .* first bert.encoder.layer.0.*pairwise_factors"):
            load_classifier(file.parent, 2, dropout=0.1)


def test_a_checkpoint_of_an_operator_that_was_edited_since_is_refused(checkpoint):
    file = checkpoint() / "config.json"
    config = read_json(file)
    write_json(file, {**config, "pretraining": {"settings": {"operator_code": operator_code("pairwise")}}})
    load_classifier(file.parent, 2, dropout=0.1)
    write_json(file, {**config, "pretraining": {"settings": {"operator_code": "0" * 16}}})
    with pytest.raises(ConfigError, match=r"config.json: .*operator_code"):
        load_classifier(file.parent, 2, dropout=0.1)


def test_the_new_layers_follow_from_the_seed_alone(checkpoint):
    def head(seed, noise):
        torch.manual_seed(noise)
        model = load_classifier(checkpoint(), 2, dropout=0.1)
        reset_head(model, seed)
        return torch.cat([model.bert.pooler.dense.weight.flatten(), model.classifier.weight.flatten()])

    assert torch.equal(head(1, 10), head(1, 20))
    assert not torch.equal(head(1, 10), head(2, 10))
    assert head(1, 10).std().item() == pytest.approx(0.02, rel=0.2)


WORDS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture
def weights_after(rows, checkpoint):
    """The weights after a training in float64."""

    def run(settings=SETTINGS, rows=rows):
        model = load_classifier(checkpoint(), 2, settings.dropout).double()
        reset_head(model, 1)
        module.train(model, rows, settings, "fp32", 1, lambda step: None)
        return model.state_dict()

    return run


@pytest.fixture
def rows_with_padding(rows):
    """The rows, one of which spells [PAD], whose number is 0, in its text."""
    assert (rows.input_ids > 0).all()
    return replace_field(rows, input_ids=rows.input_ids.index_fill(0, torch.tensor([2]), 0))


def test_a_padding_token_in_a_text_is_not_trained_as_in_all_embeddings(weights_after, rows_with_padding, classifier):
    own, every = (
        weights_after(rows=rows_with_padding),
        weights_after(replace(SETTINGS, weight_decay=1e-30), rows=rows_with_padding),
    )
    for name, values in every.items():
        torch.testing.assert_close(own[name], values, rtol=0, atol=1e-9, msg=name)
    before = classifier.state_dict()[WORDS]
    assert torch.equal(own[WORDS][0], before[0]) and not torch.equal(own[WORDS], before)


def test_pieces_that_the_task_lacks_keep_their_embeddings_to_the_bit(weights_after, rows, classifier):
    before, after = classifier.state_dict()[WORDS], weights_after()[WORDS]
    moved = (before != after).any(dim=1).nonzero()[:, 0]
    assert moved.tolist() == rows.input_ids.unique().tolist() and 10 < len(moved) < len(before)


def test_with_weight_decay_the_embeddings_of_all_pieces_shrink(weights_after, rows, classifier):
    after = weights_after(replace(SETTINGS, weight_decay=0.1))[WORDS]
    absent = torch.ones(len(after), dtype=torch.bool).index_fill(0, rows.input_ids.unique().long(), False)
    rates = [module.learning_rate(step, 8, SETTINGS) for step in range(8)]
    shrunk = torch.tensor([1 - 0.1 * rate for rate in rates], dtype=torch.float64).prod()
    torch.testing.assert_close(after[absent], shrunk * classifier.state_dict()[WORDS][absent])
