#!/usr/bin/env bash
# A cased WordPiece tokenizer with words cut at blanks, made with tokenizers, saved and loaded as a BertTokenizer.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 tokenizers==0.23.3

venv/bin/python - <<'PY'
import transformers
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import AutoTokenizer, BertTokenizerFast

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Paris", "paris", "New-York", "new", "-", "york", "Café", "cafe"]
made = Tokenizer(WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
made.normalizer = normalizers.NFC()
made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
made.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])

text = "Paris New-York Café"
expected = made.encode(text).tokens
wrapped = BertTokenizerFast(tokenizer_object=made)
wrapped.save_pretrained("saved")
before = wrapped.convert_ids_to_tokens(wrapped(text).input_ids)
loaded = AutoTokenizer.from_pretrained("saved")
after = loaded.convert_ids_to_tokens(loaded(text).input_ids)
kept = Tokenizer.from_file("saved/tokenizer.json").encode(text).tokens
print(f"transformers {transformers.__version__}: BertTokenizerFast(tokenizer_object=…), saved and loaded")
print(f"expected: {' '.join(expected)}, before and after; version 4.57.6 gives it")
print(f"seen: before {' '.join(before)}; after {' '.join(after)}; tokenizer.json {' '.join(kept)}")
print("Of tokenizer.json the class takes the vocabulary alone; how text is cut is BERT's, and lower-cased unless told")
assert before[1:4] == kept[1:4] == expected[1:], "this has changed"
assert after == ["[CLS]", "paris", "new", "-", "york", "cafe", "[SEP]"], "this has changed"
PY
