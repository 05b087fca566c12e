"""Fine-tuning one model on one task: rows as tensors, heads, the paper's protocol (section 3.4), predictions.

The rows of a task are resident and nothing of them is padded: `token` are the tokens of all rows of a split, end to
end; `row` is one value per row. A `Trainee` says how its model reads rows: one of this project reads them end to end
(`Packed`), on a GPU padded to few lengths (`symbert.glue.graphs`), one of transformers' classes padded
(`symbert.glue.stock`).
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.configuration import GlueSettings
from symbert.draws import permute
from symbert.errors import DivergedError
from symbert.glue.sources import read_table
from symbert.glue.squad import Contexts, Question, answers_of
from symbert.glue.tasks import CHOICES, Task
from symbert.model.bert import Classifier, SpanModel
from symbert.model.configuration import Configuration
from symbert.model.loading import Tensors, fill, read_checkpoint
from symbert.model.packed import Encoder, Packing, encode, encoder_for, forward
from symbert.pretrain.compute import Updater, autocast, build_optimizer, linear_rate

EVALUATION_BATCH_SIZE = 64  # rows; predictions do not depend on it
REMEDY = "lower 'glue.learning_rate'"
NEW_LAYERS = ("bert.pooler.", "classifier.", "qa_outputs.")
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")  # of a classifier of ours, which its export states


class Head(NamedTuple):
    """The head of a task: the class of its model, the types of labels and predictions, the mean loss of
    examples (of logits `row label`, or `row token 2`; with reduction="none" `example`), and a prediction for each row
    from its logits."""

    model: type[Classifier | SpanModel]
    label: type
    predicted: type
    loss: Callable[..., Tensor]
    of_rows: Callable[[Tensor], Tensor] | None = None  # spans: `symbert.glue.squad.answers_of` makes answers of them


def _loss_of_choices(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """The cross-entropy between the rows of an example, of which one has the label 1."""
    return F.cross_entropy(logits.view(-1, CHOICES), labels.view(-1, CHOICES).argmax(dim=1), reduction=reduction)


def _loss_of_spans(logits: Tensor, places: Tensor, reduction: str = "mean") -> Tensor:
    """The cross-entropy over tokens of the first and the last `row 2` of the answer; logits are −∞ where a row has no
    token."""
    losses = F.cross_entropy(logits, places, reduction="none").mean(dim=1)
    return losses.mean() if reduction == "mean" else losses


def _squared_error(logits: Tensor, grades: Tensor, reduction: str = "mean") -> Tensor:
    return F.mse_loss(logits[:, 0], grades.to(logits.dtype), reduction=reduction)


HEADS: dict[str, Head] = {
    "classes": Head(Classifier, np.int64, np.int64, F.cross_entropy, lambda logits: logits.argmax(dim=1)),
    "grades": Head(Classifier, np.float32, np.float64, _squared_error, lambda logits: logits[:, 0]),
    "choices": Head(Classifier, np.int64, np.float64, _loss_of_choices, lambda logits: logits[:, 0]),
    # Predicts the log odds, by which the rows of a group are ranked.
    "candidates": Head(Classifier, np.int64, np.float64, F.cross_entropy, lambda logits: logits[:, 1] - logits[:, 0]),
    "spans": Head(SpanModel, np.int64, np.int64, _loss_of_spans),
}


@dataclass(frozen=True)
class TaskRows:
    """One split: ids and types `token`, the first token and the length of each row, labels (classes, grades, or the
    first and last token of a span).

    Rows that are answers to one question have its number in `groups`, in which they stand together, and `credits`.
    Those in which answers are looked for have `contexts`, where they are scored.
    """

    input_ids: Tensor
    token_type_ids: Tensor
    first: np.ndarray
    lengths: np.ndarray
    labels: Tensor
    task: Task
    groups: np.ndarray | None = None
    credits: np.ndarray | None = None
    contexts: Contexts | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def longest(self) -> int:
        """Tokens of the longest row."""
        return int(self.lengths.max())

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """`first` and `lengths` on the device."""
        first, lengths = (torch.from_numpy(each).to(self.labels.device) for each in (self.first, self.lengths))
        return first, lengths

    @property
    def head(self) -> Head:
        """The head of their task."""
        return HEADS[self.task.head]

    @property
    def examples(self) -> int:
        """How many a batch counts: a row, or the rows that one example has."""
        return len(self) // self.task.rows_of_example

    @property
    def truth(self) -> np.ndarray:
        """The truth of predictions: labels or, of rows in groups, records of `label`, `group`, `credit`; of
        contexts, questions."""
        labels = self.labels.cpu().numpy()
        if self.groups is not None:
            return np.rec.fromarrays([labels, self.groups, self.credits], names="label, group, credit")
        return labels if self.contexts is None else self.contexts.questions


def read_rows(data: Path, task: Task, device: torch.device) -> dict[str, TaskRows]:
    """The splits of a prepared task, or its robustness sets, on a device: parts by their name in the first column."""
    table = read_table(data, str(data), "delete it and run again")
    name = table.column_names[0]
    parts = pc.unique(table[name]).to_pylist()
    return {part: _rows_of_part(table.filter(pc.field(name) == part), task, device) for part in parts}


def _rows_of_part(table: pa.Table, task: Task, device: torch.device) -> TaskRows:
    ids, types = (table[name].combine_chunks() for name in ("input_ids", "token_type_ids"))
    lengths = ids.value_lengths().to_numpy().astype(np.int64)
    labels = table["label"].combine_chunks()
    is_spans = task.head == "spans"
    arrays = (
        ids.flatten().to_numpy().astype(np.int32),
        types.flatten().to_numpy().astype(np.int8),
        np.asarray(labels.flatten().to_numpy().reshape(-1, 2) if is_spans else labels).astype(HEADS[task.head].label),
    )
    tokens, kinds, answers = (torch.from_numpy(array).to(device) for array in arrays)
    groups, credits = (table[name].to_numpy() if name in table.column_names else None for name in ("group", "credit"))
    contexts = _contexts(table) if is_spans and not table["context"].null_count else None
    return TaskRows(tokens, kinds, np.cumsum(lengths) - lengths, lengths, answers, task, groups, credits, contexts)


def _contexts(table: pa.Table) -> Contexts:
    """The contexts of windows and the questions, by which windows are scored."""
    names = ("starts", "ends", "begins_here")
    columns = (table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False) for name in names)
    groups = table["question"].to_numpy()
    asked = table.select(["context", "answers"]).take(np.flatnonzero(np.diff(groups, prepend=-1))).to_pylist()
    questions = np.empty(len(asked), dtype=object)
    questions[:] = [Question(row["context"], tuple(row["answers"])) for row in asked]
    return Contexts(*columns, groups, questions)


def shuffled(rows: TaskRows, batch_size: int, seed: int, epoch: int) -> Iterator[np.ndarray]:
    """The rows of each batch: all examples once, in an order that only (seed, epoch) decides; the last batch may be
    smaller."""
    examples, size = rows.examples, rows.task.rows_of_example
    order = permute(np.arange(examples), examples, seed, epoch)
    for start in range(0, examples, batch_size):
        yield (order[start : start + batch_size, None] * size + np.arange(size)).ravel()


def by_length(rows: TaskRows, batch_size: int) -> Iterator[np.ndarray]:
    """The rows of each batch, all once, short ones first: the least padding, for evaluation."""
    order = np.argsort(rows.lengths, kind="stable")
    for start in range(0, len(rows), batch_size):
        yield order[start : start + batch_size]


class Batch(Protocol):
    """Some rows, as a model reads them."""

    @property
    def labels(self) -> Tensor:
        """Of each row, `row …`."""

    @property
    def attended(self) -> Tensor:
        """`row longest`: whether a slot of the padded rows has a token."""


class Trainee(ABC):
    """A model as it is fine-tuned: how it reads rows, and what it computes of them.

    `model.new_layers` are the layers that pre-training has no weights of.
    """

    dropouts: tuple[str, ...]  # keys of `model.config`
    pad_id: int | None = None  # the piece in a slot without a token, where it has slots

    def __init__(self, model: nn.Module, precision: str = "fp32") -> None:
        self.model, self.precision = model, precision

    @property
    @abstractmethod
    def embeddings(self) -> nn.Module:
        """Of pieces, by their ids."""

    @abstractmethod
    def batch(self, rows: TaskRows, index: np.ndarray) -> Any:
        """The rows of `index`, in that order: a `Batch`."""

    @abstractmethod
    def forward(self, batch: Any) -> Tensor:
        """Logits `row label`; of spans `row token 2`, −∞ where a row has no token."""

    def logits(self, batch: Batch) -> Tensor:
        """The logits in the precision of the weights, computed in the trainee's."""
        with autocast(self.precision, batch.labels.device):
            return self.forward(batch).to(next(self.model.parameters()).dtype)

    def steps(self, rows: TaskRows, settings: GlueSettings) -> "Steps":
        """What trains the model on batches of the rows."""
        return Steps(self, rows, settings)


# --- models of this project -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PackedBatch:
    """Ids and types `token` of some rows, end to end, where each row's stand, and labels `row …`."""

    input_ids: Tensor
    token_type_ids: Tensor
    packing: Packing
    labels: Tensor

    @property
    def attended(self) -> Tensor:
        """As of every `Batch`."""
        return self.packing.attended.flatten(1)


class Packed(Trainee):
    """A model of this project, with any operator, which reads rows end to end.

    With `is_compiled` its encoder is compiled for training on a GPU.
    """

    dropouts = DROPOUTS

    def __init__(self, model: Classifier | SpanModel, precision: str = "fp32", is_compiled: bool = False) -> None:
        super().__init__(model, precision)
        self.training_encoder = encoder_of(model, is_compiled, next(model.parameters()).device)

    @property
    def embeddings(self) -> nn.Module:
        """Of word pieces."""
        return self.model.bert.embeddings.word_embeddings

    def batch(self, rows: TaskRows, index: np.ndarray) -> PackedBatch:
        """The rows of `index`, in that order."""
        lengths, device = rows.lengths[index], rows.labels.device
        packing = Packing.of(lengths, device)
        tokens = packing.position_ids + torch.from_numpy(np.repeat(rows.first[index], lengths)).to(device)
        ids, types = rows.input_ids[tokens].long(), rows.token_type_ids[tokens].long()
        return PackedBatch(ids, types, packing, rows.labels[torch.from_numpy(index).to(device)])

    def forward(self, batch: PackedBatch) -> Tensor:
        """The logits of `symbert.model.packed`."""
        encoder = self.training_encoder if self.model.training else None
        return forward(self.model, batch.input_ids, batch.token_type_ids, batch.packing, encoder)


def encoder_of(model: nn.Module, is_compiled: bool, device: torch.device) -> Encoder:
    """The encoder of the model's operator; `encode` is compiled to one graph for all lengths where that pays.

    On a CPU compiling takes longer than it saves; an encoder of one length at a time is no one graph.
    """
    encoder = encoder_for(model.bert)
    pays = encoder is encode and is_compiled and device.type == "cuda"
    return torch.compile(encode, fullgraph=True, dynamic=True) if pays else encoder


def load_classifier(
    checkpoint: Path,
    num_labels: int,
    dropout: float,
    kind: type[Classifier | SpanModel] = Classifier,
    content: tuple[Configuration, Tensors] | None = None,
) -> Classifier | SpanModel:
    """The encoder of a Hugging Face directory under the new layers of a kind of model, which `reset_head` fills.

    `dropout` holds everywhere; `content` is what `read_checkpoint` gave before, which stays as it is. Raises
    MissingInputError without a checkpoint, ConfigError when its operator was edited since, and IntegrityError when it
    lacks a weight of the encoder.
    """
    config, weights = content or read_checkpoint(checkpoint)
    config = copy.copy(config)
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.classifier_dropout = dropout
    model = kind(config, num_labels)
    fill(model, [name for name in model.state_dict() if not name.startswith(NEW_LAYERS)], weights, checkpoint)
    return model


@torch.no_grad()
def reset_head(model: nn.Module, seed: int) -> None:
    """Draw the new layers of a model as a function of the seed alone: matrices from N(0, 0.02), or as wide as its
    configuration says, biases 0, weights of norms 1."""
    generator = torch.Generator().manual_seed(seed)
    for layer in model.new_layers:
        for name, values in layer.named_parameters(recurse=False):
            if values.ndim > 1:
                values.copy_(torch.randn(values.shape, generator=generator) * model.config.initializer_range)
            else:
                values.fill_(0.0 if name == "bias" else 1.0)


# --- the protocol -----------------------------------------------------------------------------------------------------


class Steps:
    """The optimizer steps of a fine-tuning, a batch at a time."""

    def __init__(self, trainee: Trainee, rows: TaskRows, settings: GlueSettings, capturable: bool = False) -> None:
        model, device = trainee.model, rows.labels.device
        optimizer = build_optimizer(model, settings, capturable)
        self.trainee, self.rows, self.losses = trainee, rows, list[Tensor]()
        self.updater = Updater(model, optimizer, settings.gradient_clip, trainee.precision, device)

    def step(self, index: np.ndarray, rate: float) -> None:
        """Train on the rows of `index` at a learning rate."""
        batch = self.trainee.batch(self.rows, index)
        loss = self.rows.head.loss(self.trainee.logits(batch), batch.labels)
        self.updater.backward(loss)
        self.updater.clip()
        self.updater.update(rate)
        self.losses.append(loss.detach())

    def mean_loss(self) -> float:
        """The mean of the losses since it was last asked for; waits for the device."""
        mean = torch.stack(self.losses).mean().item()
        self.losses.clear()
        return mean


def train(
    trainee: Trainee, rows: TaskRows, settings: GlueSettings, seed: int, report_step: Callable[[int], None]
) -> None:
    """Train in place for `settings.epochs`; batch order and dropout follow from `seed` alone.

    `report_step` gets the number of steps done. DivergedError when the loss of a step is not finite, or a weight after
    the last one.
    """
    torch.manual_seed(seed)
    model = trainee.model.train()
    # Weight decay would move the embeddings of pieces that no row has, too.
    with train_used_embeddings(trainee, rows) if settings.weight_decay == 0 else nullcontext():
        trained = trainee.steps(rows, settings)
        step, steps = 0, steps_of(rows.examples, settings)
        for epoch in range(settings.epochs):
            for index in shuffled(rows, settings.batch_size, seed, epoch):
                trained.step(index, learning_rate(step, steps, settings))
                step += 1
                report_step(step)
            mean = trained.mean_loss()
            if not math.isfinite(mean):
                raise DivergedError(f"loss {mean} in epoch {epoch + 1}; {REMEDY}")
        if not all(weights.isfinite().all() for weights in model.parameters()):
            raise DivergedError(f"a weight is not finite after the last step; {REMEDY}")


@contextmanager
def train_used_embeddings(trainee: Trainee, rows: TaskRows) -> Iterator[None]:
    """Give the model the embeddings of the pieces in `rows` alone.

    At the end the trained embeddings are put back among the others, which no row has moved: without weight decay
    exactly as if all had been in the optimizer, at less than half its cost. A module that is more than embeddings is
    trained whole.
    """
    whole = trainee.embeddings
    if type(whole) is not nn.Embedding:
        yield
        return
    slots = [] if trainee.pad_id is None else [trainee.pad_id]
    pieces = torch.cat([rows.input_ids, rows.input_ids.new_tensor(slots)]).unique()
    used = UsedEmbeddings(whole, pieces)
    _exchange(trainee.model, whole, used)
    try:
        yield
    finally:
        whole.weight.data[pieces] = used.weight.data
        _exchange(trainee.model, used, whole)


class UsedEmbeddings(nn.Embedding):
    """The embeddings of some pieces, by the ids of all."""

    def __init__(self, whole: nn.Embedding, pieces: Tensor) -> None:
        padding: list[int] = []
        if whole.padding_idx is not None:  # a text may spell it: it is not trained
            padding = (pieces == whole.padding_idx).nonzero().flatten().tolist()
        start, size = whole.weight.detach()[pieces], (len(pieces), whole.embedding_dim)
        super().__init__(*size, padding_idx=padding[0] if padding else None, _weight=start)
        numbers = torch.full((whole.num_embeddings,), -1, device=pieces.device)
        numbers[pieces] = torch.arange(len(pieces), device=pieces.device)
        self.register_buffer("numbers", numbers, persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """As of all embeddings."""
        return super().forward(self.numbers[ids])


def _exchange(model: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """Put a module into the place of another."""
    for module in [*model.modules()]:
        for name, child in module.named_children():
            if child is old:
                setattr(module, name, new)


@torch.inference_mode()
def predict(trainee: Trainee, rows: TaskRows) -> np.ndarray:
    """The prediction of each row or, where rows have contexts, the answer to each question; DivergedError where a logit
    is not finite."""
    trainee.model.eval()
    outputs = ((index, _finite_logits(trainee, rows, index)) for index in by_length(rows, EVALUATION_BATCH_SIZE))
    if rows.contexts is not None:
        on_cpu = ((index, logits.cpu().numpy()) for index, logits in outputs)
        return answers_of(rows.contexts, rows.first, rows.lengths, on_cpu)
    predictions = np.zeros(len(rows), rows.head.predicted)
    for index, logits in outputs:
        predictions[index] = rows.head.of_rows(logits).cpu().numpy()
    return predictions


def _finite_logits(trainee: Trainee, rows: TaskRows, index: np.ndarray) -> Tensor:
    batch = trainee.batch(rows, index)
    logits = trainee.logits(batch)
    read = logits[batch.attended] if rows.task.head == "spans" else logits
    if not read.isfinite().all():
        raise DivergedError(f"a logit is not finite; {REMEDY}")
    return logits


def steps_of(examples: int, settings: GlueSettings) -> int:
    """Optimizer steps of a whole fine-tuning."""
    return settings.epochs * math.ceil(examples / settings.batch_size)


def learning_rate(step: int, steps: int, settings: GlueSettings) -> float:
    """The rate of step `step` (from 0) of `steps`, of which ⌈warmup_ratio · steps⌉ warm up."""
    return linear_rate(step, settings.learning_rate, math.ceil(settings.warmup_ratio * steps), steps)
