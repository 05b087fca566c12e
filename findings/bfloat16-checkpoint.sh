#!/usr/bin/env bash
# A BERT that was saved in bfloat16, fine-tuned by Trainer's defaults.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import torch
from transformers import (
    BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainingArguments, __version__, logging,
)

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.manual_seed(0)
config = BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
rows = [{"input_ids": row, "labels": int(row[0] > 50)} for row in torch.randint(5, 100, (64, 16))]
matrix = "bert.encoder.layer.0.attention.self.value.weight"


def unmoved(precision: torch.dtype) -> float:
    """Share of a matrix that four epochs at the usual rate of 2e-5 leave as it was saved."""
    BertForSequenceClassification(config).to(precision).save_pretrained("saved")
    model = BertForSequenceClassification.from_pretrained("saved")
    before = model.get_parameter(matrix).detach().clone()
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=8, num_train_epochs=4, learning_rate=2e-5, report_to=[], use_cpu=True,
        save_strategy="no", logging_strategy="no",
    )
    trainer = Trainer(model, arguments, train_dataset=rows)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return (model.get_parameter(matrix) == before).float().mean().item()


half, whole = unmoved(torch.bfloat16), unmoved(torch.float32)
print(f"transformers {__version__}: from_pretrained of a BERT saved in bfloat16, Trainer's defaults, 32 steps at 2e-5")
print("expected: float32 weights are trained, as bf16=True was not asked for, and every weight moves")
print(f"seen: {half:.0%} of an attention matrix never moved; of the same model saved in float32 {whole:.0%}")
assert half > 0.3 and whole < 0.01, "this has changed"
PY
