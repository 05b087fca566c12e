#!/usr/bin/env bash
# The vocabulary of a WordPiece trainer that runs twice.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile tokenizers==0.23.3

cat > train.py <<'PY'
import json
import random

from tokenizers import BertWordPieceTokenizer

letters = random.Random(0)
words = ["".join(letters.choices("abcdef", k=letters.randint(2, 7))) for _ in range(25_000)]
tokenizer = BertWordPieceTokenizer()
tokenizer.train_from_iterator([" ".join(words)], vocab_size=400, show_progress=False)
print(json.dumps(tokenizer.get_vocab(), sort_keys=True))
PY
export RAYON_NUM_THREADS=1
for _ in 1 2 3 4 5 6; do venv/bin/python train.py >> vocabularies; done
venv/bin/python - <<'PY'
import json
import pathlib
from importlib.metadata import version

vocabularies = [json.loads(line) for line in pathlib.Path("vocabularies").read_text().splitlines()]
numberings = {tuple(sorted(vocabulary.items())) for vocabulary in vocabularies}
contents = {frozenset(vocabulary) for vocabulary in vocabularies}
print(f"tokenizers {version('tokenizers')}: BertWordPieceTokenizer, six processes of one thread, the same text")
print("expected: the same vocabulary; nothing is drawn at random")
print(f"seen: {len(numberings)} numberings of the pieces and {len(contents)} sets of pieces")
assert len(numberings) > 1, "this has changed"
PY
