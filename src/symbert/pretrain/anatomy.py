"""`symbert anatomy`: the attention of checkpoints on rows of text, as a table of heads."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from symbert.errors import ConfigError
from symbert.files import read_json, write_text
from symbert.model.anatomy import anatomy_of
from symbert.model.bert import Bert, initialize
from symbert.model.configuration import Configuration
from symbert.model.loading import load_encoder, model_of
from symbert.pretrain.tasks import REMEDY, PackedRows

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
    the heads of each layer of each checkpoint; `output` is a csv with a row per head. `with-start` adds the start of
    each run of this project, as step 0, which follows from its seed.
    """
    rows: list[dict[str, Any]] = []
    runs: dict[Any, tuple[Path, Configuration]] = {}  # a checkpoint of each, but for starts
    begun = set()  # those whose start is among the checkpoints
    for checkpoint in dict.fromkeys(checkpoints):
        model = load_encoder(checkpoint)
        facts = model.config.pretraining or {}
        rows += _heads_of(checkpoint, model, {name: facts.get(name) for name in FACTS}, manifest)
        name = tuple(facts.get(key) for key in FACTS[:3])
        if facts.get("step") == 0:
            begun.add((checkpoint.parent, name))
        else:
            runs.setdefault((name, facts.get("settings_hash")), (checkpoint, model.config))
    starts: list[dict[str, Any]] = []
    for (name, _), (checkpoint, config) in runs.items() if with_start else ():
        if (checkpoint.parent, name) not in begun:
            facts = dict(zip(FACTS, (*name, 0), strict=True))
            starts += _heads_of(checkpoint, _start_of(checkpoint, config), facts, manifest)
    heads = pd.DataFrame([*starts, *rows])
    heads = heads.sort_values([*FACTS], kind="stable", ignore_index=True).astype(dict.fromkeys(MEASURES, float))
    if output is not None:
        write_text(output, heads.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
        return
    means = heads.groupby(["checkpoint", *FACTS, "layer"], sort=False, dropna=False)[[*MEASURES]].mean().reset_index()
    named = [*FACTS, "layer"]
    if means[named].isna().any(axis=None) or means.duplicated(named).any():  # such as a run on two corpora
        named = ["checkpoint", *(["step"] if means["step"].notna().any() else []), "layer"]
    print(means[[*named, *MEASURES]].to_string(index=False, float_format=lambda value: f"{value:.3f}"))


def measure_anatomy(output: Path, /) -> None:
    """Describe the attention of the checkpoints in the settings beside `output`, and of the starts of their runs."""
    settings = read_json(output.parent / "settings.json", SETTINGS, "run snakemake again")
    anatomy([Path(folder) for folder in settings["checkpoints"]], Path(settings["manifest"]), True, output)


def _heads_of(checkpoint: Path, model: Bert, facts: dict[str, Any], manifest: Path | None) -> list[dict[str, Any]]:
    """A row per head of a model, with the facts of its checkpoint."""
    rows = anatomy_of(model, _rows_of(model.config, manifest))
    return [{"checkpoint": checkpoint.as_posix(), **facts, **head} for head in rows]


def _start_of(checkpoint: Path, config: Configuration) -> Bert:
    """The start of a checkpoint's run, which module names and seed decide. ConfigError for a model of no run, and for
    one that was exported, whose operator is not the run's."""
    facts = config.pretraining or {}
    if any(facts.get(name) is None for name in FACTS) or facts["attention"] != config.attention:
        raise ConfigError(
            f"{checkpoint}: only a checkpoint of a run, not exported, has a known start; leave out --with-start"
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
