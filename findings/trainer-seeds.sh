#!/usr/bin/env bash
# Trainer's seeds: how many orders of the rows five seeds and five epochs give.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import torch
from transformers import ProgressCallback, Trainer, TrainingArguments, __version__

ROWS, EPOCHS, SEEDS = 32, 5, range(1, 6)


class Reader(torch.nn.Module):
    """Notes the rows that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.read = torch.nn.Parameter(torch.zeros(1)), []

    def forward(self, row, labels=None):
        self.read += row.tolist()
        return {"loss": self.weight.sum()}


orders = {}
for seed in SEEDS:
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=8, num_train_epochs=EPOCHS, seed=seed, report_to=[], use_cpu=True,
        save_strategy="no",
    )
    trainer = Trainer(reader := Reader(), arguments, train_dataset=[{"row": row, "labels": 0} for row in range(ROWS)])
    trainer.remove_callback(ProgressCallback)
    trainer.train()
    for epoch in range(EPOCHS):
        orders[seed, epoch] = tuple(reader.read[ROWS * epoch : ROWS * (epoch + 1)])
distinct = len(set(orders.values()))
print(f"transformers {__version__}: Trainer with seeds 1 to 5, five epochs each")
print("expected: 25 orders of the rows")
print(f"seen: {distinct}: epoch e of seed s reads as epoch e - 1 of seed s + 1 does")
assert distinct == 9 and all(orders[seed, 1] == orders[seed + 1, 0] for seed in range(1, 5)), "this has changed"
PY
