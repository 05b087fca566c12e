#!/usr/bin/env bash
# What a call leaves in a tokenizer that is saved after it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 tokenizers==0.23.3

venv/bin/python - <<'PY'
import pathlib

import tokenizers
import transformers

pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
pathlib.Path("vocab.txt").write_text("\n".join(pieces))
tokenizer = transformers.BertTokenizerFast("vocab.txt")
tokenizer("a b c d e f g h", truncation=True, max_length=4, padding="max_length")
tokenizer.save_pretrained("saved")
here = transformers.AutoTokenizer.from_pretrained("saved")("a b c d e f g h").tokens()
there = tokenizers.Tokenizer.from_file("saved/tokenizer.json")
cut, padded = there.encode("a b c d e f g h").tokens, there.encode("a").tokens
print(f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}: a tokenizer called once with "
      "truncation=True, max_length=4, then saved; eight words")
print("expected: the arguments of a call hold for that call; every reader of tokenizer.json gives ten tokens")
print(f"seen: transformers gives {len(here)}, tokenizers {len(cut)} ({' '.join(cut)}), and pads ({' '.join(padded)})")
assert (len(here), len(cut), padded[-1]) == (10, 4, "[PAD]"), "this has changed"
PY
