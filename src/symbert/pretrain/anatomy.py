"""`symbert anatomy`: what the attention of checkpoints looks like on rows of text, as a table of heads."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from symbert.errors import ConfigError
from symbert.files import read_json, write_text
from symbert.model.anatomy import anatomy_of
from symbert.model.bert import Bert, MaskedModel, initialize
from symbert.model.configuration import Configuration
from symbert.model.loading import load_encoder
from symbert.pretrain.tasks import PackedRows

SEQUENCES, TOKENS, SEED = 16, 32, 1  # rows that are looked at; tokens of a random one, and the seed of all of them
MEASURES = ("symmetry", "directionality", "logit_std", "attention_entropy", "own_share")
FACTS = ("size", "attention", "pretrain_seed", "step")  # of a checkpoint of this project
SETTINGS = {"checkpoints": [str], "manifest": str}  # of measure_anatomy


def anatomy(
    checkpoints: list[Path], /, manifest: Path | None = None, with_start: bool = False, output: Path | None = None
) -> None:
    """Describe the attention of checkpoints, of this project or any BERT, head by head.

    Measured are symmetry and directionality of W_Q W_Kᵀ, the width of the logits, and entropy and own share of the
    attention, on the first 16 validation rows of `manifest`, or else on 16 rows of 32 random tokens. Prints means over
    the heads of each layer; `output` is a csv with a row per head. `with-start` adds the start of each run of this
    project, as step 0, which follows from its seed.
    """
    heads = _table_of(checkpoints, manifest, with_start)
    if output is not None:
        _write(heads, output)
        return
    known = [column for column in ("checkpoint", *FACTS) if column in heads and heads[column].notna().all()]
    known = known[1:] if len(known) > len(FACTS) else known
    means = heads.groupby([*known, "layer"], sort=False)[list(MEASURES)].mean().reset_index()
    print(means.to_string(index=False, float_format=lambda value: f"{value:.3f}"))


def measure_anatomy(output: Path, /) -> None:
    """Describe the attention of the checkpoints in the settings beside `output`, and of the starts of their runs."""
    settings = read_json(output.parent / "settings.json", SETTINGS, "run snakemake again")
    _write(_table_of([Path(folder) for folder in settings["checkpoints"]], Path(settings["manifest"]), True), output)


def _table_of(checkpoints: list[Path], manifest: Path | None, with_start: bool) -> pd.DataFrame:
    """A row per head, by run and step."""
    rows = [row for checkpoint in checkpoints for row in _heads_of(checkpoint, manifest)]
    if with_start:
        rows = [row for checkpoint in _one_per_run(checkpoints) for row in _heads_of(checkpoint, manifest, 0)] + rows
    return pd.DataFrame(rows).sort_values([*FACTS], kind="stable", ignore_index=True)


def _write(heads: pd.DataFrame, output: Path) -> None:
    write_text(output, heads.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def _heads_of(checkpoint: Path, manifest: Path | None, step: int | None = None) -> list[dict[str, Any]]:
    """A row per head of a checkpoint, or of the start of its run."""
    model = load_encoder(checkpoint)
    facts = {name: (model.config.pretraining or {}).get(name) for name in FACTS}
    if step == 0:
        model, facts = _started(model.config, facts["pretrain_seed"]), {**facts, "step": 0}
    rows = _rows_of(model.config, manifest)
    return [{"checkpoint": checkpoint.as_posix(), **facts, **head} for head in anatomy_of(model, rows)]


def _started(config: Configuration, seed: int) -> Bert:
    """The encoder that a run begins with: module names as in pre-training decide what is drawn."""
    model = MaskedModel(config)
    initialize(model, seed)
    return model.bert


def _one_per_run(checkpoints: list[Path]) -> list[Path]:
    """The first checkpoint of each run; ConfigError for one that says nothing of its run."""
    runs: dict[tuple[Any, ...], Path] = {}
    for checkpoint in checkpoints:
        facts = read_json(checkpoint / "config.json", {}).get("pretraining") or {}
        if not {*FACTS} <= facts.keys():
            raise ConfigError(f"{checkpoint / 'config.json'}: says of no run that it is of; leave out --with-start")
        runs.setdefault(tuple(facts[name] for name in FACTS[:3]), checkpoint)
    return list(runs.values())


def _rows_of(config: Configuration, manifest: Path | None) -> Tensor:
    if manifest is None:
        generator = torch.Generator().manual_seed(SEED)
        return torch.randint(config.vocab_size, (SEQUENCES, TOKENS), generator=generator)
    rows = PackedRows(manifest, "validation")
    ids = torch.from_numpy(rows[np.arange(min(SEQUENCES, len(rows)))])
    if ids.max() >= config.vocab_size or ids.shape[1] > config.max_position_embeddings:
        raise ConfigError(
            f"{manifest}: rows of {ids.shape[1]} tokens with ids up to {int(ids.max())}, expected at most "
            f"{config.max_position_embeddings} tokens and ids below {config.vocab_size}; give the corpus of the model"
        )
    return ids
