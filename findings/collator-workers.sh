#!/usr/bin/env bash
# A seeded collator for masked language models, with workers.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 torch==2.13.0

cat > masks.py <<'PY'
import pathlib

import torch
from transformers import BertTokenizerFast, DataCollatorForLanguageModeling, __version__

pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(200))]
pathlib.Path("vocab.txt").write_text("\n".join(pieces))
tokenizer = BertTokenizerFast("vocab.txt")
rows = [{"input_ids": list(range(5, 69))} for _ in range(8)]


def repeats(seed: int | None, workers: int) -> bool:
    """Whether the second epoch masks what the first one masked."""
    collator = DataCollatorForLanguageModeling(tokenizer, seed=seed)
    loader = torch.utils.data.DataLoader(rows, batch_size=2, num_workers=workers, collate_fn=collator)
    first, second = ([batch["labels"] for batch in loader] for _ in range(2))
    return all(torch.equal(*pair) for pair in zip(first, second, strict=True))


seen = {(seed, workers): repeats(seed, workers) for seed in (None, 7) for workers in (0, 2)}
print(f"transformers {__version__}: DataCollatorForLanguageModeling(seed=7) in a DataLoader with two workers")
print("expected: masks are drawn anew in each epoch, as without workers and as without a seed")
print("seen: every epoch has the masks of the first one, because each epoch starts workers that are seeded again")
assert seen == {(None, 0): False, (None, 2): False, (7, 0): False, (7, 2): True}, f"this has changed: {seen}"
PY
venv/bin/python masks.py
