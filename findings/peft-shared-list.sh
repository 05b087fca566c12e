#!/usr/bin/env bash
# One list of layers to save, given to the configurations of two adapters.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile peft==0.21.2 transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import peft
from transformers import BertConfig, BertForSequenceClassification

config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)


def trained(saved: list[str], task: str) -> set[str]:
    """The layers beside the adapter's own that are trained."""
    base = BertForSequenceClassification(config)
    model = peft.get_peft_model(base, peft.LoraConfig(task_type=task, modules_to_save=saved))
    named = [name for name, weight in model.named_parameters() if weight.requires_grad and "lora_" not in name]
    return {word for name in named for word in name.split(".") if word in ("pooler", "classifier")}


alone = trained(["pooler"], "FEATURE_EXTRACTION")
saved = ["pooler"]
trained(saved, "SEQ_CLS")
after = trained(saved, "FEATURE_EXTRACTION")
print(f"peft {peft.__version__}: modules_to_save=saved, for a classifier and then for feature extraction")
print(f"expected: of the second the pooler alone is trained, as with a list of its own ({', '.join(sorted(alone))})")
print(f"seen: {' and '.join(sorted(after))} are trained: the first call has made {saved} of the caller's list")
assert alone == {"pooler"} and after == {"pooler", "classifier"}, "this has changed"
PY
