#!/usr/bin/env bash
# Trainer, a BERT and gradient accumulation: what is logged and clipped.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import torch
from transformers import BertConfig, BertForMaskedLM, ProgressCallback, Trainer, TrainingArguments, __version__

config = BertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)
torch.manual_seed(0)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(5, 100, (16, 16))]


def first_step(accumulation: int) -> tuple[float, float]:
    """Loss and norm of the gradient, of the same 16 rows."""
    torch.manual_seed(0)
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=16 // accumulation, gradient_accumulation_steps=accumulation, max_steps=1,
        logging_steps=1, report_to=[], use_cpu=True, save_strategy="no",
    )
    trainer = Trainer(BertForMaskedLM(config), arguments, train_dataset=rows)
    trainer.remove_callback(ProgressCallback)
    trainer.train()
    return trainer.state.log_history[0]["loss"], trainer.state.log_history[0]["grad_norm"]


(loss, norm), (loss_of_4, norm_of_4) = first_step(1), first_step(4)
print(f"transformers {__version__}: BertForMaskedLM in Trainer, 16 rows in one or in four micro-batches")
print("expected: the same loss and the same norm of the gradient, up to rounding")
print(f"seen: loss {loss:.2f} and {loss_of_4:.2f}, norm {norm:.2f} and {norm_of_4:.2f}: times 4, before clipping")
assert abs(loss_of_4 / loss - 4) < 0.01 and abs(norm_of_4 / norm - 4) < 0.05, "this has changed"
PY
