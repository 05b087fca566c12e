"""A session of a run: the training loop, and what surrounds it so that nothing is mixed, lost, or published twice."""

import math
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from symbert.configuration import PretrainSettings, recorded_settings
from symbert.console import Progress
from symbert.errors import ConfigError, IntegrityError, PreemptedError, TimeLimitError
from symbert.files import copy_file, hash_of, read_json, sha256_of, single_writer, write_json
from symbert.paths import Run
from symbert.pretrain.checkpoint import CheckpointStore, Position
from symbert.pretrain.compute import RECIPES, compiler_explained, facts_of_machine, recorded_dropout, resolve_precision
from symbert.pretrain.data import verify_manifest, verify_shards
from symbert.pretrain.log import METRICS, MetricsLog
from symbert.pretrain.pace import Pace, known_peak
from symbert.pretrain.record import close_session, open_session, read_sessions, status_written, write_running
from symbert.pretrain.run import difference, read_run
from symbert.pretrain.stop import LIMIT, StopRequest
from symbert.pretrain.storage import refuse_full, storage_of
from symbert.pretrain.train import StepResult, Trainer, memory_explained
from symbert.pretrain.world import join_world, peers_explained
from symbert.provenance import PROJECT, commit_of

LOG_EVERY = 10  # steps between training lines in metrics.jsonl


@dataclass(frozen=True)
class SessionOptions:
    """How a run is computed, whatever its result: free to differ from session to session."""

    threads: int
    micro_batch_size: int | None = None  # sequences that one device computes at a time; None: its whole share
    recompute_activations: bool = False
    shard_parameters: bool = False


@dataclass
class StepCounter:
    """How many steps of a run are completed."""

    step: int = 0


def hold_session(folder: Path, options: SessionOptions, stop: StopRequest) -> None:
    """Train the run of `folder` from the newest checkpoint to the end, or until `stop`; publish when done."""
    torch.set_num_threads(options.threads)
    run, settings, manifest = read_run(folder)
    state = folder / "state"
    with join_world() as world, single_writer(folder) if world.leads else nullcontext():
        counter = StepCounter()
        with (
            status_written(state / "status.json", lambda: counter.step, world.leads),
            memory_explained(run, options.micro_batch_size or settings.batch_size),
            compiler_explained(),
            peers_explained(world.rank),
        ):
            identity = identity_of(run, settings, world.device, manifest)
            if world.leads:
                refuse_another_run(state, identity)
                verify_shards(manifest)
            world.wait()
            size, shard = options.micro_batch_size, options.shard_parameters
            trainer = Trainer(run, settings, manifest, state, world, size, shard)
            if options.recompute_activations:
                trainer.model.recompute_activations()
            if world.leads:
                _open_records(trainer, options)
            loop = Loop(trainer, stop, counter)
            loop.run()
            if world.leads:
                _publish(trainer, identity, loop.metrics.last_validation(), manifest, folder)
                loop.checkpoints.remove_resumable()


def identity_of(run: Run, settings: PretrainSettings, device: torch.device, manifest: Path) -> dict[str, Any]:
    """All facts that determine a run's result, those that follow from the device and the rows too.

    IntegrityError when the manifest was changed since its hash was made.
    """
    return {
        **run.facts,
        **run.model,
        **recorded_settings(settings),
        "precision": resolve_precision(settings.precision, device),
        **recorded_dropout(RECIPES[settings.recipe], settings.dropout, device),
        "corpus_hash": verify_manifest(manifest),
    }


def refuse_another_run(state: Path, identity: dict[str, Any]) -> None:
    """Note the identity of the run in `state`. ConfigError where another one began: its device decided on another
    precision or dropout, or its corpus had other rows; IntegrityError where that is not known."""
    record, remedy = state / "identity.json", f"move {state} away to train the run again from its start"
    if not record.is_file():
        if any(state.glob("*/step-*")):
            raise IntegrityError(f"{record}: missing, so it is not known how the run beside it began; {remedy}")
        write_json(record, identity)
    elif (begun := read_json(record, dict, remedy)) != identity:
        raise ConfigError(f"{record}: the run began otherwise ({difference(begun, identity)}); {remedy}")


def _open_records(trainer: Trainer, options: SessionOptions) -> None:
    """Refuse a disk that is too small, and record what the session runs on.

    A run whose facts change goes on, but not with the same bits.
    """
    state = trainer.state
    refuse_full(storage_of(trainer.parameters, trainer.settings), state)
    if not any(state.glob("resume/step-*")):  # sessions of an earlier training, which has no part in this one
        (state / "provenance.json").unlink(missing_ok=True)
    write_json(state / "config.json", trainer.model.config.to_dict())
    facts = {
        **facts_of_machine(trainer.device),
        "commit": commit_of(PROJECT),
        "threads": options.threads,
        "processes": trainer.world.size,
        "micro_batch_size": trainer.micro_batch_size,
        **({"shard_parameters": True} if trainer.is_sharded else {}),
        "precision": trainer.precision,
        "recipe": trainer.settings.recipe,
    }
    open_session(state / "provenance.json", facts)


class Loop:
    """Step after step, evaluated, logged and saved as configured, until done or asked to stop."""

    def __init__(self, trainer: Trainer, stop: StopRequest, counter: StepCounter) -> None:
        self.trainer, self.stop, self.counter = trainer, stop, counter
        self.settings, self.world, self.state = trainer.settings, trainer.world, trainer.state
        self.checkpoints = CheckpointStore(self.state, self.world.leads)
        self.metrics: MetricsLog | None = None  # of the leading process
        tokens, flops = self.settings.batch_size * trainer.objective.tokens, trainer.objective.flops(trainer.model)
        peak = known_peak(facts_of_machine(trainer.device)["device"], trainer.precision)
        self.pace = Pace(tokens, flops, peak and peak * self.world.size, trainer.device)
        trainer.tell = self._tell

    def run(self) -> None:
        """Do the remaining steps."""
        self._resume()
        progress = Progress(f"pretrain {self.trainer.run}", self.settings.steps, "steps", self.counter.step)
        for step in range(self.counter.step, self.settings.steps):
            result = self.trainer.step(step)
            self.counter.step = step + 1
            self.pace.step()
            self._measure(result)
            self._save()
            if self.world.leads:
                rate, norm = f"learning rate {result.learning_rate:.2e}", f"gradient norm {result.gradient_norm:.2f}"
                progress.update(self.counter.step, f"loss {result.loss:.3f}, {rate}, {norm}, {self.pace.note()}")

    def _resume(self) -> None:
        """Load the newest checkpoint, if there is one, and cut the log back to it."""
        trainer = self.trainer
        position = self.checkpoints.load_newest(trainer.model, trainer.optimizer) or Position(0, 0, {})
        if position.scaler:
            trainer.updater.scaler.load_state_dict(position.scaler)
        if self.world.total(position.step) != [position.step * self.world.size]:
            raise IntegrityError(
                f"{self.checkpoints.resume}: process {self.world.rank} could load step {position.step}, others another "
                "one; a file there is damaged or not yet seen everywhere: run again"
            )
        self.counter.step = position.step
        if not self.world.leads:
            return
        self.metrics = MetricsLog(self.state / METRICS, position.metrics_bytes)
        self._record_pace()
        if position.step == 0:
            self.checkpoints.remove_kept()
            self._log("initial", **trainer.describe_start())

    def _measure(self, result: StepResult) -> None:
        """Log the step, and evaluate, where that is due."""
        step = self.counter.step
        if step % LOG_EVERY == 0:
            norm = result.gradient_norm if math.isfinite(result.gradient_norm) else None
            self._log("train", **{**vars(result), "gradient_norm": norm})
        if step % self.settings.evaluate_every == 0 or step == self.settings.steps:
            self._log("validation", **self.trainer.evaluate())
            self.pace.restart()

    def _log(self, split: str, **values: Any) -> None:
        """Log numbers of the present step, in the leading process."""
        if self.metrics:
            self.metrics.write(split=split, step=self.counter.step, **values)

    def _tell(self) -> tuple[float, float]:
        """Whether this process was asked to stop, and by the time limit."""
        return float(self.stop.signal is not None), float(self.stop.signal == LIMIT)

    def _save(self) -> None:
        """Save a checkpoint where that is due or a process was asked to stop; then all stop after the same step."""
        step = self.counter.step
        is_last = step == self.settings.steps
        is_due = is_last or step % self.settings.save_every == 0
        asked, near_limit = self.trainer.told
        if is_due:  # first: a run that resumes from the checkpoint never comes back to this step
            self.checkpoints.keep_weights(self.trainer.model, step)
        if is_due or asked:
            position = self._record() if self.world.leads else Position(step, 0, {})
            self.checkpoints.save(self.trainer.model, self.trainer.optimizer, position)
            self.pace.restart()
        if asked and not is_last:
            self.world.wait()
            why = self.stop.signal or "another process was asked to stop"
            kind = TimeLimitError if near_limit == asked else PreemptedError
            raise kind(f"{self.trainer.run}: {why}: saved at step {step}; run the same command to go on")

    def _record(self) -> Position:
        """Put logs, and how far this session came, on the disk; returns where the run is."""
        logged, scaler = self.metrics.flush(), self.trainer.updater.scaler.state_dict()
        self._record_pace()
        return Position(self.counter.step, logged, scaler, self.metrics.sha256)

    def _record_pace(self) -> None:
        """Record how far this session came, and how fast."""
        close_session(self.state / "provenance.json", step=self.counter.step, **self.pace.summary())
        write_running(self.state / "status.json", self.counter.step)


def _publish(
    trainer: Trainer, identity: dict[str, Any], validation: dict[str, float], manifest: Path, folder: Path
) -> None:
    """Write the declared outputs."""
    run, settings = trainer.run, trainer.settings
    sessions = read_sessions(trainer.state / "provenance.json")
    longest = max(sessions, key=lambda session: session.get("steps_timed", 0))
    dropout = recorded_dropout(trainer.recipe, settings.dropout, trainer.device)
    summary = {
        "steps": settings.steps,
        **{f"validation_{name}": value for name, value in validation.items()},
        **{f"{name}_signature": value for name, value in trainer.objective.signatures.items()},
        "parameters": trainer.parameters,
        **_corpus_of(identity, manifest),
        "settings_hash": hash_of(identity),
        "settings": {name: identity[name] for name in (*run.model, *recorded_settings(settings), *dropout)},
    }
    copy_file(trainer.state / METRICS, folder / METRICS)
    summary["metrics_sha256"] = sha256_of(folder / METRICS)
    commits = list(dict.fromkeys(session["commit"] for session in sessions))
    write_json(folder / "timing.json", {**run.facts, **longest, "sessions": len(sessions), "commits": commits})
    write_json(folder / "done.json", {**run.facts, **summary})


def _corpus_of(identity: dict[str, Any], manifest: Path) -> dict[str, Any]:
    """What says of which corpus or parallel text a run is."""
    packed = read_json(manifest, {"vocabulary_sha256": str})
    stand_in = {"stand_in": True} if packed.get("stand_in") else {}  # of a parallel text
    return {"corpus_hash": identity["corpus_hash"], "vocabulary_sha256": packed["vocabulary_sha256"], **stand_in}
