"""Digits of scikit-learn as batches of images."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from symbert.hosts import HELD_OUT_IMAGES, IMAGES
from symbert.layout import Run
from symbert.pretrain.images import digits
from symbert.pretrain.train import Trainer
from symbert.settings import PretrainSettings, read_settings


@pytest.fixture
def build(brief, tmp_path):
    """A trainer of a tiny vision encoder."""

    def make(attention: str = "original", seed: int = 1, **changes) -> Trainer:
        settings = read_settings(brief(**{"dropout": 0.0, **changes}), PretrainSettings)
        return Trainer(Run("tiny", attention, seed, "vision"), settings, None, tmp_path)

    return make


def test_every_image_of_scikit_learn_is_there_once_with_its_digit():
    pixels, classes = map(torch.cat, zip(*digits(), strict=True))
    assert pixels.shape == (IMAGES, 1, 8, 8) and pixels.min() == 0 and pixels.max() == 1
    ours = sorted(
        (*image.flatten().tolist(), digit) for image, digit in zip(16 * pixels, classes.tolist(), strict=True)
    )
    stock = load_digits()
    assert ours == sorted((*row.tolist(), int(digit)) for row, digit in zip(stock.data, stock.target, strict=True))


def test_no_held_out_image_is_trained_on_and_an_epoch_has_all_others(build):
    objective = build(batch_size=IMAGES - HELD_OUT_IMAGES).objective
    epoch, held_out = objective.training_batch(0), list(objective.validation_batches(100))
    rows = [tuple(image.flatten().tolist()) for batch in (epoch, *held_out) for image in batch.pixels]
    assert len(rows) == IMAGES
    everything = sorted(tuple((image / 16).tolist()) for image in load_digits().data)
    assert sorted(rows) == everything


def test_batches_follow_from_seed_and_step(build):
    one, again, other = (build(*who).objective.training_batch(3) for who in (("original",), ("shared",), ("shared", 2)))
    assert torch.equal(one.pixels, again.pixels) and torch.equal(one.targets, again.targets)
    assert not torch.equal(one.pixels, other.pixels)


def test_accuracy_is_the_share_of_images_that_are_recognised(build):
    trainer = build(steps=40, batch_size=64, learning_rate=3e-3)
    before = trainer.evaluate()["accuracy"]
    for step in range(40):
        trainer.step(step)
    (batch,) = trainer.objective.validation_batches(HELD_OUT_IMAGES)
    with torch.no_grad():
        found = trainer.model.eval().logits(batch.pixels).argmax(-1)
    accuracy = trainer.evaluate()["accuracy"]
    assert accuracy == pytest.approx(np.mean((found == batch.targets).numpy()))
    assert before < 0.3 < accuracy
