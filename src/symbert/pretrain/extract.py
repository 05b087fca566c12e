"""A kept step of a run as a Hugging Face directory."""

from pathlib import Path
from typing import Any

from symbert.corpus.wordpiece import encoder
from symbert.files import copy_file, read_json, write_json, write_text
from symbert.model.bert import SymBertForMaskedLM
from symbert.model.card import model_card
from symbert.pretrain.checkpoint import kept_weights


def extract_checkpoint(state: Path, step: int, vocabulary: Path, done: Path, corpus_source: str, output: Path) -> None:
    """Write config.json, model.safetensors, the tokenizer and a model card for one kept step into `output`.

    The facts of the run stand in config.json under `pretraining`, for the model card and that of a later export.
    Nothing is trained: a step that was not kept is a MissingInputError naming the nearest kept ones.
    """
    copy_file(kept_weights(state, step), output / "model.safetensors")
    config = _with_facts(read_json(state / "config.json"), read_json(done), step, corpus_source)
    write_json(output / "config.json", config)
    copy_file(vocabulary, output / "vocab.txt")
    write_text(output / "tokenizer.json", encoder(vocabulary).to_str())
    tokenizer = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512}
    write_json(output / "tokenizer_config.json", tokenizer)
    write_text(output / "README.md", model_card(config))


def _with_facts(config: dict[str, Any], run: dict[str, Any], step: int, corpus_source: str) -> dict[str, Any]:
    facts = {**run, "step": step, "corpus_source": corpus_source}
    return {**config, "architectures": [SymBertForMaskedLM.__name__], "pretraining": facts}
