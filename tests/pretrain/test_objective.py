"""What all architectures learn alike, and decoders: they read the rows of encoders, and predict what follows each
token."""

import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from pretrain.corpora import options, planned
from symbert.architectures import ARCHITECTURES, Rows
from symbert.cli import main
from symbert.errors import DivergedError
from symbert.files import read_json, write_json
from symbert.model.bert import Encoder
from symbert.pretrain.tasks import PackedRows
from symbert.pretrain.train import Trainer
from symbert.sizes import SIZES


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_a_plan_reckons_with_is_counted_on_the_model(manifest, brief, architecture):
    """Parameters by formula, and operations of a step with `original` by formula and by the model's weights."""
    settings, packed = brief(), read_json(manifest)
    rows = Rows(packed["vocabulary_size"], packed["sequence_length"], settings.mask_probability)
    trainer = Trainer(planned(manifest, settings, "original", architecture=architecture))
    counted = sum(parameter.numel() for parameter in trainer.model.parameters())
    assert SIZES["tiny"].parameters(rows.vocabulary_size) == counted
    flops = ARCHITECTURES[architecture].step_flops(
        SIZES["tiny"], SIZES["tiny"].layer_weights, rows, settings.batch_size
    )
    assert flops == pytest.approx(trainer.task.flops(trainer.model), rel=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_tokens_of_a_pace_are_all_that_layers_read(manifest, brief, architecture):
    trainer = Trainer(planned(manifest, brief(), "original", architecture=architecture))
    read = []
    for module in trainer.model.modules():
        if isinstance(module, Encoder):
            module.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].shape[1]))
    trainer.step(0)
    assert trainer.task.tokens == sum(read)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_trains_and_resumes_with_the_same_batches(manifest, brief, architecture):
    """Three steps, and the third alone with the weights of the second."""
    settings = brief(dropout=0.1)
    one, other = (Trainer(planned(manifest, settings, architecture=architecture)) for _ in range(2))
    for step in range(2):
        one.step(step)
    other.model.load_state_dict(one.model.state_dict())
    other.optimizer.load_state_dict(one.optimizer.state_dict())
    assert other.step(2) == one.step(2)
    measured = one.evaluate()
    measure = ARCHITECTURES[architecture].measure
    assert list(measured) == ["loss", *([measure] if measure else [])]


@pytest.mark.parametrize("architecture", ["encoder", "decoder"])
def test_padding_has_the_id_that_the_vocabulary_gives_it_and_piece_0_starts_as_any_other(build, manifest, architecture):
    """It was believed to be 0 everywhere; published vocabularies of other languages have a word there."""
    packed = read_json(manifest)
    write_json(manifest, packed | {"special_tokens": packed["special_tokens"] | {"pad": 9, "unk": 0}})
    model = build("original", architecture=architecture).model
    embeddings = model.get_parameter("bert.embeddings.word_embeddings.weight")
    assert model.config.pad_token_id == 9
    assert embeddings[9].count_nonzero() == 0 and embeddings[0].count_nonzero() == len(embeddings[0])


def test_a_decoder_reads_the_rows_of_an_encoder_of_its_seed_and_all_held_out_rows(build, manifest):
    decoder, encoder = build("original", architecture="decoder").task, build().task
    rows = PackedRows(manifest, "train")[encoder.order(3)[1]]
    batch = decoder.training_batch(3)
    assert (batch["input_ids"].numpy() == rows[:, :-1]).all() and (batch["targets"].numpy() == rows[:, 1:]).all()
    held_out = PackedRows(manifest, "validation")[np.arange(8)]
    for rows in (np.arange(8), np.arange(4, 8)):
        assert (decoder.validation_batch(rows)["targets"].numpy() == held_out[rows, 1:]).all()


def test_the_loss_of_a_step_is_that_of_a_naive_loop(build):
    trainer = build("original", architecture="decoder", warmup_steps=0)
    batch, losses = trainer.task.training_batch(0), []
    with torch.no_grad():
        for ids, targets in zip(batch["input_ids"], batch["targets"], strict=True):
            for token, target in enumerate(targets):
                logits = trainer.model(ids[None, : token + 1])[0, -1]
                losses.append(F.cross_entropy(logits.double(), target).item())
    assert trainer.step(0).loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_perplexity_that_no_float_holds_is_a_divergence(build):
    """It was believed that a finite loss has a perplexity: above 709 nats the run ended with an internal error."""
    trainer = build("original", architecture="decoder")
    trainer.model.cls["predictions"].bias.data[0] = 1e4  # a piece that no row has
    with pytest.raises(DivergedError, match=r"decoder.*: validation loss 1000\d\..*, perplexity inf; .*learning_rate"):
        trainer.evaluate()


def test_a_run_of_a_decoder_learns_and_says_its_architecture_and_its_perplexity(manifest, brief, tmp_path):
    """The corpus counts upwards, which a decoder learns: each row's first piece alone is free."""
    settings = brief(steps=150, learning_rate=5e-3, evaluate_every=50, save_every=150, dropout=0.0)
    assert main(options(manifest, settings, tmp_path, "symmetric", architecture="decoder")) == 0
    done = read_json(tmp_path / "done.json")
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["split"] == "validation"][-1]
    assert (done["validation_loss"], done["validation_perplexity"]) == (last["loss"], last["perplexity"])
    assert last["perplexity"] == pytest.approx(math.exp(last["loss"])) and last["perplexity"] < 10
    assert done["architecture"] == read_json(tmp_path / "state/identity.json")["architecture"] == "decoder"
