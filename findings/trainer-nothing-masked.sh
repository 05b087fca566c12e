#!/usr/bin/env bash
# A batch in which no token is masked.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import math

import torch
from transformers import BertConfig, BertForMaskedLM, ProgressCallback, Trainer, TrainingArguments, __version__

config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
torch.manual_seed(0)
model, ids = BertForMaskedLM(config), torch.randint(5, 100, (16,))
nothing = torch.full_like(ids, -100)
loss = model(ids[None], labels=nothing[None]).loss
loss.backward()
gradient = sum(weight.grad.abs().sum().item() for weight in model.parameters() if weight.grad is not None)
rows = [{"input_ids": ids, "labels": ids}] + [{"input_ids": ids, "labels": nothing}] * 3
arguments = TrainingArguments(
    "out", per_device_train_batch_size=1, max_steps=4, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no"
)
trainer = Trainer(model, arguments, train_dataset=rows)
trainer.remove_callback(ProgressCallback)
trainer.train()
logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
finite = all(weight.isfinite().all() for weight in model.parameters())
print(f"transformers {__version__}, torch {torch.__version__}: BertForMaskedLM, a batch whose labels are all -100")
print("expected: the loss is NaN, and so are the gradients, the weights after the step, and the log")
print(f"seen: loss {loss.item()}, sum of |gradients| {gradient:.1f}, weights finite: {finite}; "
      f"Trainer logs {', '.join(f'{value:.2f}' for value in logged)} for four steps, three of them with such a batch")
assert math.isnan(loss.item()) and gradient == 0 and finite and all(map(math.isfinite, logged)), "this has changed"
PY
