"""Seeds of fine-tuning on a GPU for `gpu_check`: stacked as one computation, beside one by one."""

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from msgspec.structs import replace
from torch import nn

from benchmarks.finetuners import Enough, Stopwatch
from benchmarks.gpu_steps import VOCABULARY
from benchmarks.paper import finetuning_settings
from benchmarks.prepared import stand_in
from symbert.glue.batches import TaskRows, read_rows
from symbert.glue.train import logits_of, reset_head, train, train_together
from symbert.model.configuration import configuration_of
from symbert.model.network import Classifier, initialize
from symbert.settings import GlueSettings
from symbert.tasks import GLUE
from symbert.training.recipe import RECIPES, attention_dropout

OPERATOR, TASK = "pairwise", GLUE["mrpc"]
SEEDS = (1, 2, 3, 4, 5)
COMPARED_STEPS = 10
LEARNING_RATE = 1e-4  # of the compared steps: ten times the paper's, for a larger effect
# Of the largest logit: both add in fp32, in another order, and AdamW's first steps go by signs that rounding decides.
TOLERANCE = 1e-3
UNTIMED, TIMED = 15, 30  # steps
TIMED_PRECISION = "bf16"
COMPARISON = """
Fine-tuning, {operator}, rows as long as MRPC's: after {steps} steps in fp32 without dropout, logits of five seeds at
once differ from those of one by one by a share of the largest logit.

| size | logits | |
|---|---:|---|"""
TIMES = """
Milliseconds of a step in {precision} with dropout, and how many times as fast so many seeds are at once as one after
the other.

| size | one, faithful | one, fast | three | five | three / faithful | three / fast | five / fast |
|---|---:|---:|---:|---:|---:|---:|---:|"""

Models = dict[int, nn.Module]


def check(sizes: Sequence[str], device: torch.device, folder: Path, say: Callable[[str], None], speed: bool) -> int:
    """Say a row for each size, and then how fast it is; returns how many differ."""
    rows = rows_of(folder / "compared", COMPARED_STEPS, device)
    differing = 0
    say(COMPARISON.format(operator=OPERATOR, steps=COMPARED_STEPS))
    for size in sizes:
        difference = compare_logits(size, rows, device)
        is_same = difference <= TOLERANCE
        differing += not is_same
        say(f"| {size} | {difference:.1e} | {'same' if is_same else '**differs**'} |")
    if speed:
        rows = rows_of(folder / "timed", UNTIMED + TIMED, device)
        say(TIMES.format(precision=TIMED_PRECISION))
        for size in sizes:
            say(f"| {size} | {measure_times(size, rows, device)} |")
    return differing


@dataclass(frozen=True)
class Times:
    """Milliseconds of a step."""

    faithful: float  # of one seed
    fast: float  # likewise
    three: float  # of so many at once, in any recipe
    five: float

    def __str__(self) -> str:
        gains = 3 * self.faithful / self.three, 3 * self.fast / self.three, 5 * self.fast / self.five
        steps = [f"{each:.1f}" for each in (self.faithful, self.fast, self.three, self.five)]
        return " | ".join([*steps, *(f"{gain:.2f} ×" for gain in gains)])


def rows_of(folder: Path, steps: int, device: torch.device) -> dict[str, TaskRows]:
    """Made-up rows of the task for so many steps, and as few for evaluation."""
    counts = {"train": steps * finetuning_settings().batch_size, "validation": 64}
    return read_rows(stand_in(TASK, folder, counts), TASK, device)


def compare_logits(size: str, rows: dict[str, TaskRows], device: torch.device) -> float:
    """Largest difference between logits of seeds fine-tuned at once and one by one, as a share of the largest."""
    settings = replace(finetuning_settings(), epochs=1, learning_rate=LEARNING_RATE, dropout=0.0)
    together, alone = (classifiers(size, SEEDS, settings, device) for _ in range(2))
    wrong = train_together(together, rows["train"], settings, "fp32", lambda step: None)
    for seed, model in alone.items():
        train(model, rows["train"], settings, "fp32", seed, lambda step: None)
    ours, theirs = (logits_after(models, rows["validation"]) for models in (together, alone))
    difference = float((ours - theirs).abs().max() / theirs.abs().max())
    return math.inf if wrong or math.isnan(difference) else difference


@torch.no_grad()
def logits_after(models: Models, rows: TaskRows) -> torch.Tensor:
    """What each model computes for all rows, `seed row label`."""
    batch = rows.batch(np.arange(len(rows)))
    return torch.stack([logits_of(model.eval(), batch, "fp32") for model in models.values()])


def measure_times(size: str, rows: dict[str, TaskRows], device: torch.device) -> Times:
    """Of one seed in each recipe, and of several at once."""
    settings = {recipe: replace(finetuning_settings(), epochs=1, recipe=recipe) for recipe in RECIPES}

    def one(recipe: str) -> float:
        torch.compiler.reset()
        models = classifiers(size, SEEDS[:1], settings[recipe], device)
        return milliseconds(
            lambda tell: train(models[1], rows["train"], settings[recipe], TIMED_PRECISION, SEEDS[0], tell)
        )

    def several(count: int) -> float:
        models = classifiers(size, SEEDS[:count], settings["faithful"], device)
        return milliseconds(
            lambda tell: train_together(models, rows["train"], settings["faithful"], TIMED_PRECISION, tell)
        )

    return Times(one("faithful"), one("fast"), several(3), several(5))


def milliseconds(training: Callable[[Callable[[int], None]], object]) -> float:
    """Of a step of a training that is given whom to tell of its steps."""
    clock = Stopwatch(UNTIMED, UNTIMED + TIMED)
    with suppress(Enough):
        training(clock.tell)
    return 1000 * clock.seconds / TIMED


def classifiers(size: str, seeds: Sequence[int], settings: GlueSettings, device: torch.device) -> Models:
    """A classifier as initialised for each seed, with a head of its own."""
    config = configuration_of(size, OPERATOR, VOCABULARY, settings.dropout)
    config.attention_probs_dropout_prob = attention_dropout(RECIPES[settings.recipe], settings.dropout, device)
    model = Classifier(config, TASK.num_labels)
    initialize(model, seed=1)
    models = {seed: copy.deepcopy(model) for seed in seeds}
    for seed, each in models.items():
        reset_head(each, seed)
        each.to(device)
    return models
