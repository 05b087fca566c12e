"""Fine-tuning one classifier on one task: the paper's protocol (section 3.4), without its evaluations on the way."""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from symbert.errors import DivergedError
from symbert.glue.batches import TaskBatch, TaskRows, shuffled_batches, sorted_batches
from symbert.model.network import Classifier, SpanModel
from symbert.model.packed import Encoder, encode, encoder_for
from symbert.model.stacked import Stack
from symbert.model.weights import fill, read_checkpoint
from symbert.settings import GlueSettings
from symbert.training.device import autocast
from symbert.training.optimizer import Updater, build_optimizer, linear_rate
from symbert.training.recipe import RECIPES, Recipe, attention_kernels

EVALUATION_BATCH_SIZE = 64  # rows; predictions do not depend on it
# Seeds that `train_together` takes: two take about as long as one after the other (docs/benchmarks.md); more than
# the paper's five take memory that not every GPU has.
FEWEST_AT_ONCE, MOST_AT_ONCE = 3, 5
NEW_LAYERS = ("bert.pooler.", "classifier.", "qa_outputs.")


def load_classifier(
    checkpoint: Path, num_labels: int, dropout: float, kind: type[Classifier | SpanModel] = Classifier
) -> Classifier | SpanModel:
    """The encoder of a Hugging Face directory under the new layers of a kind of model, which `reset_head` fills.

    `dropout` holds everywhere. Raises MissingInputError without a checkpoint, ConfigError when its operator was edited
    since, and IntegrityError when it lacks a weight of the encoder.
    """
    config, weights = read_checkpoint(checkpoint)
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.classifier_dropout = dropout
    model = kind(config, num_labels)
    fill(model, [name for name in model.state_dict() if not name.startswith(NEW_LAYERS)], weights, checkpoint)
    return model


@torch.no_grad()
def reset_head(model: nn.Module, seed: int) -> None:
    """Draw the new layers anew from BERT's N(0, 0.02), as a function of the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    for layer in model.new_layers:
        drawn = torch.randn(layer.weight.shape, generator=generator) * model.config.initializer_range
        layer.weight.copy_(drawn)
        layer.bias.zero_()


def train(
    model: nn.Module,
    rows: TaskRows,
    settings: GlueSettings,
    precision: str,
    seed: int,
    report_step: Callable[[int], None],
) -> None:
    """Train in place for `settings.epochs`; batch order and dropout follow from `seed` alone.

    The recipe `fast` differs from `faithful` in how a GPU computes: the encoder is compiled, and on Hopper attention
    takes kernels that need another dropout (`symbert.training.recipe`). The batches are the same. `report_step` gets
    the number of steps done. DivergedError when the loss of an epoch is not finite.
    """
    torch.manual_seed(seed)
    model.train()
    recipe, device = RECIPES[settings.recipe], next(model.parameters()).device
    # Weight decay would move the embeddings of pieces that no row has, too.
    with train_used_embeddings(model, rows) if settings.weight_decay == 0 else nullcontext(rows) as numbered:
        updater = Updater(model, build_optimizer(model, settings), settings.gradient_clip, precision, device)
        encoder, step, steps = encoder_of(model, recipe, device), 0, steps_of(rows.examples, settings)
        for epoch in range(settings.epochs):
            losses = []
            for batch in shuffled_batches(numbered, settings.batch_size, [seed], epoch):
                with attention_kernels(recipe, device):
                    loss = rows.head.loss(logits_of(model, batch, precision, encoder), batch.labels)
                updater.backward(loss)
                updater.clip()
                updater.update(learning_rate(step, steps, settings))
                losses.append(loss.detach())
                step += 1
                report_step(step)
            mean = torch.stack(losses).mean().item()
            if not math.isfinite(mean):
                raise diverged(mean, epoch + 1)


def is_faster_together(device: torch.device, precision: str) -> bool:
    """Whether FEWEST_AT_ONCE seeds and more are fine-tuned faster by `train_together` than one by one, as measured.

    On a GPU a step waits for launches, and five seeds have about as many as one. On a CPU arithmetic decides: what is
    left to gain pays neither for the results of a whole stack that a kill costs, nor for bits that depend on which
    seeds were missing (docs/benchmarks.md has the figures; those of base in `fast` are missing). In fp16 seeds
    would share the scale of their losses.
    """
    return device.type == "cuda" and precision != "fp16"


def train_together(
    models: dict[int, nn.Module],
    rows: TaskRows,
    settings: GlueSettings,
    precision: str,
    report_step: Callable[[int], None],
) -> dict[int, DivergedError]:
    """As `train`, of the model of each seed, all at once: each as alone, but for how sums are rounded.

    On a GPU dropout has other draws than in `train`, but again they follow from the seed alone. Returns what is wrong
    with the seeds whose loss in the last epoch is not finite, which the others do not feel.
    """
    seeds, one = list(models), next(iter(models.values()))
    with ExitStack() as contexts:
        numbered, device = rows, next(one.parameters()).device
        if settings.weight_decay == 0:
            numbered, *_ = [contexts.enter_context(train_used_embeddings(each, rows)) for each in models.values()]
        stack = Stack(models)
        model = stack.model.train()
        optimizer = build_optimizer(model, settings, vector=2)
        updater = Updater(model, optimizer, settings.gradient_clip, precision, device)
        encoder, step, steps = partial(encode, attend=stack.draws.attend), 0, steps_of(rows.examples, settings)
        for epoch in range(settings.epochs):
            losses = []
            for batch in shuffled_batches(numbered, settings.batch_size, seeds, epoch):
                stack.draws.begin(batch.lengths)
                logits = logits_of(model, batch, precision, encoder, len(seeds))
                loss = rows.head.loss(logits, batch.labels, "none").view(len(seeds), -1).mean(dim=1)
                updater.backward(loss.sum())
                stack.clip(settings.gradient_clip)
                updater.update(learning_rate(step, steps, settings))
                losses.append(loss.detach())
                step += 1
                report_step(step)
        stack.write_back()
    means = zip(seeds, torch.stack(losses).mean(dim=0).tolist(), strict=True)
    return {seed: diverged(mean, settings.epochs) for seed, mean in means if not math.isfinite(mean)}


def diverged(loss: float, epoch: int) -> DivergedError:
    """What an epoch (from 1) ends with whose mean loss is not finite."""
    return DivergedError(f"loss {loss} in epoch {epoch}; lower 'glue.learning_rate' under a new 'experiment'")


@contextmanager
def train_used_embeddings(model: nn.Module, rows: TaskRows) -> Iterator[TaskRows]:
    """Give the model the embeddings of the pieces in `rows` alone, and these rows numbered accordingly.

    At the end the trained embeddings are put back among the others, which no row has moved: without weight decay
    exactly as if all had been in the optimizer, at less than half its cost.
    """
    embeddings = model.bert.embeddings
    every = embeddings.word_embeddings
    pieces, numbers = rows.input_ids.unique(return_inverse=True)
    padding = (pieces == every.padding_idx).nonzero().flatten().tolist()  # a text may spell it: it is not trained
    embeddings.word_embeddings = nn.Embedding.from_pretrained(
        every.weight.detach()[pieces], freeze=False, padding_idx=padding[0] if padding else None
    )
    try:
        yield replace(rows, input_ids=numbers)
    finally:
        every.weight.data[pieces] = embeddings.word_embeddings.weight.data
        embeddings.word_embeddings = every


def encoder_of(model: nn.Module, recipe: Recipe, device: torch.device) -> Encoder:
    """What the model's operator needs; `encode` is compiled to one graph for all lengths where that pays.

    On a CPU it takes longer than it saves; what computes one length at a time is no one graph.
    """
    encoder = encoder_for(model.bert)
    pays = encoder is encode and recipe.compiled and device.type == "cuda"
    return torch.compile(encode, fullgraph=True, dynamic=True) if pays else encoder


@torch.inference_mode()
def predict(model: nn.Module, rows: TaskRows, precision: str) -> np.ndarray:
    """What the head of the rows predicts."""
    model.eval()
    batches = sorted_batches(rows, EVALUATION_BATCH_SIZE)
    return rows.head.predictions(rows, ((index, logits_of(model, batch, precision)) for index, batch in batches))


def steps_of(examples: int, settings: GlueSettings) -> int:
    """Optimizer steps of a whole fine-tuning."""
    return settings.epochs * math.ceil(examples / settings.batch_size)


def learning_rate(step: int, steps: int, settings: GlueSettings) -> float:
    """The rate of step `step` (from 0) of `steps`, of which ⌈warmup_ratio · steps⌉ warm up."""
    return linear_rate(step, settings.learning_rate, math.ceil(settings.warmup_ratio * steps), steps)


def logits_of(
    model: nn.Module, batch: TaskBatch, precision: str, encoder: Encoder | None = None, seeds: int = 1
) -> Tensor:
    """Logits `row label`, in the precision of the weights; the rows of a stack's seeds one after the other.

    Of a model of spans they are `row token 2`, −∞ where a row has no token.
    """
    encoder, packing = encoder or encoder_for(model.bert), batch.packing
    tokens = batch.input_ids, batch.token_type_ids, packing.position_ids
    with autocast(precision, batch.labels.device):
        embedded = model.bert.embeddings(*(each.view(seeds, -1) for each in tokens))
        encoded = encoder(model.bert, embedded, packing)
        if isinstance(model, SpanModel):
            logits = packing.padded(model.qa_outputs(encoded).flatten(0, 1), -math.inf)
            logits = logits.masked_fill(~packing.attended.view(*logits.shape[:2], 1), -math.inf)
        else:
            logits = model.classifier(model.dropout(encoded.unflatten(0, (seeds, -1)))).flatten(0, 1)
        return logits.to(model.new_layers[-1].weight.dtype)
