#!/usr/bin/env bash
# LoRA for classification on a BERT that was pre-trained with masks alone.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile peft==0.21.2 transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import peft
import torch
from safetensors import safe_open
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, logging

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.manual_seed(0)
config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
BertForMaskedLM(config).save_pretrained("base")
rows = torch.randint(5, 100, (8, 16))


@torch.no_grad()
def outputs(model: torch.nn.Module) -> torch.Tensor:
    return model.eval()(rows).logits


base = BertForSequenceClassification.from_pretrained("base")
tuned = peft.get_peft_model(base, peft.LoraConfig(task_type="SEQ_CLS"))
optimizer = torch.optim.AdamW(tuned.parameters(), lr=1e-2)
for _ in range(20):
    tuned(rows, labels=torch.arange(8) % 2).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
tuned.save_pretrained("adapter")
again = peft.PeftModel.from_pretrained(BertForSequenceClassification.from_pretrained("base"), "adapter")
with safe_open("adapter/adapter_model.safetensors", "pt") as file:
    saved = list(file.keys())
before, after = outputs(tuned), outputs(again)
difference = (before - after).abs().max().item()
print(f"peft {peft.__version__}: LoRA on a checkpoint of BertForMaskedLM, saved and loaded on the same checkpoint")
print("expected: the outputs of the model that was saved; PEFT saves a new classifier with the adapter")
print(f"seen: outputs of up to {before.abs().max():.2f} differ by up to {difference:.2f}: the pooler, new as well, is "
      "drawn at each load and is in no adapter")
assert any("classifier" in name for name in saved) and not any("pooler" in name for name in saved), "this has changed"
assert difference > 0.01, "this has changed"
PY
