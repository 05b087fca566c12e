"""`symbert anatomy`: the attention of checkpoints on rows of text, as a table of heads."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from symbert.errors import ConfigError
from symbert.files import read_json, write_text
from symbert.model.anatomy import anatomy_of
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import Configuration
from symbert.model.loading import load_encoder
from symbert.pretrain.tasks import PackedRows

SEQUENCES, TOKENS, SEED = 16, 32, 1  # rows that are read; tokens of a random one, and the seed of all of them
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
    heads = pd.DataFrame([row for checkpoint in checkpoints for row in _heads_of(checkpoint, manifest)])
    if with_start:
        if heads[list(FACTS)].isna().any(axis=None):
            raise ConfigError(f"{checkpoints[0]}: a checkpoint of no run has no known start; leave out --with-start")
        first = heads.drop_duplicates(FACTS[:3])["checkpoint"]
        starts = pd.DataFrame([row for checkpoint in first for row in _heads_of(Path(checkpoint), manifest, True)])
        heads = pd.concat([starts, heads])
    heads = heads.sort_values([*FACTS], kind="stable", ignore_index=True).astype(dict.fromkeys(MEASURES, float))
    if output is not None:
        write_text(output, heads.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
        return
    known = ["checkpoint"] if heads[list(FACTS)].isna().any(axis=None) else list(FACTS)
    means = heads.groupby([*known, "layer"], sort=False)[list(MEASURES)].mean().reset_index()
    print(means.to_string(index=False, float_format=lambda value: f"{value:.3f}"))


def measure_anatomy(output: Path, /) -> None:
    """Describe the attention of the checkpoints in the settings beside `output`, and of the starts of their runs."""
    settings = read_json(output.parent / "settings.json", SETTINGS, "run snakemake again")
    anatomy([Path(folder) for folder in settings["checkpoints"]], Path(settings["manifest"]), True, output)


def _heads_of(checkpoint: Path, manifest: Path | None, is_start: bool = False) -> list[dict]:
    """A row per head of a checkpoint, or of the start of its run, which module names and seed decide."""
    model = load_encoder(checkpoint)
    facts = {name: (model.config.pretraining or {}).get(name) for name in FACTS}
    if is_start:
        started = MaskedModel(model.config)
        initialize(started, facts["pretrain_seed"])
        model, facts["step"] = started.bert, 0
    rows = anatomy_of(model, _rows_of(model.config, manifest))
    return [{"checkpoint": checkpoint.as_posix(), **facts, **head} for head in rows]


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
