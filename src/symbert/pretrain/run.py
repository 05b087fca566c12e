"""The pre-training of one run: size × attention × seed on a packed corpus.

Everything a run needs to go on lives in its `state` directory, which no rule declares as an output (Snakemake
deletes outputs); the declared `done.json` and `metrics.jsonl` are published when the last step is done.
"""

import platform
import time
from pathlib import Path
from typing import Any

import numpy
import torch
import transformers

from symbert.files import copy_file, read_json, single_writer, write_json
from symbert.model.device import pick_device, resolve_precision
from symbert.pretrain.guard import guard_settings
from symbert.pretrain.loop import Run, Trainer
from symbert.pretrain.stop import StopRequest
from symbert.settings import PretrainSettings, hash_of, read_settings


def pretrain_model(
    manifest: Path,
    settings: Path,
    size: str,
    attention: str,
    seed: int,
    state: Path,
    done: Path,
    metrics: Path,
    threads: int,
) -> None:
    """Train one model, from its newest checkpoint if it was interrupted, and publish metrics and a summary.

    SIGTERM, SIGINT and SIGUSR1 save at the next step boundary (PreemptedError, exit 75); the same command goes
    on from there with the same bits. DivergedError when the loss or the gradient is not finite.
    """
    stop = StopRequest()
    torch.set_num_threads(threads)
    run, chosen, corpus = Run(size, attention, seed), read_settings(settings, PretrainSettings), read_json(manifest)
    identity = identity_of(run, chosen, resolve_precision(chosen.precision, pick_device()), corpus["hash"])
    with single_writer(state.parent):
        guard_settings(state, identity, chosen.on_settings_change)
        trainer = Trainer(run, chosen, manifest, state)
        _write_provenance(state / "provenance.json", trainer, threads)
        validation_loss = trainer.train(stop)
        copy_file(state / "metrics.jsonl", metrics)
        summary = {"steps": chosen.steps, "validation_loss": validation_loss, "parameters": trainer.parameters}
        write_json(done, {**vars(run), **summary, "corpus_hash": corpus["hash"], "settings_hash": hash_of(identity)})


def identity_of(run: Run, settings: PretrainSettings, precision: str, corpus_hash: str) -> dict[str, Any]:
    """All that determines a run's result, `auto` resolved: another identity is another run."""
    scientific = {key: value for key, value in vars(settings).items() if key != "on_settings_change"}
    return {**vars(run), **scientific, "precision": precision, "corpus_hash": corpus_hash}


def _write_provenance(path: Path, trainer: Trainer, threads: int) -> None:
    device = torch.cuda.get_device_name() if trainer.device.type == "cuda" else platform.processor() or "cpu"
    write_json(
        path,
        {
            "host": platform.node(),
            "device": device,
            "threads": threads,
            "precision": trainer.precision,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "versions": {module.__name__: module.__version__ for module in (torch, transformers, numpy)},
        },
    )
