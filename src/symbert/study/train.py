"""The runs of a cell, one after the other in one process, by the trainer of pre-training."""

import sys
import time
from pathlib import Path
from typing import Any

import torch

from symbert.commit import PROJECT, commit_of
from symbert.errors import DivergedError, PreemptedError
from symbert.files import read_json, write_json
from symbert.paths import Run
from symbert.pretrain.stop import StopRequest
from symbert.pretrain.train import Trainer
from symbert.study.design import Cell
from symbert.training.device import facts_of_machine

CURVE = {"seed": int, "corpus_hash": str, "steps": [int], "losses": [(int, float)], "machine": dict}


def train_runs(cell: Cell, seeds: list[int], manifest: Path, runs: Path, stop: StopRequest) -> list[dict[str, Any]]:
    """The curves of a cell's seeds; a run that `runs` has of the same rows is not trained again.

    A run that diverges has the losses from before. PreemptedError between two steps after a signal: what is finished
    stays, and the same command trains the rest.
    """
    torch.set_num_threads(1)
    corpus_hash = read_json(manifest, {"hash": str})["hash"]
    curves = []
    for seed in seeds:
        path = runs / f"seed-{seed}.json"
        curve = read_json(path, CURVE, "delete it") if path.is_file() else None
        if curve is None or curve["corpus_hash"] != corpus_hash:
            started = time.process_time()
            curve = {"seed": seed, "corpus_hash": corpus_hash, **_train(cell, seed, manifest, runs, stop)}
            curve |= {"cpu_seconds": round(time.process_time() - started, 1), "commit": commit_of(PROJECT)}
            write_json(path, curve)
            said = f"{curve['losses'][-1]:.3f}" if len(curve["losses"]) == cell.evaluations else "diverged"
            print(f"{cell.name} seed {seed}: {said}", file=sys.stderr, flush=True)
        curves.append(curve)
    return curves


def _train(cell: Cell, seed: int, manifest: Path, runs: Path, stop: StopRequest) -> dict[str, Any]:
    """The validation losses of one run, the width of its logits at the start, and what it was computed on."""
    trainer = Trainer(Run(cell.size, cell.attention, seed), cell.pretrain, manifest, runs)
    start, steps, losses = trainer.describe_start(), [], []
    for step in range(cell.pretrain.steps):
        if stop.signal:
            raise PreemptedError(f"{cell.name} seed {seed}: {stop.signal}; run the same command to go on")
        try:
            trainer.step(step)
            if (step + 1) % cell.pretrain.evaluate_every == 0:
                losses.append(round(trainer.evaluate()["loss"], 5))
                steps.append(step + 1)
        except DivergedError:
            break
    return {"steps": steps, "losses": losses, "initial": start, "machine": facts_of_machine(trainer.device)}
