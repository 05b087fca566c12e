"""The arithmetic of an experiment, by formula and without torch.

Model operations are counted as `symbert.pretrain.flops` counts them, for the operator `original`: no other has more,
and they differ by a few per cent.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from symbert.config import source_of
from symbert.experiment.layout import Experiment
from symbert.glue.tasks import GLUE, Task
from symbert.sizes import SIZES, Shape

# Tokens of an example without padding: padding GLUE's training rows to 128 computes 3.6 times as many.
EXAMPLE_TOKENS = 36
STAND_IN_ROWS, STAND_IN_EVALUATION_ROWS = 1_000, 500  # of a task that is made here


@dataclass(frozen=True)
class Work:
    """Operations of the model, and the layers of the optimizer steps that they are part of."""

    flops: float = 0.0
    layers: int = 0  # steps × layers of the model

    def __add__(self, other: "Work") -> "Work":
        return Work(self.flops + other.flops, self.layers + other.layers)


class Finetuning(NamedTuple):
    """One task on one checkpoint with one seed."""

    steps: int
    evaluated: int  # rows


def total(works: Iterable[Work]) -> Work:
    """The sum."""
    return sum(works, Work())


def pretraining(experiment: Experiment, size: str, done: int = 0) -> Work:
    """The steps of one run after the first `done`, with their evaluations."""
    settings, rows = experiment.pretraining, experiment.config["corpus"]["pack"]
    left, length = settings.steps - done, rows["sequence_length"]
    evaluations = math.ceil(left / settings.evaluate_every)
    shape, vocabulary, masked = SIZES[size], experiment.vocabulary_size, settings.mask_probability
    step = step_flops(shape, settings.batch_size, length, vocabulary, masked)
    evaluation = step_flops(shape, rows["validation_sequences"], length, vocabulary, masked) / 3  # forward only
    return Work(left * step + evaluations * evaluation, left * shape.num_hidden_layers)


def finetuning(experiment: Experiment, size: str, task: str, seeds: int = 1) -> Work:
    """One task on one checkpoint, with its evaluation."""
    one = finetuning_of(experiment, task)
    evaluation = _encoder_flops(SIZES[size], one.evaluated, _tokens(experiment))
    step = 3 * _encoder_flops(SIZES[size], experiment.finetuning.batch_size, _tokens(experiment))
    return Work(seeds * (one.steps * step + evaluation), seeds * one.steps * SIZES[size].num_hidden_layers)


def robustness(experiment: Experiment, size: str, task: str, seeds: int = 1) -> Work:
    """Scores on noise, of models that were kept, or else are fine-tuned again. Out-of-domain sets are not counted."""
    glue = experiment.config["glue"]
    chosen, rows = glue["robustness"], finetuning_of(experiment, task).evaluated
    levels = 1 + len(chosen["noise"]) * len(chosen["noise_kinds"])
    scored = Work(seeds * levels * _encoder_flops(SIZES[size], rows, _tokens(experiment)))
    return scored if glue["keep_finetuned"] else scored + finetuning(experiment, size, task, seeds)


def finetuning_of(experiment: Experiment, task: str) -> Finetuning:
    """Steps and evaluated rows of one seed; a task whose rows are limited, or made here, has fewer."""
    rows = rows_of(experiment, GLUE[task])
    settings = experiment.finetuning
    steps = settings.epochs * math.ceil(rows["train"] / settings.batch_size)
    return Finetuning(steps, sum(count for split, count in rows.items() if split != "train"))


def rows_of(experiment: Experiment, task: Task) -> dict[str, int]:
    """Rows by split."""
    glue = experiment.config["glue"]
    stand_in = source_of(experiment.config, "glue") == "embedded"
    found = {}
    for split, official in task.official_rows.items():
        limit = glue["max_examples" if split == "train" else "max_evaluation_examples"]
        made = STAND_IN_ROWS if split == "train" else STAND_IN_EVALUATION_ROWS
        found[split] = min(made if stand_in else official, limit or official)
    return found


def step_flops(shape: Shape, rows: int, tokens: int, vocabulary_size: int, mask_probability: float) -> float:
    """Operations, forward and backward, of a step of pre-training on `rows` of `tokens` each."""
    head = shape.hidden_size * (shape.hidden_size + vocabulary_size)
    return 3 * (_encoder_flops(shape, rows, tokens) + 2 * mask_probability * rows * tokens * head)


def _encoder_flops(shape: Shape, rows: int, tokens: int) -> float:
    """Operations of the layers, forward."""
    hidden, layers = shape.hidden_size, shape.num_hidden_layers
    weights = 4 * hidden**2 + 2 * hidden * shape.intermediate_size
    return 2.0 * rows * tokens * layers * weights + 4.0 * layers * rows * tokens**2 * hidden


def _tokens(experiment: Experiment) -> int:
    return min(EXAMPLE_TOKENS, experiment.config["glue"]["max_length"])
