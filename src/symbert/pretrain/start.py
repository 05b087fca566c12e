"""Where the weights of a run start: its seed draws them, or they are those of a checkpoint (`pretrain.init_from`), a
folder with config.json, weights, and a vocabulary. Imports torch where weights are read."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import structs

from symbert.corpus.shards import Learned, Pack
from symbert.corpus.wordpiece import read_vocabulary
from symbert.errors import ConfigError, IntegrityError, MissingInputError
from symbert.files import read_json, read_struct, sha256_of, verify_sha256
from symbert.model.configuration import DEFAULTS, PICKLED, read_configuration, weight_files
from symbert.pretrain.run import Pretraining
from symbert.sources import located
from symbert.steps import read_step

# Keys of config.json, beside the shape of a size, that change what a model computes.
ALIKE = ("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "hidden_act")
FITTING = "give a checkpoint that fits"


def weights_sha256(checkpoint: Path, digest: Callable[[Path], str] = sha256_of) -> str:
    """The SHA-256 of a checkpoint's weights, wherever it lies; of several files, that of a list of them."""
    files = weight_files(checkpoint, PICKLED)
    if len(files) == 1:
        return digest(files[0])
    return hashlib.sha256("".join(f"{digest(file)}  {file.name}\n" for file in files).encode()).hexdigest()


def refuse_other_model(run: Pretraining, checkpoint: Path) -> None:
    """ConfigError where the model of a run does not compute as that of a checkpoint, by its config.json, or would not
    keep its weights as they are."""
    if run.operator.init_scale is not None:
        raise ConfigError(
            f"attention '{run.attention}': 'init_scale' sets the width of drawn weights, but 'pretrain.init_from' is "
            f"{checkpoint}; remove one"
        )
    config = read_configuration(checkpoint)
    expected: dict[str, Any] = structs.asdict(run.shape) | {key: DEFAULTS[key] for key in ALIKE}
    del expected["initializer_range"]  # of weights that are drawn
    for key, value in expected.items():
        if (found := getattr(config, key)) != value:
            whose = "every model here" if key in ALIKE else f"the size '{run.size}'"
            remedy = FITTING if key in ALIKE else "choose a size of its shape (key 'sizes'), or another checkpoint"
            raise ConfigError(f"{checkpoint / 'config.json'}: '{key}' is {found}, {whose} has {value}; {remedy}")


def refuse_other_vocabulary(checkpoint: Path, vocabulary: Path) -> None:
    """ConfigError where a checkpoint has other pieces than a vocabulary file, or the same in another order."""
    theirs, ours = _pieces_of(checkpoint), read_vocabulary(vocabulary)
    if theirs == ours:
        return
    at = min(number for _, number in theirs.items() ^ ours.items())
    there, here = ({number: piece for piece, number in pieces.items()}.get(at) for pieces in (theirs, ours))
    raise ConfigError(
        f"{checkpoint}: its piece {at} is {there!r}, the corpus has {here!r} ({vocabulary}); pack the corpus with the "
        "checkpoint's vocabulary (docs/pretraining.md), or give another checkpoint"
    )


def _pieces_of(checkpoint: Path) -> dict[str, int]:
    """Piece to id in a checkpoint's vocab.txt or, as transformers writes it today, in its tokenizer.json."""
    if (file := checkpoint / "vocab.txt").is_file():
        return read_vocabulary(file)
    file = checkpoint / "tokenizer.json"
    if not file.is_file():
        raise MissingInputError(
            f"{checkpoint}: neither vocab.txt nor tokenizer.json in it; add the vocab.txt it learned"
        )
    model = read_json(file, {"model": {"type": str}}, FITTING)["model"]
    if model["type"] != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise ConfigError(f"{file}: a tokenizer of the kind {model['type']}, the corpus has word pieces; {FITTING}")
    pieces: dict[str, int] = model["vocab"]
    return pieces


def begin(model: Any, run: Pretraining) -> None:
    """Give the model of a run the weights that it starts from.

    ConfigError names what does not fit in its checkpoint; IntegrityError a checkpoint that has other weights than when
    the run was planned.
    """
    from symbert.model.bert import initialize

    initialize(model, run.pretrain_seed)  # constants of operators too, which no checkpoint has
    if run.init_from is None:
        return
    from symbert.model.loading import begin_from

    checkpoint = Path(located(run.init_from.path))
    refuse_other_model(run, checkpoint)
    vocabulary = Path(located(read_step(run.manifest.parent, Pack).parts.vocabulary.path))
    learned = read_struct(run.manifest, Learned).vocabulary_sha256
    verify_sha256(vocabulary, learned, "restore the vocabulary that the corpus was packed with")
    refuse_other_vocabulary(checkpoint, vocabulary)
    if weights_sha256(checkpoint) != run.init_from.sha256:
        raise IntegrityError(
            f"{checkpoint}: has other weights than when the run was planned; restore them, or run snakemake again"
        )
    begin_from(model, checkpoint)
