#!/usr/bin/env bash
# Which of the tokens [UNK] a masked language model has to predict.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile transformers==5.23.0 accelerate==1.15.0 torch==2.13.0

venv/bin/python - <<'PY'
import pathlib

from transformers import (
    BertConfig, BertForMaskedLM, BertTokenizerFast, DataCollatorForLanguageModeling, Trainer, TrainingArguments,
    __version__,
)

pathlib.Path("vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one", "two", "three"]))
tokenizer = BertTokenizerFast("vocab.txt")
model = BertForMaskedLM(
    BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
)
rows = [dict(tokenizer("one blah two", return_special_tokens_mask=True))]
collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=1.0)


def predicts_unknown(**changes) -> bool:
    """Whether Trainer's batch asks for the [UNK] that stands third, where every token that may be is masked."""
    arguments = TrainingArguments("out", report_to=[], use_cpu=True, **changes)
    trainer = Trainer(model, arguments, train_dataset=rows, data_collator=collator)
    return next(iter(trainer.get_train_dataloader()))["labels"][0, 2].item() == tokenizer.unk_token_id


kept, dropped = predicts_unknown(remove_unused_columns=False), predicts_unknown()
print(f"transformers {__version__}: rows with special_tokens_mask, DataCollatorForLanguageModeling, Trainer")
print("expected: the collator heeds the rows' mask, so [UNK] is masked or not whatever Trainer does with columns")
print(f"seen: [UNK] to be predicted with remove_unused_columns=False: {kept}; with the default: {dropped}")
assert kept and not dropped, "this has changed"
PY
