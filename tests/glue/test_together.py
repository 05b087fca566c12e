"""Seeds fine-tuned as one computation against the same seeds one by one."""

import copy
import math

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from glue.protocol import SETTINGS, naive_training
from model.models import Bottleneck, Rectified, define
from symbert.glue.batches import read_rows
from symbert.glue.train import (
    is_faster_together,
    load_classifier,
    logits_of,
    predict,
    reset_head,
    train,
    train_together,
)
from symbert.model.fold import fold
from symbert.tasks import GLUE

CPU = torch.device("cpu")
SEEDS = (3, 1, 8)
FELT = {"adam_epsilon": 1e-3, "gradient_clip": 0.5}  # a clip that bites, an ε that Adam feels


@pytest.fixture
def classifiers(checkpoint):
    """A model for each seed, in float64, with heads that give large losses."""

    def make(seeds=SEEDS, attention="pairwise", labels=2, dropout=0.1, scale=100):
        models = {}
        for seed in seeds:
            models[seed] = load_classifier(checkpoint(attention), labels, dropout).double()
            reset_head(models[seed], seed)
            models[seed].classifier.weight.data *= scale
        return models

    return make


def rows_of(data, task):
    return read_rows(data, GLUE[task], CPU)


def same_weights(models, others):
    for seed, model in models.items():
        for name, values in model.state_dict().items():
            torch.testing.assert_close(values, others[seed].state_dict()[name], rtol=0, atol=1e-9, msg=f"{seed} {name}")


def each_alone(models, rows, settings):
    for seed, model in models.items():
        train(model, rows, settings, "fp32", seed, lambda step: None)


@pytest.mark.parametrize("task", ["cola", "stsb", "mnli"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_each_seed_has_its_own_order_dropout_clip_and_moments(prepared, classifiers, task, weight_decay):
    """In float64: weights, logits and predictions are those of one by one; the rows of the seeds differ in length."""
    settings = replace(SETTINGS, weight_decay=weight_decay, **FELT)
    rows, labels = rows_of(prepared(task), task), GLUE[task].num_labels
    together, alone = classifiers(labels=labels), classifiers(labels=labels)
    steps = []
    assert train_together(together, rows["train"], settings, "fp32", steps.append) == {}
    each_alone(alone, rows["train"], settings)
    assert steps == list(range(1, 9))
    same_weights(together, alone)
    split = next(iter(GLUE[task].scores))
    batch = rows[split].batch(np.arange(40))
    for seed in SEEDS:
        with torch.no_grad():
            ours, theirs = (logits_of(models[seed].eval(), batch, "fp32") for models in (together, alone))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8)
        expected = predict(alone[seed], rows[split], "fp32")
        assert predict(together[seed], rows[split], "fp32") == pytest.approx(expected, abs=1e-8)
    weights = torch.stack([model.classifier.weight for model in together.values()])
    assert not torch.equal(weights[0], weights[1])


@pytest.mark.parametrize("operator", ["original", "symmetric", "shared", "pairwise", Rectified, Bottleneck])
def test_every_operator_learns_together_what_it_learns_alone(monkeypatch, prepared, classifiers, operator):
    if isinstance(operator, type):
        define(monkeypatch, "own", operator)
        operator = "own"
    rows = rows_of(prepared("cola"), "cola")["train"]
    together, alone = classifiers(attention=operator), classifiers(attention=operator)
    settings = replace(SETTINGS, epochs=1, **FELT)
    train_together(together, rows, settings, "fp32", lambda step: None)
    each_alone(alone, rows, settings)
    same_weights(together, alone)


def test_seeds_together_are_naive_loops_over_padded_rows(prepared, classifiers):
    """Stock model, AdamW, schedule and clip, in float64 and without dropout."""
    settings = replace(SETTINGS, dropout=0.0, **FELT)
    rows = rows_of(prepared("cola"), "cola")["train"]
    together = classifiers(attention="original", dropout=0.0)
    stock = {seed: fold(model).double() for seed, model in together.items()}
    train_together(together, rows, settings, "fp32", lambda step: None)
    for seed, model in stock.items():
        assert min(naive_training(model, rows, settings, seed)) > settings.gradient_clip
    same_weights({seed: fold(model).double() for seed, model in together.items()}, stock)


def test_a_seed_does_not_depend_on_the_others(prepared, classifiers):
    rows, settings = rows_of(prepared("cola"), "cola")["train"], replace(SETTINGS, **FELT)
    three, two, one = classifiers(), classifiers((8, 20)), classifiers((8,))
    for models in (three, two, one):
        train_together(models, rows, settings, "fp32", lambda step: None)
    same_weights({8: three[8]}, two)
    same_weights(one, two)


def test_in_single_precision_seeds_are_within_rounding(prepared, classifiers):
    rows = rows_of(prepared("cola"), "cola")["train"]
    together, alone = ({seed: model.float() for seed, model in classifiers(scale=1).items()} for _ in range(2))
    settings = replace(SETTINGS, epochs=1, adam_epsilon=1e-3)
    train_together(together, rows, settings, "fp32", lambda step: None)
    each_alone(alone, rows, settings)
    for seed, model in together.items():
        for ours, theirs in zip(model.parameters(), alone[seed].parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-6)


def test_a_seed_that_diverges_is_named_and_leaves_the_others_alone(prepared, classifiers):
    rows, settings = rows_of(prepared("cola"), "cola")["train"], replace(SETTINGS, **FELT)
    together = classifiers()
    alone = {seed: copy.deepcopy(model) for seed, model in together.items() if seed != 1}
    with torch.no_grad():
        together[1].classifier.weight.fill_(math.inf)
    wrong = train_together(together, rows, settings, "fp32", lambda step: None)
    assert {seed: str(error) for seed, error in wrong.items()} == {
        1: "loss nan in epoch 2; lower 'glue.learning_rate' under a new 'experiment'"
    }
    each_alone(alone, rows, settings)
    same_weights(alone, together)


def test_seeds_are_stacked_where_it_was_measured_to_be_faster():
    gpu = torch.device("cuda")
    assert [is_faster_together(gpu, precision) for precision in ("fp32", "bf16", "fp16")] == [True, True, False]
    assert not is_faster_together(CPU, "fp32")
