"""The heads of a checkpoint on rows of text, and the start of its run, for `symbert anatomy`."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from symbert.errors import ConfigError
from symbert.files import read_json
from symbert.model.anatomy import anatomy_of
from symbert.model.bert import Bert, initialize
from symbert.model.configuration import Configuration
from symbert.model.loading import model_of
from symbert.pretrain.run import IDENTITY
from symbert.pretrain.tasks import REMEDY, PackedRows

SEQUENCES, TOKENS, SEED = 16, 32, 1  # rows that are read; tokens of a random one, and the seed of all of them


def heads_of(checkpoint: Path, model: Bert, facts: dict[str, Any], manifest: Path | None) -> list[dict[str, Any]]:
    """A row per head of a model, with the facts of its checkpoint."""
    rows = anatomy_of(model, _rows_of(model.config, manifest))
    return [{"checkpoint": checkpoint.as_posix(), **facts, **head} for head in rows]


def start_of(checkpoint: Path, config: Configuration) -> Bert:
    """The start of a checkpoint's run, which module names and seed decide. ConfigError for a model of no run, and for
    one that was exported, whose operator is not the run's."""
    facts = config.pretraining or {}
    if any(facts.get(name) is None for name in IDENTITY) or facts["attention"] != config.attention:
        raise ConfigError(
            f"{checkpoint}: only a checkpoint of a run, not exported, has a known initialization; leave out --with-init"
        )
    started = model_of(config)
    initialize(started, facts["pretrain_seed"])
    return started.bert


def _rows_of(config: Configuration, manifest: Path | None) -> Tensor:
    if manifest is None:
        generator = torch.Generator().manual_seed(SEED)
        tokens = min(TOKENS, config.max_position_embeddings)
        return torch.randint(config.vocab_size, (SEQUENCES, tokens), generator=generator)
    rows, told = PackedRows(manifest, "validation"), read_json(manifest, dict, REMEDY).get("vocabulary_sha256")
    learned = (config.pretraining or {}).get("vocabulary_sha256", told)
    if learned != told:
        raise ConfigError(
            f"{manifest}: its ids are of another vocabulary than the model's; give the corpus of the model"
        )
    ids = torch.from_numpy(rows[np.arange(min(SEQUENCES, len(rows)))])
    if ids.max() >= config.vocab_size or ids.shape[1] > config.max_position_embeddings:
        raise ConfigError(
            f"{manifest}: rows of {ids.shape[1]} tokens with ids up to {int(ids.max())}, expected at most "
            f"{config.max_position_embeddings} tokens and ids below {config.vocab_size}; give the corpus of the model"
        )
    return ids
