"""Files that a killed run continues from, and the weights that are kept for extraction.

    state/metrics.jsonl                                 holds nothing that depends on speed
    state/resume/step-00000300.safetensors and .json    weights and optimizer's state, the newest KEEP, to continue
    state/weights/step-00000300.safetensors and .json   the weights of every `save_every` steps, for good
    state/continue/step-00000300.safetensors and .json  as in resume, of the step that a run of more steps goes on from

The format does not check its content, so the .json has the sha256 of the file and of the log until then, and it is
written last: without it there is no checkpoint. One process writes; any number may load. Files have whole tensors, so
any number of processes goes on with them.
"""

import hashlib
import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from safetensors.torch import load_file
from torch import nn
from torch.optim import Optimizer

from symbert.configuration import PretrainSettings
from symbert.errors import ConfigError, DivergedError, IntegrityError, SymbertError, line_of
from symbert.files import (
    copy_file,
    hash_of,
    publish,
    read_json,
    read_json_lines,
    read_struct,
    reading,
    sha256_of,
    synchronise,
    verify_sha256,
    write_json,
    writing,
)
from symbert.model.loading import Tensors, weights_of, write_tensors
from symbert.pretrain.compute import gather, part_of
from symbert.pretrain.run import (
    DAMAGED,
    KEEP,
    METRICS,
    Identity,
    Pretraining,
    beside,
    branch_step,
    branches,
    continuation_of,
    difference,
    finished_runs,
    has_begun,
    kept_steps,
    kept_weights,
    name_of_step,
    weights_file,
)
from symbert.steps import fields_of

RECORD = {"step": int, "metrics_bytes": int, "scaler": dict, "metrics_sha256": str, "sha256": str, "hash": str}
DIVERGED = "the last checkpoint is kept: lower 'pretrain.learning_rate' or raise 'pretrain.warmup_steps'"


class MetricsLog:
    """A line per logged step; cut back to `length` bytes, where the checkpoint was, when a run resumes.

    SYMBERT_TRACKER=module:function in the environment names a tracker: the function gets the folder of the run, and
    returns one that is called with split, step and values of each line (docs/pretraining.md has one for TensorBoard).
    """

    def __init__(self, path: Path, length: int) -> None:
        self.path, self.track = path, _tracker_of(path.parents[1])
        with writing(path):
            self.file = open(path, "ab")  # noqa: SIM115 (open as long as the run)
            self.file.truncate(length)
        self.hash = _hash_of_beginning(path, length)

    def write(self, of_step: msgspec.Struct) -> None:
        """Append one line."""
        content = msgspec.to_builtins(of_step)
        line = (json.dumps(content, allow_nan=False) + "\n").encode()
        with writing(self.path):
            self.file.write(line)
        self.hash.update(line)
        try:
            if self.track:
                self.track(content.pop("split"), content.pop("step"), content)
        except Exception as error:  # the training goes on, whatever the tracker does
            print(
                f"warning: SYMBERT_TRACKER: {error!r} at step {of_step.step}; nothing more is sent to it",
                file=sys.stderr,
            )
            self.track = None

    def flush(self) -> int:
        """Make all lines durable; returns the length in bytes. IntegrityError where the file has other lines."""
        with writing(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
        size = os.fstat(self.file.fileno()).st_size
        if _hash_of_beginning(self.path, size).digest() != self.hash.digest():
            raise IntegrityError(f"{self.path}: was changed while the run wrote it: {DAMAGED}; run again")
        return size

    def last_validation(self) -> dict[str, float]:
        """The measures of the last validation."""
        self.flush()
        *_, last = (line for line in read_json_lines(self.path, DAMAGED) if line["split"] == "validation")
        return {name: value for name, value in last.items() if name not in ("split", "step")}


def _tracker_of(folder: Path) -> Callable[[str, int, dict[str, Any]], None] | None:
    path = os.environ.get("SYMBERT_TRACKER")
    if not path:
        return None
    module, _, function = path.partition(":")
    try:
        return getattr(importlib.import_module(module), function)(folder)
    except Exception as error:
        raise ConfigError(f"SYMBERT_TRACKER is {path}: {error}; write module:function, or unset it") from None


def _hash_of_beginning(path: Path, length: int) -> "hashlib._Hash":
    """The SHA-256 of the first `length` bytes of a log, to go on with."""
    with reading(path), open(path, "rb") as file:
        return hashlib.sha256(file.read(length))


@dataclass(frozen=True)
class Position:
    """Where a run is: completed steps, length of metrics.jsonl in bytes, and the fp16 loss scale ({} if none)."""

    step: int
    metrics_bytes: int = 0
    scaler: dict[str, Any] | None = None


class CheckpointStore:
    """The checkpoints of one run, below its state directory."""

    def __init__(self, state: Path, writes: bool = True) -> None:
        self.resume, self.weights, self.branches = state / "resume", state / "weights", branches(state)
        self.log = state / METRICS
        self.writes = writes  # where not, `save` and `keep_weights` only give this process's parts to the one that does

    def save(self, model: nn.Module, optimizer: Optimizer, position: Position, is_branch: bool = False) -> None:
        """Publish a checkpoint of this step and drop all but the newest KEEP; also for a run of more steps, if it
        `is_branch`."""
        weights = {f"model/{name}": tensor for name, tensor in weights_of(model).items()}
        tensors = gather(weights | _states_of(model, optimizer), self.writes)
        if not self.writes:
            return
        self._remove_surplus(name_of_step(position.step))
        log_until_then = _hash_of_beginning(self.log, position.metrics_bytes).hexdigest()
        content = {**vars(position), "metrics_sha256": log_until_then}
        for folder in (self.branches, self.resume) if is_branch else (self.resume,):  # to the latter no run comes back
            self._publish(folder, position.step, tensors, content)
        for record in self._newest_first()[KEEP:]:
            record.unlink(missing_ok=True)
            record.with_suffix(".safetensors").unlink(missing_ok=True)

    def keep_weights(self, model: nn.Module, step: int) -> None:
        """Publish the weights of this step for `extract`.

        DivergedError when one is not finite: a validation does not read all of them.
        """
        weights = gather(weights_of(model), self.writes)
        if not self.writes:
            return
        constants = dict(model.named_buffers())  # such as a mask of -inf
        if wrong := [name for name, tensor in weights.items() if name not in constants and not tensor.isfinite().all()]:
            raise DivergedError(f"{self.weights}: {wrong[0]} is not finite at step {step}; {DIVERGED}")
        self._publish(self.weights, step, weights, {"step": step})

    def _publish(self, folder: Path, step: int, tensors: Tensors, content: dict[str, Any]) -> None:
        path = folder / f"{name_of_step(step)}.safetensors"
        write_tensors(tensors, path)
        _write_record(path, content)

    def _remove_surplus(self, name: str) -> None:
        """Remove half-written files of killed processes, and checkpoints from this step on: none could be loaded."""
        older = [record.stem for record in self._newest_first() if record.exists() and record.stem < name][:KEEP]
        surplus = (file for file in sorted(self.resume.glob("step-*")) if file.stem not in older)  # .json first
        for file in (*surplus, *self.resume.glob(".*tmp*"), *self.weights.glob(".*tmp*")):
            file.unlink()

    def load_newest(self, model: nn.Module, optimizer: Optimizer) -> Position | None:
        """Fill model and optimizer from the newest intact checkpoint; None when the run is new.

        A damaged checkpoint is skipped with a warning that names it. IntegrityError when none is intact, or when none
        exists although the run was beyond its first: silently starting over could waste days.
        """
        candidates, failures = self._newest_first(), []
        for record in candidates:
            try:
                return self._load(record, model, optimizer)
            except (SymbertError, OSError) as error:
                failures.append(str(error))
                print(f"warning: {line_of(error)}; falling back to the checkpoint before it", file=sys.stderr)
        began = self.resume.is_dir() and len(list(self.weights.glob("step-*.safetensors"))) > 1
        # A kill in the first save leaves tensors without their record.
        is_first = (
            len(candidates) == 1 and candidates[0].with_suffix(".safetensors").is_file() and not candidates[0].exists()
        )
        if began or (candidates and not is_first):
            newest = f" (the newest: {failures[0]})" if failures else ""
            raise IntegrityError(
                f"{self.resume}: no intact checkpoint{newest}; delete {self.resume.parent} and start the run over, or "
                "restore the file from a copy"
            )
        return None

    def _load(self, record: Path, model: nn.Module, optimizer: Optimizer) -> Position:
        position, path = self._verified(record), record.with_suffix(".safetensors")
        own, parameters, weights, states = model.state_dict(), dict(model.named_parameters()), {}, {}
        for place, tensor in load_file(path).items():
            part, _, name = place.partition("/")
            if part == "model":
                weights[name] = part_of(tensor, own.get(name, tensor))
            else:
                states[name] = tensor
        keys = model.load_state_dict(weights, strict=False)
        if wrong := {*keys.missing_keys, *keys.unexpected_keys} - set(model._tied_weights_keys):
            raise IntegrityError(f"{path}: not of this model, by its tensor {min(wrong)}; made by another version?")
        for place, tensor in states.items():
            name, _, key = place.rpartition("/")
            optimizer.state[parameters[name]][key] = part_of(tensor.to(parameters[name].device), parameters[name])
        return position

    def _verified(self, record: Path) -> Position:
        """The position of a checkpoint; IntegrityError where its record, its tensors or the log are damaged."""
        content = read_json(record, RECORD, DAMAGED)
        if content.pop("hash") != hash_of(content):
            raise IntegrityError(f"{record}: its hash does not match: {DAMAGED}")
        verify_sha256(record.with_suffix(".safetensors"), content.pop("sha256"), DAMAGED)
        length, expected = content["metrics_bytes"], content.pop("metrics_sha256")
        if _hash_of_beginning(self.log, length).hexdigest() != expected:
            raise IntegrityError(f"{self.log}: its first {length} bytes are others than at {record.stem}: {DAMAGED}")
        return Position(**content)

    def begin_as(self, other: Path, step: int, settings: PretrainSettings) -> None:
        """Take the state of a step, the log, the kept weights and the sessions until then from the `state` of another
        run, as if this one, which has none, had come that far itself.

        IntegrityError where one is damaged; then the run begins at step 0.
        """
        before, name = CheckpointStore(other), name_of_step(step)
        position = before._verified(before.branches / f"{name}.json")
        for kept in (kept for kept in kept_steps(settings) if kept <= step and weights_file(other, kept).is_file()):
            tensors = kept_weights(other, kept)
            for file in (tensors, tensors.with_suffix(".json")):  # the latter is written last
                copy_file(file, self.weights / file.name)
        with reading(before.log), open(before.log, "rb") as file:
            log = file.read(position.metrics_bytes)
        *_, line = log.splitlines(keepends=True)
        if (last := json.loads(line))["split"] == "validation" and last["step"] % settings.evaluate_every:
            log = log.removesuffix(line)  # of the other run's end alone
        with publish(self.log) as temporary:
            temporary.write_bytes(log)
        copy_file(other / "provenance.json", self.log.with_name("provenance.json"))
        ready = self.resume.with_name(".resume.tmp")
        shutil.rmtree(ready, ignore_errors=True)  # left by a kill
        content = {**vars(position), "metrics_bytes": len(log), "metrics_sha256": hashlib.sha256(log).hexdigest()}
        is_branch = step == branch_step(settings)  # runs of more steps go on from it, too
        for folder in (self.branches, ready) if is_branch else (ready,):
            copy_file(before.branches / f"{name}.safetensors", folder / f"{name}.safetensors")
            _write_record(folder / f"{name}.safetensors", content)
        os.replace(ready, self.resume)
        synchronise(self.resume.parent)

    def remove_kept(self) -> None:
        """Remove what a finished training kept, because the run is trained again from step 0."""
        for folder in (self.weights, self.branches):
            shutil.rmtree(folder, ignore_errors=True)

    def remove_resumable(self) -> None:
        """Remove the checkpoints to resume from of a finished run, as one: a kill leaves all of them, or none.

        Without them the run starts from step 0.
        """
        removed = self.resume.with_name(".resume.tmp")
        shutil.rmtree(removed, ignore_errors=True)  # left by a kill
        os.replace(self.resume, removed)
        shutil.rmtree(removed)

    def _newest_first(self) -> list[Path]:
        """The records of all checkpoints, also those that are missing."""
        return sorted({file.with_suffix(".json") for file in self.resume.glob("step-*")}, reverse=True)


def _write_record(tensors: Path, content: dict[str, Any]) -> None:
    """Publish the record of a checkpoint, once its tensors are there."""
    content = {**content, "sha256": sha256_of(tensors)}
    write_json(tensors.with_suffix(".json"), {**content, "hash": hash_of(content)})


def go_on(folder: Path, run: Pretraining, identity: Identity) -> None:
    """Give a run that has not begun the state of a finished one of fewer steps, where it can go on from that; a line on
    stderr says from which, or why it does not."""
    found = continuation_of(run, finished_runs(beside(folder, run)))
    if found is None or has_begun(folder, found.step or 0):
        return
    why_not = found.why_not
    if found.step is not None:
        try:
            begun = read_struct(found.folder / "state/identity.json", Identity)
            if changes := difference(fields_of(begun), {**fields_of(identity), **_schedule_of(begun)}):
                why_not = changes
            else:
                CheckpointStore(folder / "state").begin_as(found.folder / "state", found.step, run.training)
        except (SymbertError, OSError) as error:
            why_not = line_of(error)
    if why_not:
        print(f"{run}: begins at step 0, not from {found.folder} ({found.steps:,} steps): {why_not}", file=sys.stderr)
    else:
        print(f"{run}: goes on from step {found.step:,} of {found.folder}", file=sys.stderr)


def _schedule_of(identity: Identity) -> dict[str, Any]:
    """What runs of a lineage may differ in."""
    fields = fields_of(identity)
    return {name: fields[name] for name in ("training.steps", "training.schedule_steps", "training.decay_steps")}


def _states_of(model: nn.Module, optimizer: Optimizer) -> Tensors:
    """The tensors that the optimizer keeps, as `optimizer/parameter/state`."""
    return {
        f"optimizer/{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
