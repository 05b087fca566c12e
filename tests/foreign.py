"""Small models of the families that people fine-tune, randomly initialised, in folders as those of the hub.

Their tokenizers are of the family's class: word pieces of the demo's vocabulary, or byte-level BPE and Unigram, trained
on the demo's sentences.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForPreTraining, PreTrainedTokenizerBase

from symbert.files import sha256_of
from symbert.foreign import ForeignModel
from symbert.foreign import Tokenizer as TokenizerFiles
from symbert.sources import DEMO, VOCABULARY
from symbert.steps import File

BERTS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTAS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
PIECES = 600
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
LONGEST = 128  # tokens, of every family


def sentences() -> Iterator[str]:
    """Texts of the demo's tasks of SuperGLUE, which are sentences, the first few of each."""
    for task, columns in (("rte", ["premise", "hypothesis"]), ("boolq", ["question", "passage"])):
        rows = pq.read_table(DEMO / f"aps/super_glue/{task}/train-00000-of-00001.parquet", columns=columns)[:300]
        for column in columns:
            yield from rows[column].to_pylist()


@cache
def byte_pairs() -> tuple[list[str], list[tuple[str, str]]]:
    """Pieces of bytes, and their merges."""
    trainer = trainers.BpeTrainer(
        vocab_size=PIECES, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    trained = _trained(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), trainer)
    return sorted(trained["vocab"], key=trained["vocab"].get), list(map(tuple, trained["merges"]))


@cache
def unigrams() -> list[tuple[str, float]]:
    """Pieces, of which ▁ begins a word, and their log probabilities."""
    trainer = trainers.UnigramTrainer(vocab_size=PIECES, unk_token="<unk>", show_progress=False)
    pieces = _trained(models.Unigram(), pre_tokenizers.Metaspace(), trainer)["vocab"]
    return [(piece, score) for piece, score in pieces if piece != "<unk>"]


def _trained(model: models.Model, words: pre_tokenizers.PreTokenizer, trainer: trainers.Trainer) -> dict[str, Any]:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = words
    tokenizer.train_from_iterator(sentences(), trainer)
    return json.loads(tokenizer.to_str())["model"]


def _of_words(name: str = "BertTokenizer", special=BERTS, **settings) -> PreTrainedTokenizerBase:
    pieces = (DEMO / VOCABULARY.location).read_text().splitlines()
    return getattr(transformers, name)(vocab=_numbered([*special, *pieces]), **settings)


def _of_bytes(name: str, special=ROBERTAS, **settings) -> PreTrainedTokenizerBase:
    pieces, merges = byte_pairs()
    return getattr(transformers, name)(vocab=_numbered([*special, *pieces]), merges=merges, **settings)


def _of_unigrams(name: str, special=ROBERTAS, **settings) -> PreTrainedTokenizerBase:
    pieces = [*((token, 0.0) for token in special), *unigrams()]
    return getattr(transformers, name)(vocab=pieces, **settings)


def _numbered(pieces: list[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def _modern() -> PreTrainedTokenizerBase:
    """ModernBERT's: of no class of its own, no token types."""
    pieces, merges = byte_pairs()
    vocabulary = _numbered([*BERTS, *pieces])
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    names = ["input_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=names, **special)


TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerBase]] = {
    "bert": _of_words,
    "roberta": lambda: _of_bytes("RobertaTokenizer"),
    "electra": _of_words,
    "deberta": lambda: _of_bytes("DebertaTokenizer", BERTS),
    "deberta-v2": lambda: _of_unigrams("DebertaV2Tokenizer", BERTS, do_lower_case=True),
    "deberta-v3": lambda: _of_unigrams("DebertaV2Tokenizer", BERTS),
    "modernbert": _modern,
    "mpnet": lambda: _of_words("MPNetTokenizer", ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]),
    "xlm-roberta": lambda: _of_unigrams("XLMRobertaTokenizer"),
    "distilbert": _of_words,
}
DISENTANGLED = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
}
CONFIGURATIONS: dict[str, dict] = {
    "bert": {"max_position_embeddings": LONGEST},
    "roberta": {"max_position_embeddings": LONGEST + 2, "type_vocab_size": 1},
    "electra": {"max_position_embeddings": LONGEST, "embedding_size": 16},
    "deberta": {"max_position_embeddings": LONGEST, **DISENTANGLED},
    "deberta-v2": {"max_position_embeddings": LONGEST, **DISENTANGLED, "conv_kernel_size": 3},
    "deberta-v3": {
        "max_position_embeddings": LONGEST,
        **DISENTANGLED,
        "position_buckets": 32,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
    },
    "modernbert": {"max_position_embeddings": LONGEST, "global_attn_every_n_layers": 2, "local_attention": 16},
    "mpnet": {"max_position_embeddings": LONGEST + 2},
    "xlm-roberta": {"max_position_embeddings": LONGEST + 2, "type_vocab_size": 1},
    "distilbert": {"max_position_embeddings": LONGEST, "hidden_dim": 64},
}
FAMILIES = list(CONFIGURATIONS)


@cache
def tokenizer_of(family: str) -> PreTrainedTokenizerBase:
    """The tokenizer of a family."""
    return TOKENIZERS[family]()


def make_model(folder: Path, family: str, seed: int = 0, **config) -> Path:
    """Write config.json, model.safetensors and the tokenizer of a model of a family, with changes of its
    configuration, drawn with a seed: with the head of its pre-training, as at the hub. Gives the folder."""
    tokenizer = tokenizer_of(family)
    tokenizer.save_pretrained(folder)
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos", "cls", "sep")}
    wanted = {"vocab_size": len(tokenizer), **ids, **SMALL, **CONFIGURATIONS[family], **config}
    kind = AutoModelForPreTraining if family == "electra" else AutoModelForMaskedLM
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind.from_config(AutoConfig.for_model(family.replace("deberta-v3", "deberta-v2"), **wanted))
    model.save_pretrained(folder)
    return folder


def tokenizer_in(folder: Path) -> TokenizerFiles:
    """The tokenizer in a model's folder, as a step has it."""
    config = json.loads((folder / "config.json").read_text())
    others = ("config.json", "model.safetensors.index.json", "pytorch_model.bin.index.json")
    paths = (path for path in sorted(folder.iterdir()) if path.name not in others)
    files = {
        path.name: File(str(path), sha256_of(path)) for path in paths if path.suffix in (".json", ".txt", ".model")
    }
    return TokenizerFiles(config["model_type"], files, config.get("tokenizer_class") or "")


def model_in(folder: Path, name: str = "mine") -> ForeignModel:
    """The model of a folder, as an experiment plans it."""
    paths = [path for path in folder.iterdir() if path.name == "config.json" or path.suffix in (".safetensors", ".bin")]
    return ForeignModel(
        name=name,
        model_type=json.loads((folder / "config.json").read_text())["model_type"],
        parameters=1,
        content={path.name: File(str(path), sha256_of(path)) for path in paths},
        tokenizer=tokenizer_in(folder),
    )
