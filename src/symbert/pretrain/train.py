"""The training of one run, to be read from top to bottom: start, data, micro-batches, clip, schedule, step, evaluation,
log, checkpoint, stop, publication."""

import importlib
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from symbert.configuration import PretrainSettings, recorded_settings
from symbert.console import Progress
from symbert.draws import mix
from symbert.errors import (
    ConfigError,
    DivergedError,
    IntegrityError,
    MemoryExhaustedError,
    PreemptedError,
    TimeLimitError,
)
from symbert.files import copy_file, hash_of, read_json, sha256_of, single_writer, write_json
from symbert.hosts import HOSTS, refuse_sharding
from symbert.model.anatomy import describe_attention
from symbert.model.bert import initialize
from symbert.model.configuration import configuration_of
from symbert.paths import Run
from symbert.pretrain.checkpoint import DIVERGED, METRICS, CheckpointStore, MetricsLog, Position
from symbert.pretrain.compute import (
    RECIPES,
    Updater,
    attention_dropout,
    attention_kernels,
    autocast,
    build_optimizer,
    compiler_explained,
    facts_of_machine,
    linear_rate,
    recorded_dropout,
    resolve_precision,
)
from symbert.pretrain.distributed import World, alone, distribute, exchange, join_world, peers_explained
from symbert.pretrain.pace import Pace, known_peak
from symbert.pretrain.run import (
    LIMIT,
    Records,
    StopRequest,
    difference,
    read_run,
    refuse_full,
    storage_of,
)
from symbert.pretrain.tasks import Batch, Loss, task_of, verify_manifest, verify_shards
from symbert.provenance import PROJECT, commit_of

LOG_EVERY = 10  # steps between training lines in metrics.jsonl
DESCRIBED = 8  # validation sequences from which the attention of the start is described
LEAST_SCALE = 1.0  # of the loss in fp16: no gradient that is finite needs a smaller one
OUT_OF_MEMORY = ("out of memory", "can't allocate memory")  # in the words of CUDA's and of the CPU's allocator


def train(
    folder: Path,
    stop: StopRequest,
    threads: int,
    micro_batch_size: int | None,
    recompute_activations: bool,
    shard_parameters: bool,
) -> None:
    """Train the run of `folder` from the newest checkpoint to the end, or until `stop`; publish when done.

    The other arguments say how it is computed, whatever its result: they may differ from session to session.
    """
    torch.set_num_threads(threads)
    run, settings, manifest = read_run(folder)
    with join_world() as world, single_writer(folder) if world.leads else nullcontext():
        records = Records(folder / "state", world.leads)
        with records.status_written(), memory_explained(run), compiler_explained(), peers_explained(world.rank):
            identity = identity_of(run, settings, world.device, manifest)
            if world.leads:
                refuse_another_run(folder / "state", identity)
                verify_shards(manifest)
            world.wait()
            trainer = Trainer(run, settings, manifest, world, micro_batch_size, shard_parameters)
            if recompute_activations:
                trainer.model.recompute_activations()
            session = Session(trainer, folder, records, stop)
            if world.leads:
                session.open(threads)
            session.resume()
            session.run()
            if world.leads:
                session.publish(identity, manifest)


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


@dataclass(frozen=True)
class StepResult:
    """An optimizer step: mean loss in nats per target, and the gradient's norm before it is clipped."""

    loss: float
    gradient_norm: float
    learning_rate: float


class Trainer:
    """One run's model, optimizer and data, and the computation of its steps, as one of the processes that train it.

    `micro_batch_size` sequences are computed at a time; neither it nor the number of processes changes the batch. With
    `shard_parameters` each of several processes keeps a part of weights, gradients and the optimizer's state; then all
    processes call every method but `describe_start`.
    """

    def __init__(
        self,
        run: Run,
        settings: PretrainSettings,
        manifest: Path,
        world: World | None = None,
        micro_batch_size: int | None = None,
        shard_parameters: bool = False,
    ) -> None:
        self.run, self.settings, self.world = run, settings, world or alone()
        self.device, self.recipe = self.world.device, RECIPES[settings.recipe]
        self.precision = resolve_precision(settings.precision, self.device)
        if settings.batch_size < self.world.size:
            raise ConfigError(
                f"config: 'pretrain.batch_size' is {settings.batch_size}, fewer than the {self.world.size} "
                "processes; start fewer with --nproc-per-node"
            )
        self.is_sharded = shard_parameters and self.world.size > 1
        if self.is_sharded:
            refuse_sharding(settings.recipe, run.host, self.world.size, settings.batch_size)
        self.micro_batch_size = min(micro_batch_size or settings.batch_size, len(self.world.share(settings.batch_size)))
        self.task = task_of(run, settings, manifest)
        self.model = self._starting_model()
        self.loss = distribute(Loss(self.task, self.model), self.world, self.is_sharded, self.recipe.compiled)
        self.optimizer = build_optimizer(self.model, settings, settings.optimizer)
        self.updater = Updater(self.model, self.optimizer, settings.gradient_clip, self.precision, self.device)
        self.ahead: tuple[int, Batch] | None = None  # the batch of the next step, made while the device computes
        self.flags: list[float] = []  # sums over all processes, in the last step

    def _starting_model(self) -> nn.Module:
        run, dropout = self.run, self.settings.dropout
        config = configuration_of(run.size, run.attention, self.task.rows.vocabulary_size, dropout)
        config.attention_probs_dropout_prob = attention_dropout(self.recipe, dropout, self.device)
        for name, number in self.task.token_ids.items():
            setattr(config, name, number)
        module, name = HOSTS[run.host].model.split(":")
        model = getattr(importlib.import_module(module), name)(config)
        initialize(model, run.pretrain_seed)
        return model

    @property
    def parameters(self) -> int:
        """Number of trainable parameters, tied weights once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def learning_rate(self, step: int) -> float:
        """The rate of step `step` (from 0); where `schedule_steps` is null it ends with the training."""
        settings = self.settings
        end = settings.schedule_steps or settings.steps
        return linear_rate(step, settings.learning_rate, settings.warmup_steps, end)

    def step(self, step: int, flags: Callable[[], Sequence[float]] = tuple) -> StepResult:
        """Take the optimizer step `step` (from 0), on its batch; `self.flags` are then the sums over all processes of
        the flags at its end.

        DivergedError, before any weight changes, when loss or gradient is not finite.
        """
        batch = self._batch(step)
        self.model.train()
        loss = self._fitting(lambda: self._accumulate_gradients(step, batch))
        norm = self.updater.clip()
        self.ahead = (step + 1, self._batch(step + 1))  # before the device is waited for
        loss, norm, self.flags = self.world.step_total(loss, norm, flags())
        result = StepResult(loss, norm, self.learning_rate(step))
        self._refuse_divergence(step, result)
        self.updater.update(result.learning_rate)
        return result

    def _batch(self, step: int) -> Batch:
        return self.ahead[1] if self.ahead and self.ahead[0] == step else self.task.training_batch(step)

    def _accumulate_gradients(self, step: int, batch: Batch) -> Tensor:
        """Add up the gradients of this process's share; returns its part of the batch's mean loss."""
        torch.manual_seed(int(mix(self.run.pretrain_seed, step, self.world.rank) >> 1))
        count, total = batch.count, torch.zeros((), device=self.device)
        parts = [rows for rows in self.world.batches(self.settings.batch_size, self.micro_batch_size) if rows]
        for rows in parts:
            with exchange(self.loss, is_due=rows is parts[-1]):
                loss = self._loss_of(batch.part(rows.start, rows.stop)) / count
                self.updater.backward(loss * self.world.size)  # the exchange takes the mean over processes
            total += loss.detach()
        return total

    def _loss_of(self, batch: Batch) -> Tensor:
        """The summed loss of a batch, in nats."""
        if self.recipe.compiled:
            batch = self.task.of_one_shape(batch)
        with autocast(self.precision, self.device), attention_kernels(self.recipe, self.device):
            return self.loss(**vars(batch.to(self.device)))

    def _fitting(self, compute: Callable[[], Any]) -> Any:
        """The result of `compute`; where memory runs out, again with half as many sequences at a time.

        Several processes compute together, so one of them cannot go back alone: there the error stands.
        """
        while True:
            try:
                return compute()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or self.micro_batch_size == 1 or self.world.size > 1:
                    raise
            self.micro_batch_size = math.ceil(self.micro_batch_size / 2)
            self.optimizer.zero_grad(set_to_none=True)
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            print(
                f"warning: {self.run}: out of memory; goes on with {self.micro_batch_size} sequences at a time",
                file=sys.stderr,
            )

    def _refuse_divergence(self, step: int, result: StepResult) -> None:
        """DivergedError when loss or gradient norm is not finite."""
        if math.isfinite(result.loss):
            if math.isfinite(result.gradient_norm):
                return
            # An infinite gradient may be due to fp16's scale of the loss alone, which halves each time.
            if self.updater.scaler.is_enabled() and self.updater.scaler.get_scale() >= LEAST_SCALE:
                return
        raise DivergedError(
            f"{self.run}: loss {result.loss}, gradient norm {result.gradient_norm} at step {step}; {DIVERGED}"
        )

    def evaluate(self) -> dict[str, float]:
        """The task's measures of the validation sequences; `loss` is the mean over all targets, in nats.

        DivergedError when a number is not finite.
        """
        self.model.eval()
        loss, count, *tally = self.world.total(*self._fitting(self._sums_of_validation))
        measured = {"loss": loss / count, **self.task.measures(loss / count), **self.task.scores(tally)}
        if not all(map(math.isfinite, measured.values())):
            numbers = ", ".join(f"{name} {value}" for name, value in measured.items())
            raise DivergedError(f"{self.run}: validation {numbers}; {DIVERGED}")
        return measured

    @torch.no_grad()
    def _sums_of_validation(self) -> list[float]:
        """Summed loss, number of targets and tally of this process's validation sequences."""
        sums = []
        for share in self.world.batches(self.task.validation_count, self.micro_batch_size):
            rows, loss, count = np.arange(share.start, share.stop), 0.0, 0
            if len(rows) or self.is_sharded:  # the processes of a sharded model compute each layer together
                batch = self.task.validation_batch(rows if len(rows) else np.zeros(1, np.int64))
                loss, count = self._loss_of(batch).item(), batch.count
            with autocast(self.precision, self.device), attention_kernels(self.recipe, self.device):
                tally = self.task.tally(self.model, rows, self.device)
            sums.append([loss, count, *tally] if len(rows) else [0.0, 0, *tally])
        if self.is_sharded:
            self.loss.reshard()  # drops the weights that the last batch gathered
        return [sum(column) for column in zip(*sums, strict=True)]

    def describe_start(self) -> dict[str, list[float]]:
        """Spread of the logits and entropy of the attention, by layer, on the first validation sequences."""
        batch = self.task.validation_batch(np.arange(min(DESCRIBED, self.task.validation_count))).to(self.device)
        model = self._starting_model().to(self.device) if self.is_sharded else self.model  # by this process alone
        return describe_attention(model, *(getattr(batch, name) for name in self.task.layer_inputs))


class Session:
    """Step after step, evaluated, logged and saved as configured, until done or asked to stop."""

    def __init__(self, trainer: Trainer, folder: Path, records: Records, stop: StopRequest) -> None:
        self.trainer, self.folder, self.state = trainer, folder, folder / "state"
        self.records, self.stop = records, stop
        self.settings, self.world = trainer.settings, trainer.world
        self.checkpoints = CheckpointStore(self.state, self.world.leads)
        self.metrics: MetricsLog | None = None  # of the leading process
        self.tracker = tracker_of(folder) if self.world.leads else None
        tokens, flops = self.settings.batch_size * trainer.task.tokens, trainer.task.flops(trainer.model)
        peak = known_peak(facts_of_machine(trainer.device)["device"], trainer.precision)
        self.pace = Pace(tokens, flops, peak and peak * self.world.size, trainer.device)

    def open(self, threads: int) -> None:
        """Refuse a disk that is too small, and record what the session runs on.

        A run whose facts change goes on, but not with the same bits.
        """
        trainer = self.trainer
        refuse_full(storage_of(trainer.parameters, self.settings), self.state)
        if not any(self.state.glob("resume/step-*")):  # sessions of an earlier training, which has no part in this one
            self.records.provenance.unlink(missing_ok=True)
        write_json(self.state / "config.json", trainer.model.config.to_dict())
        facts = {
            **facts_of_machine(trainer.device),
            "commit": commit_of(PROJECT),
            "threads": threads,
            "processes": self.world.size,
            "micro_batch_size": trainer.micro_batch_size,
            **({"shard_parameters": True} if trainer.is_sharded else {}),
            "precision": trainer.precision,
            "recipe": self.settings.recipe,
        }
        self.records.open(facts)

    def resume(self) -> None:
        """Load the newest checkpoint, if there is one, and cut the log back to it."""
        trainer = self.trainer
        position = self.checkpoints.load_newest(trainer.model, trainer.optimizer) or Position(0)
        if position.scaler:
            trainer.updater.scaler.load_state_dict(position.scaler)
        if self.world.total(position.step) != [position.step * self.world.size]:
            raise IntegrityError(
                f"{self.checkpoints.resume}: process {self.world.rank} could load step {position.step}, others another "
                "one; a file there is damaged or not yet seen everywhere: run again"
            )
        self.records.step = position.step
        if self.world.leads:
            self.metrics = MetricsLog(self.state / METRICS, position.metrics_bytes)
            self._record()
            if position.step == 0:
                self.checkpoints.remove_kept()
                self._log("initial", **trainer.describe_start())

    def run(self) -> None:
        """Do the remaining steps."""
        progress = Progress(f"pretrain {self.trainer.run}", self.settings.steps, "steps", self.records.step)
        for step in range(self.records.step, self.settings.steps):
            result = self.trainer.step(step, self._flags)
            self.records.step = step + 1
            self.pace.step()
            self._measure(result)
            self._save()
            if self.world.leads:
                rate, norm = f"learning rate {result.learning_rate:.2e}", f"gradient norm {result.gradient_norm:.2f}"
                progress.update(step + 1, f"loss {result.loss:.3f}, {rate}, {norm}, {self.pace.note()}")

    def _flags(self) -> tuple[float, float]:
        """Whether this process was asked to stop, and by the time limit."""
        return float(self.stop.signal is not None), float(self.stop.signal == LIMIT)

    def _measure(self, result: StepResult) -> None:
        """Log the step, and evaluate, where that is due."""
        step = self.records.step
        if step % LOG_EVERY == 0:
            norm = result.gradient_norm if math.isfinite(result.gradient_norm) else None
            self._log("train", **{**vars(result), "gradient_norm": norm})
        if step % self.settings.evaluate_every == 0 or step == self.settings.steps:
            self._log("validation", **self.trainer.evaluate())
            self.pace.restart()

    def _log(self, split: str, **values: Any) -> None:
        """Log numbers of the present step, in the leading process."""
        if self.metrics:
            self.metrics.write(split=split, step=self.records.step, **values)
        if self.tracker:
            self.tracker(split, self.records.step, values)

    def _save(self) -> None:
        """Save a checkpoint where that is due or a process was asked to stop; then all stop after the same step."""
        step, trainer = self.records.step, self.trainer
        is_last = step == self.settings.steps
        is_due = is_last or step % self.settings.save_every == 0
        asked, near_limit = trainer.flags
        if is_due:  # first: a run that resumes from the checkpoint never comes back to this step
            self.checkpoints.keep_weights(trainer.model, step)
        if is_due or asked:
            position = Position(step)
            if self.world.leads:
                logged, scaler = self.metrics.flush(), trainer.updater.scaler.state_dict()
                self._record()
                position = Position(step, logged, scaler, self.metrics.sha256)
            self.checkpoints.save(trainer.model, trainer.optimizer, position)
            self.pace.restart()
        if asked and not is_last:
            self.world.wait()
            why = self.stop.signal or "another process was asked to stop"
            kind = TimeLimitError if near_limit == asked else PreemptedError
            raise kind(f"{trainer.run}: {why}: saved at step {step}; run the same command to go on")

    def _record(self) -> None:
        """Record how far this session came, and how fast."""
        self.records.update(micro_batch_size=self.trainer.micro_batch_size, **self.pace.summary())

    def publish(self, identity: dict[str, Any], manifest: Path) -> None:
        """Write the declared outputs, and remove the checkpoints to resume from."""
        trainer, run, settings = self.trainer, self.trainer.run, self.settings
        packed = read_json(manifest, {"vocabulary_sha256": str})
        dropout = recorded_dropout(trainer.recipe, settings.dropout, trainer.device)
        summary = {
            "steps": settings.steps,
            **{f"validation_{name}": value for name, value in self.metrics.last_validation().items()},
            **{f"{name}_signature": value for name, value in trainer.task.signatures.items()},
            "parameters": trainer.parameters,
            "corpus_hash": identity["corpus_hash"],
            "vocabulary_sha256": packed["vocabulary_sha256"],
            **({"stand_in": True} if packed.get("stand_in") else {}),  # of a parallel text
            "settings_hash": hash_of(identity),
            "settings": {name: identity[name] for name in (*run.model, *recorded_settings(settings), *dropout)},
        }
        copy_file(self.state / METRICS, self.folder / METRICS)
        summary["metrics_sha256"] = sha256_of(self.folder / METRICS)
        sessions = self.records.sessions
        longest = max(sessions, key=lambda session: session.get("steps_timed", 0))
        commits = list(dict.fromkeys(session["commit"] for session in sessions))
        timing = {**run.facts, **longest, "sessions": len(sessions), "commits": commits}
        write_json(self.folder / "timing.json", timing)
        write_json(self.folder / "done.json", {**run.facts, **summary})
        self.checkpoints.remove_resumable()


def tracker_of(folder: Path) -> Callable[[str, int, dict[str, Any]], None] | None:
    """A tracker that the environment names (SYMBERT_TRACKER=module:function), opened for a run's folder: it is called
    with the split, the step and the values of each line of metrics.jsonl (docs/pretraining.md has one)."""
    if not (path := os.environ.get("SYMBERT_TRACKER")):
        return None
    module, _, function = path.partition(":")
    try:
        return getattr(importlib.import_module(module), function)(folder)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"SYMBERT_TRACKER is {path}: {error}; write module:function, or unset it") from None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator of a GPU or a CPU refused."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


@contextmanager
def memory_explained(task: Any) -> Iterator[None]:
    """MemoryExhaustedError in the place of any allocator's error in a task."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryExhaustedError(
            f"{task}: out of memory; lower 'pretrain.micro_batch_size' or set 'pretrain.recompute_activations: true' "
            "(the batch stays the same); the last checkpoint is kept"
        ) from None
