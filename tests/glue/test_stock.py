"""Models from elsewhere, fine-tuned as transformers' classes: beside its Trainer, beside our Bert, and damaged."""

from dataclasses import replace as replace_field
from itertools import cycle

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from transformers import (
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from foreign import FAMILIES, make_model, model_in, tokenizer_of
from glue.protocol import SETTINGS
from symbert.draws import permute
from symbert.glue import stock
from symbert.glue import train as module
from symbert.glue.tasks import GLUE, SUITES, Task
from symbert.glue.train import HEADS, TaskRows, reset_head, train

EXACT = replace(SETTINGS, dropout=0.0, gradient_clip=0.5, adam_epsilon=1e-3, weight_decay=0.1)
SPANS = SUITES["squad2"].tasks["squad2"]


def loaded(folder, task: Task, dropout=0.0, seed=1):
    """The model of a folder under the head of a task."""
    foreign = model_in(folder)
    model = stock.load(foreign, stock.read_config(foreign), task, dropout)
    reset_head(model, seed)
    return model


def rows_of(task: Task, vocabulary: int, count=40, longest=24, device="cpu") -> TaskRows:
    """Rows of random pieces, of many lengths; the labels are easy to learn."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(4, longest + 1, count)
    first = np.cumsum(lengths) - lengths
    ids = torch.from_numpy(generator.integers(10, vocabulary, lengths.sum()).astype(np.int32))
    types = torch.from_numpy(np.concatenate([np.arange(n) >= n // 2 for n in lengths]).astype(np.int8))
    labels = torch.from_numpy(generator.integers(0, task.num_labels, count))
    if task.head == "spans":
        labels = torch.from_numpy(np.stack([lengths // 2, lengths - 1], axis=1))
    return TaskRows(ids, types, first, lengths, labels, task)


@pytest.fixture
def losses(monkeypatch):
    """Of each step of a training."""
    seen = []
    for name, head in HEADS.items():
        kept = lambda *given, head=head: seen.append(head.loss(*given)) or seen[-1]  # noqa: E731
        monkeypatch.setitem(module.HEADS, name, head._replace(loss=kept))
    return seen


class Ordered(Trainer):
    """transformers' Trainer, on examples in our order; keeps the loss of each step."""

    def __init__(self, *given, orders, **options) -> None:
        super().__init__(*given, **options)
        self.orders, self.losses = orders, []

    def _get_train_sampler(self, dataset=None):
        orders = cycle(self.orders)
        return type("Order", (), {"__iter__": lambda _: iter(next(orders)), "__len__": lambda _: len(self.orders[0])})()

    def compute_loss(self, *given, **options):
        loss = super().compute_loss(*given, **options)
        self.losses.append(loss.item())
        return loss


@pytest.mark.parametrize("family", FAMILIES)
def test_the_padded_path_is_that_of_transformers_trainer_step_by_step(family, tmp_path, losses):
    """Losses and weights, in float64; their model is loaded by their Auto class, with our new layers in it."""
    folder, task = make_model(tmp_path / family, family), GLUE["mnli"]
    tokenizer = tokenizer_of(family)
    ours, rows = loaded(folder, task).double(), rows_of(task, len(tokenizer))
    has_types = "token_type_ids" in tokenizer.model_input_names
    rows = rows if has_types else replace_field(rows, token_type_ids=torch.zeros_like(rows.token_type_ids))
    off = dict.fromkeys(stock.dropouts_of(ours.config), 0.0)
    theirs = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3, dtype=torch.float64, **off)
    names = {layer: name for name, layer in ours.named_modules()}
    for layer in ours.new_layers:
        theirs.get_submodule(names[layer]).load_state_dict(layer.state_dict())
    trainee = stock.Padded(ours)
    columns = {"input_ids": rows.input_ids} | ({"token_type_ids": rows.token_type_ids} if has_types else {})
    parts = {name: values.long().split(rows.lengths.tolist()) for name, values in columns.items()}
    dataset = [
        {"label": rows.labels[row].item(), **{name: values[row].tolist() for name, values in parts.items()}}
        for row in range(len(rows))
    ]
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "trainer"),
        num_train_epochs=EXACT.epochs,
        per_device_train_batch_size=EXACT.batch_size,
        learning_rate=EXACT.learning_rate,
        warmup_steps=EXACT.warmup_ratio,
        weight_decay=EXACT.weight_decay,
        adam_epsilon=EXACT.adam_epsilon,
        max_grad_norm=EXACT.gradient_clip,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Ordered(
        theirs,
        arguments,
        train_dataset=dataset,
        data_collator=DataCollatorWithPadding(tokenizer, pad_to_multiple_of=stock.STRIDE),
        orders=[permute(np.arange(len(rows)), len(rows), 3, epoch).tolist() for epoch in range(EXACT.epochs)],
    )
    trainer.train()
    train(trainee, rows, EXACT, 3, lambda step: None)
    assert len(trainer.losses) == 6
    assert [loss.item() for loss in losses] == pytest.approx(trainer.losses, abs=1e-9)
    for name, values in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], values, rtol=0, atol=1e-9, msg=name)
