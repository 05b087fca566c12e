"""A kept step of a run, or the model that it started from, as a Hugging Face directory. Imports torch for step 0 alone,
because that takes longer than everything else."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbert.corpus.wordpiece import encoder, read_vocabulary
from symbert.errors import IntegrityError
from symbert.files import copy_file, read_json, read_json_or_empty, sha256_of, verify_sha256, write_json, write_text
from symbert.hosts import HOSTS
from symbert.model.card import model_card
from symbert.operators import operator_code
from symbert.pretrain.run import CHECKSUM, kept_weights, read_run
from symbert.sources import located

if TYPE_CHECKING:
    from symbert.model.bert import HostModel

REMEDY = "restore the vocabulary that the corpus was packed with"
FACTS_OF_START = ("size", "attention", "pretrain_seed", "parameters", "model_host")  # that hold before the first step
DONE = {"size": str, "attention": str, "pretrain_seed": int, "parameters": int, "corpus_hash": str}
CONFIG = {"model_type": str, "attention": str, "vocab_size": int, "hidden_size": int}
CONFIG |= {"num_hidden_layers": int, "num_attention_heads": int, "intermediate_size": int}


def extract(folder: Path, step: int, /) -> None:
    """Write config.json, model.safetensors, the tokenizer and a model card for one kept step of a run into
    `folder`/step-`step`.

    Step 0 is the model before its first step: not pre-trained, and made again, because it follows from the seed alone.
    The facts of the run stand in config.json under `pretraining`, for the model card and that of a later export.
    Nothing is trained: a step that was not kept is a MissingInputError naming the nearest kept ones. Rows or a
    vocabulary other than the run learned are an IntegrityError. A model of a host that reads no corpus has neither a
    vocabulary nor a tokenizer.
    """
    run, _, manifest = read_run(folder)
    state, output = folder / "state", folder / f"step-{step}"
    kept = kept_weights(state, step) if step else None
    config, done = read_json(state / "config.json", CONFIG), read_json(folder / "done.json", DONE)
    _verify_rows(manifest, done, folder)
    vocabulary = _vocabulary_of(manifest) if HOSTS[run.host].reads_corpus else None
    if vocabulary is not None:
        _verify_vocabulary(vocabulary, config, done)
    weights = output / "model.safetensors"
    if kept is None:
        from symbert.model.loading import write_weights

        write_weights(initial_model(config, run.pretrain_seed), weights)
        facts = {name: done[name] for name in FACTS_OF_START if name in done}
        facts["settings"] = {"operator_code": operator_code(run.attention)}
    else:
        copy_file(kept, weights)
        source = read_json(folder / "run.json").get("corpus_source")
        facts = {**done, **({"corpus_source": source} if source else {})}
    write_text(output / CHECKSUM, sha256_of(weights) + "\n")
    config["pretraining"] = {**facts, "step": step}
    write_json(output / "config.json", config)
    if vocabulary is not None:
        _write_tokenizer(vocabulary, output)
    write_text(output / "README.md", model_card(config))


def _verify_rows(manifest: Path, done: dict[str, Any], folder: Path) -> None:
    """IntegrityError where the manifest, if it is still there, describes other rows than a finished run learned."""
    found = read_json_or_empty(manifest).get("hash", done["corpus_hash"])
    if found != done["corpus_hash"]:
        raise IntegrityError(
            f"{manifest}: hash {found}, but {folder / 'done.json'} is of {done['corpus_hash']}; restore the corpus, or "
            f"move {folder} away to train the run again"
        )


def _vocabulary_of(manifest: Path) -> Path:
    """The word pieces that a corpus was packed with."""
    settings = read_json(manifest.parent / "settings.json", {"vocabulary": str}, "run snakemake again")
    return Path(located(settings["vocabulary"]))


def _verify_vocabulary(vocabulary: Path, config: dict[str, Any], run: dict[str, Any]) -> None:
    """A piece more or another order would give each word another's embedding, and no error."""
    pieces = len(read_vocabulary(vocabulary))
    if pieces != config["vocab_size"]:
        raise IntegrityError(f"{vocabulary}: {pieces:,} pieces, the model has {config['vocab_size']:,}; {REMEDY}")
    verify_sha256(vocabulary, run["vocabulary_sha256"], REMEDY)


def _write_tokenizer(vocabulary: Path, output: Path) -> None:
    """The files of Hugging Face's tokenizer of these pieces."""
    copy_file(vocabulary, output / "vocab.txt")
    write_text(output / "tokenizer.json", encoder(vocabulary).to_str())
    tokenizer = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512}
    write_json(output / "tokenizer_config.json", tokenizer)


def initial_model(config: dict[str, Any], seed: int) -> "HostModel":
    """The model of a run's config.json with the weights that the run starts from."""
    from symbert.model.bert import initialize
    from symbert.model.configuration import Configuration
    from symbert.model.loading import model_of

    model = model_of(Configuration(**config))
    initialize(model, seed)
    return model
