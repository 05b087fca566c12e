"""Fine-tuning one classifier on one task: the paper's protocol (section 3.4), without its evaluations on the way."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from symbert.configuration import GlueSettings
from symbert.errors import DivergedError
from symbert.glue.batches import TaskBatch, TaskRows, shuffled_batches, sorted_batches
from symbert.glue.spans import answers_of
from symbert.model.bert import Classifier, SpanModel
from symbert.model.loading import fill, read_checkpoint
from symbert.model.packed import Encoder, encode, encoder_for
from symbert.pretrain.compute import RECIPES, Recipe, Updater, attention_kernels, autocast, build_optimizer, linear_rate

EVALUATION_BATCH_SIZE = 64  # rows; predictions do not depend on it
REMEDY = "lower 'glue.learning_rate'"
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
    takes kernels that need another dropout (`symbert.pretrain.compute`). The batches are the same. `report_step` gets
    the number of steps done. DivergedError when the loss of a step is not finite, or a weight after the last one.
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
            for batch in shuffled_batches(numbered, settings.batch_size, seed, epoch):
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
                raise DivergedError(f"loss {mean} in epoch {epoch + 1}; {REMEDY}")
        if not all(weights.isfinite().all() for weights in model.parameters()):
            raise DivergedError(f"a weight is not finite after the last step; {REMEDY}")


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
    """What is predicted of each row or, where rows have contexts, the answer to each question; DivergedError where a
    logit is not finite."""
    model.eval()
    batches = sorted_batches(rows, EVALUATION_BATCH_SIZE)
    outputs = ((index, _finite_logits(model, batch, precision)) for index, batch in batches)
    if rows.contexts is not None:
        on_cpu = ((index, logits.cpu().numpy()) for index, logits in outputs)
        return answers_of(rows.contexts, rows.first, rows.lengths, on_cpu)
    predictions = np.zeros(len(rows), rows.head.predicted)
    for index, logits in outputs:
        predictions[index] = rows.head.of_rows(logits).cpu().numpy()
    return predictions


def _finite_logits(model: nn.Module, batch: TaskBatch, precision: str) -> Tensor:
    logits = logits_of(model, batch, precision)
    read = logits[batch.packing.attended.flatten(1)] if isinstance(model, SpanModel) else logits
    if not read.isfinite().all():
        raise DivergedError(f"a logit is not finite; {REMEDY}")
    return logits


def steps_of(examples: int, settings: GlueSettings) -> int:
    """Optimizer steps of a whole fine-tuning."""
    return settings.epochs * math.ceil(examples / settings.batch_size)


def learning_rate(step: int, steps: int, settings: GlueSettings) -> float:
    """The rate of step `step` (from 0) of `steps`, of which ⌈warmup_ratio · steps⌉ warm up."""
    return linear_rate(step, settings.learning_rate, math.ceil(settings.warmup_ratio * steps), steps)


def logits_of(model: nn.Module, batch: TaskBatch, precision: str, encoder: Encoder | None = None) -> Tensor:
    """Logits `row label`, in the precision of the weights; of a model of spans `row token 2`, −∞ where a row has no
    token."""
    encoder, packing = encoder or encoder_for(model.bert), batch.packing
    tokens = batch.input_ids, batch.token_type_ids, packing.position_ids
    with autocast(precision, batch.labels.device):
        embedded = model.bert.embeddings(*(each.unsqueeze(0) for each in tokens))
        encoded = encoder(model.bert, embedded, packing)
        if isinstance(model, SpanModel):
            logits = packing.padded(model.qa_outputs(encoded).flatten(0, 1), -math.inf)
        else:
            logits = model.classifier(model.dropout(encoded))
        return logits.to(model.new_layers[-1].weight.dtype)
