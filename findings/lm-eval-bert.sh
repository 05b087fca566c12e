#!/usr/bin/env bash
# lm-eval and a BERT. Its tokenizer has no token that begins a text, so one must be named (prefix_token_id).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile lm-eval==0.4.13 transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import pathlib
from importlib.metadata import version

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast, logging

logging.disable_progress_bar()
torch.manual_seed(0)
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "sky", "is", "blue", "green", "loud"]
pathlib.Path("vocab.txt").write_text("\n".join(pieces))
BertTokenizerFast("vocab.txt").save_pretrained("saved")
config = BertConfig(
    vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
BertForMaskedLM(config).save_pretrained("saved")
model = HFLM(pretrained="saved", device="cpu", prefix_token_id=pieces.index("[CLS]"))
questions = [Instance("loglikelihood", {}, ("the sky is", f" {word}"), 0) for word in ("blue", "green", "loud")]
scores = [score for score, _ in model.loglikelihood(questions)]
print(f"lm-eval {version('lm-eval')}: a checkpoint of BertForMaskedLM, three continuations of one piece")
print("expected: it refuses a masked model, or its scores depend on the continuation")
print(f"seen: {type(model.model).__name__} gives {', '.join(f'{score:.3f}' for score in scores)}: the context is encoded "
      "with its [SEP], so the continuation loses its first piece and what is scored is [SEP]")
assert len(set(scores)) == 1, "this has changed"
PY
