"""Checkpoints that a killed run continues from, and the weights that are kept for extraction.

    state/resume/step-00000300/{model,optimizer}.safetensors, checkpoint.json   the newest KEEP, to continue
    state/weights/step-00000300.safetensors and .json                           every `save_every` steps, for good

The formats do not check their content, so checkpoint.json holds the sha256 of every file, and a directory
appears under its final name only when all of it is on disk.
"""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import publish, read_json, sha256_of, write_json
from symbert.settings import hash_of

KEEP = 3


@dataclass(frozen=True)
class Position:
    """Where a run is: completed steps, length of metrics.jsonl in bytes, and the fp16 loss scale ({} if none)."""

    step: int
    metrics_bytes: int
    scaler: dict[str, Any]


class CheckpointStore:
    """The checkpoints of one run, below its state directory."""

    def __init__(self, state: Path) -> None:
        self.resume, self.weights = state / "resume", state / "weights"

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, position: Position) -> None:
        """Publish a checkpoint of this step and drop all but the newest KEEP."""
        final = self.resume / _name(position.step)
        temporary = self.resume / f".{final.name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        _save_tensors(_weights_of(model), temporary / "model.safetensors")
        _save_tensors(_states_of(model, optimizer), temporary / "optimizer.safetensors")
        hashes = {path.name: sha256_of(path) for path in sorted(temporary.iterdir())}
        facts = {**vars(position), "sha256": hashes}
        write_json(temporary / "checkpoint.json", {**facts, "hash": hash_of(facts)})
        shutil.rmtree(final, ignore_errors=True)
        os.replace(temporary, final)
        for old in self._newest_first()[KEEP:]:
            shutil.rmtree(old)

    def keep_weights(self, model: nn.Module, step: int) -> None:
        """Publish the weights of this step for `extract_checkpoint`."""
        path = self.weights / f"{_name(step)}.safetensors"
        _save_tensors(_weights_of(model), path)
        write_json(path.with_suffix(".json"), {"step": step, "sha256": sha256_of(path)})

    def load_newest(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Position | None:
        """Fill model and optimizer from the newest intact checkpoint; None when the run is new.

        A damaged checkpoint is skipped with a warning that names it; when none of several is intact,
        IntegrityError, because silently starting over could waste days.
        """
        candidates = self._newest_first()
        for directory in candidates:
            try:
                return _load(directory, model, optimizer)
            except (DataError, IntegrityError, MissingInputError) as error:
                print(f"warning: {error}; falling back to the checkpoint before it", file=sys.stderr)
        if candidates:
            raise IntegrityError(f"{self.resume}: no intact checkpoint; delete this run's state to start it over")
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self.resume.glob("step-*"), reverse=True)


def kept_weights(state: Path, step: int) -> Path:
    """The verified weights file of a step; MissingInputError names the nearest kept steps."""
    path = state / "weights" / f"{_name(step)}.safetensors"
    if not path.is_file():
        kept = sorted(int(file.stem.removeprefix("step-")) for file in (state / "weights").glob("*.safetensors"))
        near = ", ".join(str(number) for number in sorted(kept, key=lambda number: abs(number - step))[:3]) or "none"
        raise MissingInputError(f"{path}: step {step} was not kept; the nearest kept steps: {near}")
    _verify(path, read_json(path.with_suffix(".json"))["sha256"])
    return path


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _load(directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> Position:
    facts = read_json(directory / "checkpoint.json")
    if facts.pop("hash", None) != hash_of(facts):
        raise IntegrityError(f"{directory / 'checkpoint.json'}: its hash does not match: the file is damaged")
    for name, expected in facts["sha256"].items():
        _verify(directory / name, expected)
    model.load_state_dict(load_file(directory / "model.safetensors"), strict=False)
    model.tie_weights()
    _restore_states(model, optimizer, load_file(directory / "optimizer.safetensors"))
    return Position(facts["step"], facts["metrics_bytes"], facts["scaler"])


def _verify(path: Path, expected: str) -> None:
    if not path.is_file():
        raise MissingInputError(f"{path}: file of a checkpoint is missing")
    found = sha256_of(path)
    if found != expected:
        raise IntegrityError(f"{path}: sha256 {found[:12]}…, expected {expected[:12]}…: the file is damaged")


def _save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    with publish(path) as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})


def _weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    tied = set(model._tied_weights_keys)
    return {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name not in tied}


def _states_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    states: dict[str, Any] = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            states[f"{name}/{key}"] = value
    return states


def _restore_states(model: nn.Module, optimizer: torch.optim.Optimizer, states: dict[str, torch.Tensor]) -> None:
    for name, parameter in model.named_parameters():
        keys = ("step", "exp_avg", "exp_avg_sq")
        optimizer.state[parameter] = {key: states[f"{name}/{key}"].to(parameter.device) for key in keys}
