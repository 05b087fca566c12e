"""A kept step of a run as a Hugging Face directory."""

import json
from pathlib import Path

from symbert.corpus.wordpiece import encoder
from symbert.files import copy_file, read_json, write_json, write_text
from symbert.pretrain.checkpoint import kept_weights

CORPORA = {
    "embedded": "a stand-in corpus made from the documentation of installed packages",
    "mirror": "OSCAR parts of a local mirror",
    "hub": "OSCAR-2301",
}


def extract_checkpoint(state: Path, step: int, vocabulary: Path, done: Path, corpus_source: str, output: Path) -> None:
    """Write config.json, model.safetensors, the tokenizer and a model card for one kept step into `output`.

    Nothing is trained: a step that was not kept is a MissingInputError naming the nearest kept ones.
    """
    copy_file(kept_weights(state, step), output / "model.safetensors")
    copy_file(state / "config.json", output / "config.json")
    copy_file(vocabulary, output / "vocab.txt")
    write_text(output / "tokenizer.json", encoder(vocabulary).to_str())
    tokenizer = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512}
    write_json(output / "tokenizer_config.json", tokenizer)
    write_text(
        output / "README.md",
        model_card(read_json(done), read_json(output / "config.json"), step, CORPORA[corpus_source]),
    )


def model_card(run: dict, config: dict, step: int, corpus: str) -> str:
    """What the model is, how it was made, and how to load it."""
    name = f"{run['size']}-{run['attention']}"
    front = {"library_name": "transformers", "pipeline_tag": "fill-mask", "language": "en", "tags": ["symbert"]}
    header = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())
    return f"""---
{header}
---
# BERT {name}, step {step:,} of {run["steps"]:,}

A BERT encoder ({config["num_hidden_layers"]} layers, hidden size {config["hidden_size"]},
{config["num_attention_heads"]} heads, {run["parameters"]:,} parameters) whose self-attention operator is
`{run["attention"]}`, pre-trained on masked tokens after arXiv 2406.06366 with seed {run["pretrain_seed"]}.

* corpus: {corpus} (`{run["corpus_hash"]}`); settings: `{run["settings_hash"]}`
* validation loss at the last step: {run["validation_loss"]:.4f} nats per masked token

```python
import symbert.model.bert  # makes the model type known; no remote code is involved
from transformers import AutoModelForMaskedLM, AutoTokenizer

model = AutoModelForMaskedLM.from_pretrained(".")
tokenizer = AutoTokenizer.from_pretrained(".")
```
"""
