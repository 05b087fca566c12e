"""The training of one run, to be read from top to bottom: start, data, micro-batches, clip, schedule, step, evaluation,
log, checkpoint, stop, publication. What determines it is the step `Pretraining` in run.py, which needs no torch."""

import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from symbert import errors
from symbert.architectures import ARCHITECTURES
from symbert.console import Progress
from symbert.draws import mix
from symbert.errors import ConfigError, DivergedError, IntegrityError
from symbert.files import single_writer, write_json
from symbert.model.anatomy import describe_attention, logit_step
from symbert.model.attention import SelfAttention
from symbert.model.bert import attention_parameters
from symbert.model.check import refuse_untrue
from symbert.pretrain import compute
from symbert.pretrain.checkpoint import DIVERGED, CheckpointStore, MetricsLog, Position, go_on
from symbert.pretrain.compute import World, distribute, exchange, join_world
from symbert.pretrain.graphs import MicroSteps, recorder_on
from symbert.pretrain.pace import Pace, known_peak
from symbert.pretrain.run import (
    METRICS,
    Initial,
    Pretraining,
    Records,
    SessionFacts,
    StopRequest,
    Validated,
    branch_step,
    now,
    read_run,
)
from symbert.pretrain.tasks import Batch, Loss, count_targets, move, verify_manifest, verify_shards
from symbert.provenance import PROJECT, commit_of

LOG_EVERY = 10  # steps between training lines in metrics.jsonl
DESCRIBED = 8  # validation sequences from which the attention of the untrained model is described
LEAST_SCALE = 1.0  # of the loss in fp16: no gradient that is finite needs a smaller one


def train(
    folder: Path,
    stop: StopRequest,
    threads: int,
    micro_batch_size: int | None,
    shard_parameters: bool,
) -> None:
    """Train the run of `folder` from the newest checkpoint to the end, or until `stop`; publish when done.

    The other arguments say how it is computed, whatever its result: they may differ from session to session.
    """
    torch.set_num_threads(threads)
    run = read_run(folder)
    with compute.explained(run), join_world() as world, single_writer(folder) if world.leads else nullcontext():
        records = Records(folder / "state", world.leads)
        with records.status_written(), compute.explained(run):
            if world.leads:
                claim(folder, run, records, world.device)
            world.wait()
            session = Session(Trainer(run, world, micro_batch_size, shard_parameters), records, stop)
            session.open(threads)
            session.run()
            if world.leads:
                session.publish()


def claim(
    folder: Path,
    run: Pretraining,
    records: Records,
    device: torch.device,
    verify: Callable[[Path], None] = verify_shards,
) -> None:
    """Note what a run follows from, `verify` its rows, and give it the state of a finished run that it can go on
    from."""
    precision = compute.resolve_precision(run.training.precision, device)
    identity = records.claim(run, precision, verify_manifest(run.manifest))
    verify(run.manifest)
    go_on(folder, run, identity)


@dataclass(frozen=True)
class StepResult:
    """An optimizer step: mean loss in nats per target, and the gradient's norm before it is clipped."""

    loss: float
    gradient_norm: float
    learning_rate: float


@dataclass(frozen=True)
class Started:
    """An optimizer step (from 0) that the device was given, and its loss, gradient norm and flags on their way."""

    step: int
    learning_rate: float
    reading: compute.Reading

    @property
    def result(self) -> StepResult:
        """Its numbers, once the device has computed them."""
        loss, norm, *_ = self.reading.numbers()
        return StepResult(loss, norm, self.learning_rate)

    @property
    def flags(self) -> list[float]:
        """The sums of its flags, likewise."""
        return self.reading.numbers()[2:]


class Trained(msgspec.Struct, kw_only=True, tag_field="split", tag="train"):
    """A line of metrics.jsonl after a step of training."""

    step: int
    loss: float
    gradient_norm: float | None  # before it is clipped; None: not finite, in fp16
    learning_rate: float


class Trainer:
    """One run's model, optimizer and data, and the computation of its steps, as one of the processes that train it.

    `micro_batch_size` sequences are computed at a time; neither it nor the number of processes changes the batch. With
    `shard_parameters` each of several processes keeps a part of weights, gradients and the optimizer's state; then all
    processes call every method but `describe_init`.
    """

    def __init__(
        self,
        run: Pretraining,
        world: World | None = None,
        micro_batch_size: int | None = None,
        shard_parameters: bool = False,
    ) -> None:
        settings = run.training
        self.run, self.settings, self.world = run, settings, world or World(0, 1, compute.pick_device())
        self.device, self.is_compiled = self.world.device, settings.compile
        self.precision = compute.resolve_precision(settings.precision, self.device)
        if settings.batch_size < self.world.size:
            raise ConfigError(
                f"config: 'pretrain.batch_size' is {settings.batch_size}, fewer than the {self.world.size} "
                "processes; start fewer with --nproc-per-node"
            )
        self.is_sharded = shard_parameters and self.world.size > 1
        if self.is_sharded:
            fault = "config: 'pretrain.shard_parameters' is true, but"
            if self.is_compiled:
                raise ConfigError(
                    f"{fault} 'compile' is true, which makes one graph of the whole model; set compile=false"
                )
            if settings.batch_size % self.world.size:
                raise ConfigError(
                    f"{fault} 'pretrain.batch_size' is {settings.batch_size}, no multiple of the {self.world.size} "
                    "processes"
                )
        self.micro_batch_size = min(micro_batch_size or settings.batch_size, len(self.world.share(settings.batch_size)))
        self.task = ARCHITECTURES[run.architecture].task_class(run)
        self.model = self.task.starting_model()
        self.loss = distribute(Loss(self.task, self.model), self.world, self.is_sharded, self.is_compiled)
        self.optimizer = compute.build_optimizer(self.model, settings)
        self.updater = compute.Updater(self.model, self.optimizer, settings.gradient_clip, self.precision, self.device)
        self.micro_steps = self._recorded()
        is_beside = compute.computes_beside(self.device)
        self.batch_of: Callable[[int], Batch] = (
            compute.Ahead(self.task.training_batch) if is_beside else self.task.training_batch
        )
        self.started: deque[Started] = deque()  # steps whose numbers were not read yet
        self.flags: list[float] = []  # sums over all processes, in the last step that was read
        # Steps to start before the numbers of one are read; in fp16 these decide about the next scale of the loss.
        self.ahead = int(is_beside and not (self.is_sharded or self.updater.scaler.is_enabled()))
        self.diverged = torch.zeros((), device=self.device)  # 1: no weight changes any more
        if self.ahead:
            self.optimizer.found_inf = self.diverged  # by this name AdamW's kernel knows what GradScaler found

    @property
    def parameters(self) -> int:
        """Number of trainable parameters, tied weights once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def learning_rate(self, step: int) -> float:
        """The rate of step `step` (from 0); where `schedule_steps` is null it ends with the training."""
        settings = self.settings
        end, decay = settings.schedule_steps or settings.steps, settings.decay_steps
        return compute.linear_rate(step, settings.learning_rate, settings.warmup_steps, end, decay)

    def steps(
        self,
        numbers: Iterable[int],
        flags: Callable[[], Sequence[float]] = tuple,
        is_awaited: Callable[[int], bool] = lambda step: False,
    ) -> Iterator[StepResult]:
        """Take the optimizer steps of these numbers (from 0), and give their results in turn; `self.flags` are then the
        sums over all processes of the flags at the end of that step.

        A GPU is given the next step before the numbers of one are read, so `self.started` may have one that already
        changed the weights; none does after a step that `is_awaited`, which is asked again after each result.
        DivergedError when loss or gradient is not finite: neither that step nor a later one changes any weight.
        """
        for number in numbers:
            self.started.append(self.start(number, flags))
            while self.started and (len(self.started) > self.ahead or is_awaited(number)):
                yield self._finish(self.started.popleft())
        while self.started:
            yield self._finish(self.started.popleft())

    def step(self, step: int) -> StepResult:
        """The result of the optimizer step `step` (from 0), by itself."""
        (result,) = self.steps([step])
        return result

    def start(self, step: int, flags: Callable[[], Sequence[float]]) -> Started:
        """Give the device the optimizer step `step` (from 0); `flags` are asked at its end."""
        batch, rate = self.batch_of(step), self.learning_rate(step)
        self.model.train()
        loss = self.fitting(lambda: self._accumulate_gradients(step, batch))
        norm = self.updater.clip()
        numbers = self.world.step_total(loss, norm, flags())
        started = Started(step, rate, compute.Reading(numbers))
        if self.ahead:
            self.diverged.clamp_(min=1 - numbers[:2].isfinite().all().float())
        else:
            self.refuse_divergence(step, started.result)
        self.updater.update(rate)
        return started

    def _finish(self, started: Started) -> StepResult:
        """The result of a step."""
        if self.ahead:
            self.refuse_divergence(started.step, started.result)
        self.flags = started.flags
        return started.result

    def _accumulate_gradients(self, step: int, batch: Batch) -> Tensor:
        """Add up the gradients of this process's share; returns its part of the batch's mean loss. Both are zero where
        no token of the batch is hidden."""
        torch.manual_seed(int(mix(self.run.pretrain_seed, step, self.world.rank) >> 1))
        count, total = max(count_targets(batch), 1), torch.zeros((), device=self.device)
        parts = [rows for rows in self.world.batches(self.settings.batch_size, self.micro_batch_size) if rows]
        if self.micro_steps:
            self.micro_steps.begin()
        for rows in parts:
            part = {name: tensor[rows.start : rows.stop] for name, tensor in batch.items()}
            inputs = self.task.inputs(part, self.is_compiled)
            with exchange(self.loss, is_due=rows is parts[-1]):
                if self.micro_steps:
                    total += self.micro_steps(inputs, count)
                else:
                    total += self._micro_step(move(inputs, self.device), count)
        return total

    def _micro_step(self, inputs: Batch, count: int | Tensor) -> Tensor:
        """Add the gradients of the loss of some sequences on the device, divided by `count`; returns that loss."""
        loss = self._loss_of(inputs) / count
        self.updater.backward(loss * self.world.size)  # the exchange takes the mean over processes
        return loss.detach()

    def _recorded(self) -> MicroSteps | None:
        """Micro-steps as graphs, where one process computes a compiled model: then few shapes of inputs are met."""
        if not self.is_compiled or self.world.size > 1 or self.updater.scaler.is_enabled():
            return None
        recorder = recorder_on(self.device)
        return recorder and MicroSteps(self._micro_step, self.model, recorder, self.device)

    def _loss_of(self, inputs: Batch) -> Tensor:
        """The summed loss of inputs on the device, in nats."""
        # A rounded weight that was kept from before would be recorded as a constant.
        with compute.autocast(self.precision, self.device, cache_enabled=not self.micro_steps):
            return self.loss(**inputs)

    def fitting(self, work: Callable[[], Any]) -> Any:
        """The result of `work`; where memory runs out, again with half as many sequences at a time.

        Several processes compute together, so one of them cannot go back alone: there the error stands.
        """
        while True:
            try:
                with compute.explained(self.run):
                    return work()
            except errors.MemoryExhaustedError:
                if self.micro_batch_size == 1 or self.world.size > 1:
                    raise
            self.micro_batch_size = math.ceil(self.micro_batch_size / 2)
            self.optimizer.zero_grad(set_to_none=True)
            self.micro_steps = self._recorded()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            fact = f"out of memory; goes on with {self.micro_batch_size} sequences at a time"
            print(f"warning: {self.run}: {fact}", file=sys.stderr)

    def refuse_divergence(self, step: int, result: StepResult) -> None:
        """DivergedError when the loss or the gradient norm of a step (from 0) is not finite."""
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
        return self.measured(*self.world.total(*self.fitting(self._sums_of_validation)))

    def measured(self, loss: float, count: float) -> dict[str, float]:
        """The measures by the summed loss and the number of targets of the validation sequences; DivergedError."""
        measured = {"loss": loss / count, **self.task.measures(loss / count)}
        if not all(map(math.isfinite, measured.values())):
            numbers = ", ".join(f"{name} {value}" for name, value in measured.items())
            raise DivergedError(f"{self.run}: validation {numbers}; {DIVERGED}")
        return measured

    @torch.no_grad()
    def _sums_of_validation(self) -> list[float]:
        """Summed loss and number of targets of this process's validation sequences."""
        sums = []
        for share in self.world.batches(len(self.task.validation), self.micro_batch_size):
            rows, loss, count = np.arange(share.start, share.stop), 0.0, 0
            if len(rows) or self.is_sharded:  # the processes of a sharded model compute each layer together
                batch = self.task.validation_batch(rows if len(rows) else np.zeros(1, np.int64))
                inputs = move(self.task.inputs(batch, self.is_compiled), self.device)
                loss, count = self._loss_of(inputs).item(), count_targets(batch)
            sums.append([loss, count] if len(rows) else [0.0, 0])
        if self.is_sharded:
            self.loss.reshard()  # drops the weights that the last batch gathered
        return [sum(column) for column in zip(*sums, strict=True)]

    def describe_init(self) -> dict[str, list[float]]:
        """Spread of the logits, how far a step moves them, and entropy of the attention, by layer, on the first
        validation sequences."""
        batch = self.task.validation_batch(np.arange(min(DESCRIBED, len(self.task.validation))))
        model = self.task.starting_model().to(self.device).eval()  # whole in this process
        ids = move(batch, self.device)["input_ids"]
        described = describe_attention(model, ids)
        return described | {"logit_step": logit_step(model, ids, lambda: self._step_at_peak_rate(model, batch))}

    def _step_at_peak_rate(self, model: nn.Module, batch: Batch) -> None:
        """Move a copy's operators by the first optimizer step on a batch, in fp32 and without dropout. The rate is the
        peak, as in the run's first step warm-up has a rate of 0."""
        loss, count = Loss(self.task, model), max(count_targets(batch), 1)
        for row in range(len(batch["targets"])):  # one at a time: no more memory than the smallest micro-batch
            part = {name: tensor[row : row + 1] for name, tensor in batch.items()}
            (loss(**move(self.task.inputs(part, False), self.device)) / count).backward()
        sites = nn.ModuleList(module for module in model.modules() if isinstance(module, SelfAttention))
        optimizer = compute.build_optimizer(sites, self.settings)
        updater = compute.Updater(model, optimizer, self.settings.gradient_clip, "fp32", self.device)
        updater.clip()
        updater.update(self.settings.learning_rate)


class Session:
    """Step after step, evaluated, logged and saved as configured, until done or asked to stop."""

    def __init__(self, trainer: Trainer, records: Records, stop: StopRequest) -> None:
        self.trainer, self.records, self.stop = trainer, records, stop
        self.settings, self.world, self.state = trainer.settings, trainer.world, records.state
        self.checkpoints = CheckpointStore(self.state, self.world.leads)
        self.metrics: MetricsLog | None = None  # of the leading process
        self.together = 1  # runs that this process trains as one model
        self.machine = compute.describe_machine(trainer.device)
        tokens, flops = self.settings.batch_size * trainer.task.tokens, trainer.task.flops(trainer.model)
        peak = known_peak(self.machine["device"], trainer.precision)
        self.pace = Pace(tokens, flops, peak and peak * self.world.size, trainer.device)

    @property
    def measured(self) -> dict[str, Any]:
        """The facts of a finished run that were measured."""
        return {
            "steps": self.settings.steps,
            **{f"validation_{name}": value for name, value in self.metrics.last_validation().items()},
            "parameters": self.trainer.parameters,
            "attention_parameters": attention_parameters(self.trainer.model),
        }

    def open(self, threads: int) -> None:
        """Record the machine, load the newest checkpoint, if there is one, and cut the log back to it."""
        trainer = self.trainer
        if self.world.leads:
            write_json(self.state / "config.json", trainer.model.config.to_dict())
            session = SessionFacts(
                **self.machine,
                commit=commit_of(PROJECT),
                threads=threads,
                processes=self.world.size,
                micro_batch_size=trainer.micro_batch_size,
                shard_parameters=trainer.is_sharded,
                together=self.together,
                precision=trainer.precision,
                compile=self.settings.compile,
                started=now(),
            )
            self.records.open(session)
        position = self.checkpoints.load_newest(trainer.model, trainer.optimizer) or Position(0)
        if position.scaler:
            trainer.updater.scaler.load_state_dict(position.scaler)
        if self.world.total(position.step) != [position.step * self.world.size]:
            raise IntegrityError(
                f"{self.checkpoints.resume}: processes loaded different steps; a file there is damaged or not yet "
                "seen everywhere: run again"
            )
        self.records.step = position.step
        if self.world.leads:
            self.metrics = MetricsLog(self.state / METRICS, position.metrics_bytes)
            self._record()
            if position.step == 0:
                self.checkpoints.remove_kept()
                refuse_untrue(trainer.run.operator, trainer.run.shape, trainer.device)
                self._log(Initial, **trainer.describe_init())

    def run(self) -> None:
        """Do the remaining steps."""
        progress = Progress(f"pretrain {self.trainer.run}", self.settings.steps, "steps", self.records.step)
        remaining = range(self.records.step, self.settings.steps)
        for result in self.trainer.steps(remaining, self.stop.flags, self._is_awaited):
            self.complete(result, self.trainer.evaluate)
            if self.world.leads:
                rate, norm = f"learning rate {result.learning_rate:.2e}", f"gradient norm {result.gradient_norm:.2f}"
                said = f"loss {result.loss:.3f}, {rate}, {norm}, {self.pace.note()}"
                progress.update(self.records.step, said)

    def publish(self) -> None:
        """Write the declared outputs of a run that is done, and drop the checkpoints to resume from."""
        self.records.publish(self.trainer.run, self.measured)
        self.checkpoints.remove_resumable()

    def is_evaluated(self, step: int) -> bool:
        """Whether the model is evaluated after so many steps."""
        return step % self.settings.evaluate_every == 0 or step == self.settings.steps

    def complete(self, result: StepResult, evaluate: Callable[[], dict[str, float]]) -> None:
        """Log a step that was taken and, unless the weights are those of a later one, evaluate and save where that is
        due, and stop where that is asked."""
        self.records.step = step = self.records.step + 1
        self.pace.step(self.together)
        if step % LOG_EVERY == 0:
            norm = result.gradient_norm if math.isfinite(result.gradient_norm) else None
            self._log(Trained, **{**vars(result), "gradient_norm": norm})
        if self.trainer.started:
            return
        if self.is_evaluated(step):
            self._log(Validated, **evaluate())
            self.pace.restart()
        self._save()

    def _is_saved(self, step: int) -> bool:
        return step % self.settings.save_every == 0 or step == self.settings.steps

    def _is_awaited(self, number: int) -> bool:
        """Whether the weights of the step of that number (from 0) are evaluated or saved, or a process was asked to
        stop."""
        step, (asked, _) = number + 1, self.trainer.flags or (0.0, 0.0)
        return bool(asked) or self.is_evaluated(step) or self._is_saved(step) or step == branch_step(self.settings)

    def _log(self, kind: type[Initial | Trained | Validated], **values: Any) -> None:
        """Log numbers of the present step, in the leading process."""
        if self.metrics:
            self.metrics.write(kind(step=self.records.step, **values))

    def _save(self) -> None:
        """Save a checkpoint where that is due or a process was asked to stop; then all stop after the same step."""
        step, trainer = self.records.step, self.trainer
        is_due, is_branch = self._is_saved(step), step == branch_step(self.settings)
        asked, near_limit = trainer.flags
        if is_due:  # first: a run that resumes from the checkpoint never comes back to this step
            self.checkpoints.keep_weights(trainer.model, step)
        if is_due or is_branch or asked:
            logged = 0
            if self.metrics:
                logged = self.metrics.flush()
                self._record()
            position = Position(step, logged, trainer.updater.scaler.state_dict())
            self.checkpoints.save(trainer.model, trainer.optimizer, position, is_branch)
            self.pace.restart()
        if asked and step < self.settings.steps:
            self.world.wait()
            why = self.stop.signal or "another process was asked to stop"
            kind = errors.TimeLimitError if near_limit == asked else errors.PreemptedError
            raise kind(f"{trainer.run}: {why}: saved at step {step}; run the same command to go on")

    def _record(self) -> None:
        """Record how far this session came, and how fast."""
        self.records.update(micro_batch_size=self.trainer.micro_batch_size, **self.pace.summary())
