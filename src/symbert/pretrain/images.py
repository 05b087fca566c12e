"""Digits to be recognised: what vision encoders are trained on, with the images that come with scikit-learn."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symbert.draws import permute
from symbert.hosts import DIGITS, HELD_OUT_IMAGES, IMAGES
from symbert.layout import Run
from symbert.model.vision import VisionModel
from symbert.pretrain.objective import Batch, Objective
from symbert.settings import PretrainSettings

BRIGHTEST = 16  # the largest value of a pixel
Shown = tuple[Tensor, Tensor]  # images `image channel height width`, and the digit of each


@dataclass(frozen=True)
class ImageBatch(Batch):
    """Pixels `batch channel height width` between 0 and 1, and the digit of each image."""

    pixels: Tensor
    targets: Tensor


class Images(Objective):
    """The digit that an image shows (Alpaydin and Kaynak 1998), of 8 × 8 pixels; a fifth of the images is held out."""

    def __init__(self, run: Run, settings: PretrainSettings, manifest: Path | None = None) -> None:
        super().__init__(run, settings, manifest)
        self.training, self.validation = digits()
        self.training_count, self.validation_count = (len(pixels) for pixels, _ in (self.training, self.validation))

    def build_model(self, attention_dropout: float) -> VisionModel:
        """An encoder of patches with a classifier."""
        config = self.configuration(attention_dropout)
        vars(config).update(DIGITS)
        return VisionModel(config)

    def training_batch(self, step: int) -> ImageBatch:
        """The images of step `step` (from 0), all once before one comes again."""
        _, rows = self.order(step)
        return ImageBatch(*(each[rows] for each in self.training))

    def validation_batch(self, rows: NDArray[np.int64]) -> ImageBatch:
        """Held-out images."""
        return ImageBatch(*(each[rows] for each in self.validation))

    def logits(self, model: VisionModel, pixels: Tensor) -> Tensor:
        """`batch digit`."""
        return model.logits(pixels)

    def right(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Images whose digit is the most probable one."""
        return (logits.argmax(-1) == targets).sum()

    def measures(self, loss: float, right: float) -> dict[str, float]:
        """The share of held-out images that are recognised."""
        return {"accuracy": right}

    def flops(self, model: VisionModel) -> float:
        """Of the layers on all patches."""
        return model.step_flops(self.settings.batch_size)


def digits() -> tuple[Shown, Shown]:
    """The images that are trained on, and those that are held out: the same for every run."""
    from sklearn.datasets import load_digits  # of no other host

    data = load_digits()
    pixels, shown = torch.from_numpy(data.images / BRIGHTEST).float()[:, None], torch.from_numpy(data.target).long()
    shuffled = permute(np.arange(IMAGES), IMAGES, 0)
    held_out, others = shuffled[:HELD_OUT_IMAGES], shuffled[HELD_OUT_IMAGES:]
    return (pixels[others], shown[others]), (pixels[held_out], shown[held_out])
