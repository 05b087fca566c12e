"""Whether this project and the stock model compute the same: one loss, from equal weights on an equal batch."""

import torch
from msgspec.structs import replace
from transformers import BertForMaskedLM

from benchmarks.trainers import Task, stock_model
from symbert.model.hf import fold
from symbert.paths import Run
from symbert.pretrain.tasks import IGNORED
from symbert.pretrain.train import Trainer

SEQUENCES = 4
TOLERANCE = 1e-5  # of the loss, in fp32


def compare_losses(task: Task, operators: tuple[str, ...], recipes: tuple[str, ...]) -> str:
    """What agrees, in words, and how well; SystemExit when a loss differs. Compiled recipes: the original alone."""
    pairs = [(attention, recipes[0]) for attention in operators] + [("original", recipe) for recipe in recipes[1:]]
    losses = {pair: losses_of(task, *pair) for pair in pairs}
    for (attention, recipe), (ours, stock) in losses.items():
        if not abs(ours - stock) <= TOLERANCE * stock:
            raise SystemExit(
                f"{task.size}, {attention}, {recipe}: the contestants do not compute the same: loss {ours} in this "
                f"project, {stock} in the stock model with the same weights on the same batch"
            )
    worst = max(abs(ours - stock) / stock for ours, stock in losses.values())
    return (
        f"{task.size}: without dropout, in fp32, the loss of each operator equals that of the stock model with its "
        f"weights on the same masked batch ({losses[pairs[0]][1]:.4f} for the original; largest difference {worst:.0e})"
    )


def losses_of(task: Task, attention: str, recipe: str) -> tuple[float, float]:
    """Our trainer's loss in its first step, and the stock model's on that batch, labelled densely."""
    changes = {"batch_size": SEQUENCES, "dropout": 0.0, "precision": "fp32", "recipe": recipe}
    trainer = Trainer(Run(task.size, attention, 1), replace(task.settings, **changes), task.manifest)
    stock = stock_twin(trainer, task).to(trainer.device).eval()
    batch = trainer.task.training_batch(0).to(trainer.device)
    labels = torch.full_like(batch.input_ids, IGNORED).flatten()
    labels[batch.positions] = batch.targets
    with torch.no_grad():
        loss = stock(batch.input_ids, labels=labels.view_as(batch.input_ids)).loss
    return trainer.step(0).loss, loss.item()


def stock_twin(trainer: Trainer, task: Task) -> BertForMaskedLM:
    """Hugging Face's own model with the trainer's weights: copied for the original, folded for other operators."""
    if trainer.run.attention != "original":
        return fold(trainer.model)
    stock = stock_model(task.size, trainer.model.config.vocab_size, 0.0)
    stock.load_state_dict(trainer.model.state_dict())
    return stock
