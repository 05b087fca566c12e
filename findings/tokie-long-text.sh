#!/usr/bin/env bash
# tokie and tokenizers on a long text.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile tokie==0.1.4 tokenizers==0.23.3

venv/bin/python - <<'PY'
from importlib.metadata import version

import tokie
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", "a", "b", "##a", "##b", "##ab"]
tokenizer = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
tokenizer.normalizer = normalizers.BertNormalizer()
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
tokenizer.save("tokenizer.json")
fast = tokie.Tokenizer.from_json("tokenizer.json")


def agree(text: str) -> bool:
    return list(fast.encode(text).ids) == tokenizer.encode(text).ids


short = range(1_000, 13_000, 601)  # words of four letters and a separator: up to 65,000 bytes
long = range(14_000, 26_000, 601)  # from 70,000 bytes
differing = {
    (name, separator): sum(not agree(f"abab{separator}" * count) for count in counts)
    for name, counts in (("short", short), ("long", long))
    for separator in " ,"
}
print(f"tokie {version('tokie')}, tokenizers {version('tokenizers')}: one WordPiece tokenizer.json, texts of equal words")
print("expected: equal ids, or an error; and what is right for a text is right for a longer one of the same words")
print(f"seen: with commas between words {differing['short', ',']} of {len(short)} texts below 65,536 bytes differ and "
      f"{differing['long', ',']} of {len(long)} above; with blanks {differing['long', ' ']}: a long text is cut for "
      "threads, within a word where it has no blanks")
assert differing.pop(("long", ",")) > 0 and not any(differing.values()), "this has changed"
PY
