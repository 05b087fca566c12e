#!/usr/bin/env bash
# Which parameters Trainer's weight decay leaves out.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
from transformers import T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments, __version__

config = T5Config(vocab_size=100, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
model = T5ForConditionalGeneration(config)
trainer = Trainer(model, TrainingArguments("out", report_to=[], use_cpu=True, weight_decay=0.1))
table = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
others = {name for name, _ in model.named_parameters()}
decayed = set(trainer.get_decay_parameter_names(model))
print(f"transformers {__version__}: Trainer with weight_decay=0.1 and a T5")
print("expected: the matrices are decayed, the table of relative positions (an nn.Embedding) among them; norms are not")
print(f"seen: {table} is decayed: {table in decayed}: a name with 'bias' in it is enough")
assert table in others and table not in decayed and "shared.weight" in decayed, "this has changed"
PY
