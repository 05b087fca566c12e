"""Models from elsewhere as an experiment plans them: which of their files are read, and what is refused of them.

Everything that would end a job is one line here, before any job runs. transformers, which takes seconds to import, is
asked once of each model: until its settings.json is there.
"""

import logging
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from symbert.configuration import Configuration, Model, PairLimits, protocol_of
from symbert.corpus.dataset import HUBS_REVISION, REPOSITORY
from symbert.errors import ConfigError, DataError, MissingInputError, RemoteError, line_of
from symbert.files import known_sha256s, read_json, read_json_or_empty
from symbert.foreign import ForeignModel, Tokenizer
from symbert.glue.encoder import begins_no_row, load_tokenizer, reads_otherwise
from symbert.glue.tasks import suite_of
from symbert.model.configuration import INDEX, PICKLED, POINTER, SAFE, listed_in
from symbert.sizes import SIZES, Shape
from symbert.sources import NAMEABLE, check_name
from symbert.steps import File

CONFIG = "config.json"
SETTINGS_OF_TOKENIZERS: tuple[str, ...] = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
VOCABULARIES = (  # of a tokenizer, which has one of them at least
    *("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model"),
    *("spiece.model", "spm.model", "tokenizer.model"),
)
WEIGHTS = (SAFE, PICKLED)  # the first that is there is read
ADAPTER = "adapter_config.json"
SMALL_FILES = (CONFIG, *SETTINGS_OF_TOKENIZERS, *VOCABULARIES, *(f"{name}{INDEX}" for name in WEIGHTS))
OURS = "symbert"  # the model_type of this project's own
# Families whose positions begin after the id of the padding, so that they have fewer than config.json says.
AFTER_PADDING = {"camembert", "data2vec-text", "esm", "ibert", "longformer", "luke", "mpnet", "roberta", "xlm-roberta"}
AFTER_PADDING |= {"roberta-prelayernorm", "xlm-roberta-xl", "xmod"}


def is_of_hub(model: Model) -> bool:
    """Whether `models` names a repository of the hub, and no folder."""
    return not Path(model.path).exists() and bool(REPOSITORY.fullmatch(model.path))


def local_model(name: str, asked: Model) -> ForeignModel:
    """The model of a folder. ConfigError or MissingInputError where it is none, or lacks a file."""
    key, folder = f"config: 'models.{name}.path'", Path(asked.path)
    check_name(f"models.{name}.path", asked.path)
    if not folder.is_dir():
        fact = "is a file" if folder.exists() else "no such folder, and no name of the hub, which is owner/name"
        raise MissingInputError(f"{key}: {asked.path}: {fact}; name a folder with {CONFIG} and weights, or owner/name")
    if asked.revision != HUBS_REVISION:
        raise ConfigError(
            f"config: 'models.{name}.revision' is {asked.revision!r}, which is of the hub; {asked.path} is a folder "
            "here, leave it out"
        )
    sizes = {file.name: file.stat().st_size for file in folder.iterdir() if file.is_file()}
    small, weights = _files(key, asked.path, folder, sizes)
    for file in (folder / file for file in (*small, *weights)):
        with open(file, "rb") as content:
            if content.read(len(POINTER)) == POINTER:
                raise ConfigError(f"{file}: a pointer of Git LFS, not the content; get it: git lfs pull")
    paths = [str(folder / file) for file in (*small, *weights)]
    digests = dict(zip((*small, *weights), map(File, paths, known_sha256s(paths)), strict=True))
    return _model(name, asked, digests, sizes, weights)


def hub_model(name: str, asked: Model, folder: str) -> tuple[ForeignModel, dict[str, int]]:
    """The model of a repository of the hub, whose files lie in `folder`, the weights only when they are downloaded; and
    the bytes of these. Errors are those of `local_model` and of the hub."""
    from symbert.corpus.hub import listed_files  # huggingface_hub takes a moment

    key = f"config: 'models.{name}.path'"
    try:
        commit, sizes = listed_files(Path(folder), "model", asked.path, asked.revision, SMALL_FILES)
    except (MissingInputError, RemoteError) as error:
        raise type(error)(f"{key}: {asked.path}: no such folder here, and on the hub: {error}") from None
    small, weights = _files(key, asked.path, Path(folder), sizes)
    paths = [f"{folder}/{file}" for file in small]
    files = dict(zip(small, map(File, paths, known_sha256s(paths)), strict=True))
    files |= {file: File(f"{folder}/{file}") for file in weights}
    return _model(name, asked, files, sizes, weights, asked.path, commit), {
        f"{folder}/{file}": sizes[file] for file in weights
    }


def _files(key: str, path: str, folder: Path, there: Collection[str]) -> tuple[list[str], list[str]]:
    """The names of the small files that are read of a model, and of its weights."""
    if ADAPTER in there:
        raise ConfigError(
            f"{key}: {path}: has {ADAPTER}: an adapter of PEFT is never added to its model; merge them "
            "(merge_and_unload) and save that in a folder of its own"
        )
    if CONFIG not in there:
        raise MissingInputError(f"{key}: {path}: no {CONFIG}; name a model in Hugging Face's layout")
    index, weights = _weights(key, path, folder, there)
    if not any(file in there for file in VOCABULARIES):
        raise MissingInputError(
            f"{key}: {path}: no tokenizer ({', '.join(VOCABULARIES[:3])} …); save the one that it was trained with "
            "beside it: AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)"
        )
    return [CONFIG, *(file for file in (*SETTINGS_OF_TOKENIZERS, *VOCABULARIES) if file in there), *index], weights


def _weights(key: str, path: str, folder: Path, there: Collection[str]) -> tuple[list[str], list[str]]:
    """The name of the list of the files of weights, where they are several, and their names: of the first kind that is
    there."""
    for name in WEIGHTS:
        if name in there:
            return [], [name]
        if f"{name}{INDEX}" in there:
            parts = listed_in(folder / f"{name}{INDEX}")
            if lacking := [part for part in parts if part not in there or not NAMEABLE.fullmatch(part)]:
                raise MissingInputError(f"{key}: {path}: {name}{INDEX} lists {lacking[0]}, which is missing; get it")
            return [f"{name}{INDEX}"], parts
    others = [file for file in there if file.endswith((".h5", ".msgpack", ".onnx", ".gguf", ".bin", ".safetensors"))]
    found = f", found {', '.join(sorted(others)[:3])}" if others else ""
    raise MissingInputError(f"{key}: {path}: no weights ({', '.join(WEIGHTS)}){found}; save them with transformers")


def _model(
    name: str,
    asked: Model,
    files: dict[str, File],
    sizes: dict[str, int],
    weights: list[str],
    repository: str = "",
    commit: str = "",
) -> ForeignModel:
    config = config_of(Path(files[CONFIG].path))
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise ConfigError(f"{files[CONFIG].path}: no 'model_type', which says what family it is; add it")
    if kind == OURS:
        raise ConfigError(
            f"config: 'models.{name}.path': {asked.path}: is a model of this project; name its operator in "
            "'sweep.attention', or write it as a BERT: symbert export"
        )
    if "quantization_config" in config:
        raise ConfigError(
            f"config: 'models.{name}.path': {asked.path}: is quantized; name the model that it was made of"
        )
    of_tokenizer = {file: files[file] for file in (*SETTINGS_OF_TOKENIZERS, *VOCABULARIES) if file in files}
    width = 2 if str(config.get("dtype", config.get("torch_dtype"))) in ("float16", "bfloat16") else 4
    return ForeignModel(
        name=name,
        model_type=kind,
        parameters=sum(sizes[file] for file in weights) // width,
        content={file: files[file] for file in files if file not in of_tokenizer},
        tokenizer=Tokenizer(kind, of_tokenizer, str(config.get("tokenizer_class") or "")),
        repository=repository,
        commit=commit,
    )


def config_of(file: Path) -> dict[str, Any]:
    """The content of a config.json."""
    config: dict[str, Any] = read_json(file, dict, "get it again")
    return config


def positions_of(config: dict[str, Any]) -> int | None:
    """How many tokens a row may have, by a config.json; None where nothing there limits it."""
    count = config.get("max_position_embeddings", config.get("n_positions"))
    if not isinstance(count, int) or config.get("position_biased_input") is False:  # positions are relative
        return None
    padding = config.get("pad_token_id")
    is_after = config["model_type"] in AFTER_PADDING
    return count - (1 if padding is None else padding) - 1 if is_after else count


def shape_of(model: ForeignModel) -> Shape:
    """The dimensions of a model, by its config.json, as far as a plan needs them."""
    config, base = config_of(model.checkpoint / CONFIG), SIZES["base"]

    def number(*names: str, default: int) -> int:
        return next((config[name] for name in names if isinstance(config.get(name), int)), default)

    hidden = number("hidden_size", "dim", "d_model", default=base.hidden_size)
    return Shape(
        num_hidden_layers=number("num_hidden_layers", "n_layers", default=base.num_hidden_layers),
        num_attention_heads=number("num_attention_heads", "n_heads", default=base.num_attention_heads),
        hidden_size=hidden,
        intermediate_size=number("intermediate_size", "hidden_dim", default=4 * hidden),
        initializer_range=base.initializer_range,
    )


def code_left_out(model: ForeignModel) -> str | None:
    """A line where the config.json of a model names code of its own, beside a family that transformers knows."""
    if not config_of(model.checkpoint / CONFIG).get("auto_map"):
        return None
    return (
        f"models.{model.name}: {CONFIG} names code of its own ('auto_map'), which is never run; it is computed as "
        f"transformers' {model.model_type}: compare a published score of it, or leave it out"
    )


def refuse_long_rows(model: ForeignModel, config: Configuration) -> None:
    """ConfigError where rows of tasks or pairs may have more tokens than a model has positions."""
    positions = positions_of(config_of(model.checkpoint / CONFIG))
    pairs = [suite for suite in config.sweep.suites if suite == "blimp"]
    for suite in dict.fromkeys([*(suite_of(task).name for task in config.sweep.tasks), *pairs]):
        section = f"suites.{suite}" if "max_length" in config.suites.get(suite, {}) else "glue"
        length = protocol_of(config, suite, PairLimits).max_length
        if positions is not None and length > positions:
            raise ConfigError(
                f"config: '{section}.max_length' is {length}, but models.{model.name} ({model.origin}) has {positions} "
                "positions; lower it"
            )


def refuse_unreadable(model: ForeignModel, asked: Collection[str]) -> None:
    """ConfigError for a model or a tokenizer that transformers cannot read without code of their own, that cannot be
    scored on the tasks and suites that are `asked`, or that do not fit each other."""
    import transformers
    from transformers.models.auto import modeling_auto

    transformers.logging.set_verbosity(logging.ERROR)
    folder, place = model.checkpoint, f"config: 'models.{model.name}.path': {model.origin}"
    own = config_of(folder / CONFIG).get("auto_map")
    if model.model_type not in transformers.CONFIG_MAPPING:
        need = "needs code of its own, which is never run" if own else "is of a family that transformers does not know"
        raise ConfigError(f"{place}: {need} (model_type {model.model_type}); choose another model")
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **options)
    except Exception as error:  # of a dozen types
        raise ConfigError(f"{folder / CONFIG}: cannot be read ({line_of(error)}); correct it") from None
    tables = [modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING]
    tables += [modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING] if "squad2" in asked else []
    if config.is_encoder_decoder or not all(type(config) in table for table in tables):
        raise ConfigError(
            f"{place}: transformers has no encoder of model_type {model.model_type} for these tasks; choose another "
            "model"
        )
    try:
        tokenizer = load_tokenizer(model.tokenizer)
    except DataError as error:
        settings = read_json_or_empty(folder / SETTINGS_OF_TOKENIZERS[0])
        own = "its tokenizer needs code of its own, which is never run; save another one beside the weights"
        raise ConfigError(f"{place}: {own if 'auto_map' in settings else error}") from None
    if tokenizer.pad_token_id is None:
        raise ConfigError(f"{place}: its tokenizer has no padding token; set 'pad_token' in tokenizer_config.json")
    if begins_no_row(tokenizer):
        print(
            f"warning: {place}: its tokenizer begins no row with its {tokenizer.cls_token}, of which most heads are "
            "made; add 'tokenizer_class' of its family to tokenizer_config.json, or a post-processor to tokenizer.json",
            file=sys.stderr,
        )
    if reads_otherwise(tokenizer, model.tokenizer):
        print(
            f"warning: {place}: transformers' {type(tokenizer).__name__} cuts text otherwise than its tokenizer.json; "
            "where that is right, set 'tokenizer_class' of tokenizer_config.json to PreTrainedTokenizerFast",
            file=sys.stderr,
        )
    if tokenizer.mask_token_id is None and "blimp" in asked:
        raise ConfigError(f"{place}: its tokenizer has no mask, by which pairs are judged; leave 'blimp' out")
    if "blimp" in asked and "ElectraForPreTraining" in (config.architectures or ()):
        raise ConfigError(
            f"{place}: its head tells which tokens were replaced and predicts none, by which pairs are judged; leave "
            "'blimp' out"
        )
    if model.model_type in AFTER_PADDING and config.pad_token_id is None:
        raise ConfigError(
            f"{folder / CONFIG}: no 'pad_token_id', after which the positions of {model.model_type} begin; add that of "
            "its tokenizer"
        )
    if (last := max(tokenizer.get_vocab().values())) >= config.vocab_size:
        raise ConfigError(
            f"{place}: its tokenizer has ids up to {last:,}, 'vocab_size' of {CONFIG} is {config.vocab_size:,}; get "
            "the tokenizer that belongs to the weights"
        )
