"""Whether this project and the authors' way do the same: equal outputs, and equal losses after some steps."""

import dataclasses
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from msgspec.structs import replace
from transformers import BertForSequenceClassification, default_data_collator

from benchmarks.finetuners import (
    DEVICE,
    PRECISION,
    Authors,
    Finetuning,
    PaddedRows,
    classifier,
    stock_classifier,
)
from symbert.glue.tasks import GLUE
from symbert.glue.train import predict, read_rows, train
from symbert.model.hf import fold

ROWS = 8  # a single batch: the order of the rows decides nothing
OUTPUT_TOLERANCE, LOSS_TOLERANCE = 1e-4, 1e-5  # of the largest output, and of the loss, in fp32
LEARNED = 1e-3  # of the loss: less would show nothing


def compare(finetuning: Finetuning, checkpoints: dict[str, Path], folder: Path) -> str:
    """What agrees, in words, and how well; SystemExit when an output or a loss differs. The operators by name."""
    name, few = finetuning.task.name, few_rows(finetuning, folder)
    differences = {attention: output_difference(few, path) for attention, path in checkpoints.items()}
    worst = max(differences, key=lambda attention: differences[attention])
    if not differences[worst] <= OUTPUT_TOLERANCE:
        raise SystemExit(
            f"{name}, {worst}: the contestants do not compute the same: outputs of this project and of the stock model "
            f"with the same weights differ by {differences[worst]:.0e} of the largest"
        )
    before, ours, theirs = losses_of(few, checkpoints["original"], folder)
    if not (abs(ours - theirs) <= LOSS_TOLERANCE * theirs and abs(before - theirs) >= LEARNED * theirs):
        raise SystemExit(f"{name}: the contestants do not learn the same: loss {before}, then {ours} and {theirs}")
    return (
        f"{name}: without dropout, in fp32, outputs of each operator equal those of the stock model with its weights "
        f"on rows padded to 128 (largest difference {differences[worst]:.0e}); after {few.steps} steps on {ROWS} rows "
        f"this project's loss equals the Trainer's ({before:.4f} before, then {theirs:.4f}; difference "
        f"{abs(ours - theirs) / theirs:.0e})"
    )


def few_rows(finetuning: Finetuning, folder: Path) -> Finetuning:
    """The same fine-tuning of ROWS rows, without dropout, in one batch an epoch."""
    data, table = folder / f"{finetuning.task.name}-few.parquet", pq.read_table(finetuning.data)
    splits = [table.filter(pc.field("split") == split).slice(0, ROWS) for split in finetuning.task.splits]
    pq.write_table(pa.concat_tables(splits), data)
    settings = replace(finetuning.settings, dropout=0.0, batch_size=ROWS)
    return Finetuning(finetuning.task, data, settings)


def output_difference(few: Finetuning, checkpoint: Path) -> float:
    """Of the outputs for evaluation rows, the largest difference, of the largest output.

    The classifiers have one output, because predictions of grades are the outputs themselves.
    """
    rows = read_rows(few.data, few.task, DEVICE)["validation"]
    graded = dataclasses.replace(rows, task=GLUE["stsb"])
    ours = torch.from_numpy(predict(classifier(checkpoint, 1, 0.0), graded, PRECISION))
    with torch.no_grad():
        inputs = {**padded(few, "validation"), "labels": None}
        stock = stock_classifier(checkpoint, 1, 0.0)(**inputs).logits[:, 0]
    return ((ours - stock).abs().max() / stock.abs().max()).item()


def losses_of(few: Finetuning, checkpoint: Path, folder: Path) -> tuple[float, float, float]:
    """The loss of the training rows: at the start, after this project's training, and after the Trainer's."""
    ours, stock = (make(checkpoint, few.task.num_labels, 0.0) for make in (classifier, stock_classifier))
    before = loss_of(few, stock)
    train(ours, read_rows(few.data, few.task, DEVICE)["train"], few.settings, PRECISION, 1, lambda _: None)
    Authors(few, stock, folder / "few").trainer.train()
    return before, loss_of(few, fold(ours)), loss_of(few, stock)


@torch.no_grad()
def loss_of(few: Finetuning, model: BertForSequenceClassification) -> float:
    """What the stock model loses on the training rows."""
    return model.eval()(**padded(few, "train")).loss.item()


def padded(few: Finetuning, split: str) -> dict[str, torch.Tensor]:
    """All rows of a split as one batch of the authors' way."""
    return default_data_collator(list(PaddedRows(few.data, split)))
