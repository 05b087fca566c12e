#!/usr/bin/env bash
# A resumed Trainer and masks that are drawn by the collator.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import pathlib

import torch
from transformers import (
    BertConfig, BertForMaskedLM, BertTokenizerFast, DataCollatorForLanguageModeling, PrinterCallback, Trainer,
    TrainingArguments, __version__, logging,
)

logging.set_verbosity_error()
logging.disable_progress_bar()
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(200))]
pathlib.Path("vocab.txt").write_text("\n".join(pieces))
collator = DataCollatorForLanguageModeling(BertTokenizerFast("vocab.txt"))
config = BertConfig(
    vocab_size=len(pieces), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)
torch.manual_seed(0)
texts = torch.randint(5, len(pieces), (64, 64)).tolist()


def losses(folder: str, resume: str | None, masked: bool) -> list[float]:
    """Of each step, of eight in all; a checkpoint is saved after the fourth."""
    torch.manual_seed(0)
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=4, max_steps=8, save_steps=4, logging_steps=1, report_to=[], use_cpu=True
    )
    rows = [{"input_ids": text} if masked else {"input_ids": text, "labels": text} for text in texts]
    collating = {"data_collator": collator} if masked else {}
    trainer = Trainer(BertForMaskedLM(config), arguments, train_dataset=rows, **collating)
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=resume)
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


differ = {}
for masked in (False, True):
    whole = losses(f"out-{masked}", None, masked)
    resumed = losses(f"out-{masked}", f"out-{masked}/checkpoint-4", masked)
    assert whole[:4] == resumed[:4]
    differ[masked] = max(abs(one - other) for one, other in zip(whole[4:], resumed[4:], strict=True))
print(f"transformers {__version__}: Trainer resumed at step 4 of 8, without dropout and without workers")
print("expected: the losses of an uninterrupted run, because the checkpoint holds the states of all generators")
print(f"seen: difference of a loss {differ[False]:.1g} with given labels, {differ[True]:.1g} with a masking collator: "
      "the state is saved after the next batch was drawn")
assert differ[False] < 1e-6 < 1e-3 < differ[True], "this has changed"
PY
