"""Decoders read the rows of encoders, and predict what follows each token."""

import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import pretrain.corpora as corpora
from symbert.cli import main
from symbert.errors import DivergedError
from symbert.files import read_json
from symbert.paths import Run
from symbert.pretrain.tasks import PackedRows
from symbert.pretrain.train import Trainer


@pytest.fixture
def build(manifest, brief):
    """A trainer of a tiny decoder."""

    def make(attention: str = "original", host: str = "decoder", **changes) -> Trainer:
        settings = brief(**{"dropout": 0.0, **changes})
        return Trainer(Run("tiny", attention, 1, host), settings, manifest)

    return make


def test_a_decoder_reads_the_rows_of_an_encoder_of_its_seed_and_all_held_out_rows(build, manifest):
    decoder, encoder = build().task, build(host="encoder").task
    rows = PackedRows(manifest, "train")[encoder.order(3)[1]]
    batch = decoder.training_batch(3)
    assert (batch.ids.numpy() == rows[:, :-1]).all() and (batch.targets.numpy() == rows[:, 1:]).all()
    held_out = PackedRows(manifest, "validation")[np.arange(8)]
    for rows in (np.arange(8), np.arange(4, 8)):
        assert (decoder.validation_batch(rows).targets.numpy() == held_out[rows, 1:]).all()


def test_the_loss_of_a_step_is_that_of_a_naive_loop(build):
    trainer = build(warmup_steps=0)
    batch, losses = trainer.task.training_batch(0), []
    with torch.no_grad():
        for ids, targets in zip(batch.ids, batch.targets, strict=True):
            for token, target in enumerate(targets):
                logits = trainer.model.logits(ids[None, : token + 1])[0, -1]
                losses.append(F.cross_entropy(logits.double(), target).item())
    assert trainer.step(0).loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_perplexity_that_no_float_holds_is_a_divergence(build):
    """It was believed that a finite loss has a perplexity: above 709 nats the run ended with an internal error."""
    trainer = build()
    trainer.model.cls["predictions"].bias.data[0] = 1e4  # a piece that no row has
    with pytest.raises(DivergedError, match=r"decoder.*: validation loss 1000\d\..*, perplexity inf; .*learning_rate"):
        trainer.evaluate()


def test_a_run_of_a_decoder_learns_and_says_its_host_and_its_perplexity(manifest, brief, tmp_path):
    """The corpus counts upwards, which a decoder learns: each row's first piece alone is free."""
    settings = brief(steps=150, learning_rate=5e-3, evaluate_every=50, save_every=150, dropout=0.0)
    assert main(corpora.options(manifest, settings, tmp_path, "symmetric", host="decoder")) == 0
    done = read_json(tmp_path / "done.json")
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["split"] == "validation"][-1]
    assert (done["validation_loss"], done["validation_perplexity"]) == (last["loss"], last["perplexity"])
    assert last["perplexity"] == pytest.approx(math.exp(last["loss"])) and last["perplexity"] < 10
    assert done["model_host"] == read_json(tmp_path / "state/identity.json")["model_host"] == "decoder"
