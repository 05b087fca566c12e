"""A model's folder without its weights: config.json, with its shape, its operator, and its run, as Hugging Face's
`BertConfig` of the same values writes it, but without importing transformers, which takes seconds; and the names of the
files that have the weights."""

import json
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec import structs, to_builtins

from symbert.errors import ConfigError, DataError, MissingInputError
from symbert.files import check_shape, read_json
from symbert.operators import Operator, operator_of
from symbert.paths import extracted_again
from symbert.sizes import VOCABULARY_SIZE, Shape

# The keys of the config.json of a BERT, and the values of ours unless said otherwise.
DEFAULTS = {
    "_name_or_path": "",
    "add_cross_attention": False,
    "architectures": ["SymBertForMaskedLM"],  # `symbert.model.bert.MaskedModel`
    "attention": "original",
    "attention_probs_dropout_prob": 0.1,
    "bos_token_id": None,
    "chunk_size_feed_forward": 0,
    "classifier_dropout": None,
    "dtype": None,
    "eos_token_id": None,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "id2label": {0: "LABEL_0", 1: "LABEL_1"},
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "label2id": {"LABEL_0": 0, "LABEL_1": 1},
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "symbert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "output_attentions": False,
    "output_hidden_states": False,
    "pad_token_id": 0,
    "pretraining": None,
    "problem_type": None,
    "return_dict": True,
    "tie_word_embeddings": True,
    "type_vocab_size": 2,
    "use_cache": True,
    "vocab_size": VOCABULARY_SIZE,
}
SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"  # the latter of a BERT from before 2023
INDEX = ".index.json"  # after such a name: the weights lie in several files, which it lists
POINTER = b"version https://git-lfs"  # how a pointer begins that stands in place of a file
OF_BERT = {"hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "vocab_size"}


class Configuration(SimpleNamespace):
    """The values of config.json as attributes: BERT's, the name of the operator, and the facts of its run."""

    _attn_implementation = "sdpa"  # PyTorch's kernels

    def __init__(self, **values: Any) -> None:
        super().__init__(**{**DEFAULTS, **values})

    def to_dict(self) -> dict[str, Any]:
        """The values of config.json in its order."""
        values = {**vars(self), "transformers_version": version("transformers")}
        return json.loads(json.dumps(values, sort_keys=True))


def configuration_of(
    shape: Shape, operator: Operator, vocabulary_size: int = VOCABULARY_SIZE, dropout: float = 0.1
) -> Configuration:
    """The configuration of a shape and an operator, which it has whole, so that its checkpoints can be loaded.

    `dropout` holds everywhere, attention included.
    """
    return Configuration(
        **structs.asdict(shape),
        attention=operator.name,
        operator=to_builtins(operator),
        vocab_size=vocabulary_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )


def _kind_of_old(values: dict[str, Any]) -> str:
    """The `model_type` of a config.json from before 2020, which has none: bert, unless it names another architecture or
    lacks the keys of BERT."""
    others = [name for name in values.get("architectures") or [] if not str(name).startswith("Bert")]
    return "bert" if values.keys() >= OF_BERT and not others else "missing"


def read_configuration(checkpoint: Path) -> Configuration:
    """The configuration of a Hugging Face directory, of this project or of a plain BERT, whose operator is `original`.

    DataError or ConfigError name a file that is none, is of another kind, names no operator, or names one whose code
    was edited since it was trained.
    """
    file, remedy = checkpoint / "config.json", extracted_again(checkpoint)
    if not checkpoint.is_dir():
        raise MissingInputError(f"{checkpoint}: no such folder; {remedy}")
    if not file.is_file():
        raise MissingInputError(f"{file}: file not found; {remedy}")
    values = read_json(file, dict, remedy)
    kind = values.get("model_type", _kind_of_old(values))
    if kind not in (DEFAULTS["model_type"], "bert"):
        raise ConfigError(f"{file}: 'model_type' is {kind}, expected symbert or bert; give another checkpoint")
    plain = {"model_type": DEFAULTS["model_type"], "attention": "original"} if kind == "bert" else {}
    values = {"pretraining": None, **values, **plain, "_name_or_path": str(checkpoint)}
    check_shape(values, {"attention": str, "pretraining": (dict, type(None))}, file, remedy)
    if (positions := values.get("position_embedding_type", "absolute")) != "absolute":
        raise ConfigError(
            f"{file}: 'position_embedding_type' is {positions}, expected absolute: query and key alone would not give "
            "the logits; give another checkpoint"
        )
    if values.get("operator") is not None:
        operator_of(values).refuse_edited(file)
    return Configuration(**values)


def weight_files(directory: Path, *others: str) -> list[Path]:
    """The files of weights in a Hugging Face directory: model.safetensors or, where that is missing, the first of the
    `others` names; or the several files that an index of such a name lists.

    MissingInputError where there is none, or one of several is missing; DataError for an index that lists none.
    """
    for name in (SAFE, *others):
        file, index = directory / name, directory / f"{name}{INDEX}"
        if file.is_file():
            return [file]
        if not index.is_file():
            continue
        parts = listed_in(index)
        if absent := [part for part in parts if not (directory / part).is_file()]:
            raise MissingInputError(f"{directory / absent[0]}: file not found, which {index.name} lists; get it again")
        return [directory / part for part in parts]
    raise MissingInputError(f"{directory / SAFE}: file not found; {extracted_again(directory)}")


def listed_in(index: Path) -> list[str]:
    """The names of the files of weights that an index lists; DataError where it lists none, or others than beside
    it."""
    parts = sorted(set(read_json(index, {"weight_map": {str: str}}, "get it again")["weight_map"].values()))
    if not parts or any(Path(part).name != part for part in parts):
        listed = parts[0] if parts else "no file"
        raise DataError(f"{index}: lists {listed}, expected files beside it; get it again")
    return parts
