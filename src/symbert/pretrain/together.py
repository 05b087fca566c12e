"""Many small runs trained by one process as one model: the weights of each are a row of one tensor, and every kernel
computes all of them. On a GPU a small model waits for the launches of its kernels; here all runs share them.

Each run keeps the batches, rate, clip, evaluations, files and end that it has alone (`symbert.pretrain.train`), and may
begin alone and go on together, or the reverse; only the order of sums differs. The models are one by `torch.func`:
`functional_call` with the weights of a run, and `vmap` over the runs.
"""

import gc
import sys
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from symbert.console import Progress
from symbert.errors import ConfigError, PreemptedError, SymbertError, explain
from symbert.files import single_writer
from symbert.pretrain import compute
from symbert.pretrain.compute import World
from symbert.pretrain.run import Records, StopRequest, read_run, why_alone
from symbert.pretrain.tasks import Batch, Task, count_targets, move, verify_shards
from symbert.pretrain.train import Session, StepResult, Trainer, claim

ROWS_AHEAD = 512  # of a run that are made at once
DONE = "done"  # how a run ended
MOMENTS = ("exp_avg", "exp_avg_sq")  # that AdamW keeps of each parameter, by its names

Sums = tuple[float, int]  # of a validation: summed loss and number of targets
Life = Generator[Session, Any, None]


# --- runs -------------------------------------------------------------------------------------------------------------


def train_together(
    folders: list[Path], stop: StopRequest, threads: int, micro_batch_size: int | None
) -> dict[Path, str]:
    """Train the runs of these folders, each from its newest checkpoint to its end, or all until `stop`; returns how
    each ended. Those whose models are of other kinds are trained one kind after the other.

    PreemptedError where all were asked to stop.
    """
    torch.set_num_threads(threads)
    world, verify = World(0, 1, compute.pick_device()), cache(verify_shards)
    members = []
    for folder in folders:
        life = life_of(folder, stop, world, threads, micro_batch_size, verify)
        members.append(Member(folder, life))
        members[-1].go_on(None)
    live = sorted((member for member in members if member.is_live), key=lambda member: repr(kind_of(member)))
    kinds = [[*alike] for _, alike in groupby(live, key=kind_of)]
    for alike in kinds:
        try:
            train_alike(alike)
        except BaseException as error:
            for member in live:
                member.end_by(error)
            raise
    return {member.folder: member.ended for member in members}


def life_of(
    folder: Path,
    stop: StopRequest,
    world: World,
    threads: int,
    micro_batch_size: int | None,
    verify: Callable[[Path], None],
) -> Life:
    """A run from its start to its end, as `symbert.pretrain.train.train` has it; it gives its session wherever it waits
    for others: first until it is known how many go together, then for the result of each step and, where it is due, the
    sums of its validation."""
    if (folder / "done.json").is_file():
        return
    run = read_run(folder)
    with compute.explained(run), single_writer(folder):
        records = Records(folder / "state", leads=True)
        with records.status_written(), compute.explained(run):
            if reason := why_alone(run.training):
                raise ConfigError(f"{run}: cannot be trained together with others: {reason}; train it alone")
            claim(folder, run, records, world.device, verify)
            trainer = Trainer(run, world, micro_batch_size)
            refuse_untrained(trainer)
            session = Session(trainer, records, stop)
            session.together = yield session
            session.open(threads)
            while records.step < run.training.steps:
                result, sums = yield session
                trainer.refuse_divergence(records.step, result)
                session.complete(result, partial(trainer.measured, *sums))
            session.publish()


def refuse_untrained(trainer: Trainer) -> None:
    """ConfigError where a parameter gets no gradient, as one that is frozen or not used: AdamW passes it over in a run
    alone, but as a row among others it would decay, and count in the norm."""
    inputs = trainer.task.inputs(trainer.task.validation_batch(np.arange(1)), False)
    trainer.loss(**move(inputs, trainer.device)).backward()
    idle = [name for name, parameter in trainer.model.named_parameters() if parameter.grad is None]
    trainer.optimizer.zero_grad(set_to_none=True)
    if idle:
        raise ConfigError(
            f"{trainer.run}: cannot be trained together with others: {idle[0]} is frozen or not used; train it alone"
        )


class Member:
    """A run among others, and how it ended."""

    def __init__(self, folder: Path, life: Life) -> None:
        self.folder, self.life, self.ended = folder, life, ""
        self.stopped: PreemptedError | None = None
        self.session: Session | None = None  # of a live run: its weights are views of those of all

    @property
    def is_live(self) -> bool:
        """Whether it is neither done nor failed."""
        return not self.ended

    def go_on(self, given: Any) -> None:
        """Give the run what it waits for. An error of its own ends it alone."""
        try:
            self.session = self.life.send(given)
        except StopIteration:
            self.session, self.ended = None, DONE
        except (SymbertError, OSError) as error:
            self.session, self.ended = None, explain(error)[1]
            if isinstance(error, PreemptedError):
                self.stopped = error
            else:
                print(f"warning: {self.ended}; the others go on", file=sys.stderr)

    def end_by(self, error: BaseException) -> None:
        """End the run, if it is live, by an error of all."""
        if self.is_live:
            self.ended = explain(error)[1]
            with suppress(BaseException):  # the error, or as what `explained` tells it
                self.life.throw(error)


def kind_of(member: Member) -> tuple[Any, ...]:
    """What runs have in common whose models are one: all but seed, rates, starts, and when they are looked at."""
    trainer = member.session.trainer
    run, task, config = trainer.run, trainer.task, trainer.model.config
    shapes = tuple((name, tuple(parameter.shape)) for name, parameter in trainer.model.named_parameters())
    return (
        *(run.architecture, run.shape, run.operator.path, repr(run.operator.arguments), shapes),
        *(config.vocab_size, config.pad_token_id, task.training.sequence_length, len(task.validation)),
        *(trainer.settings.batch_size, trainer.micro_batch_size, trainer.precision),
    )


def train_alike(members: list[Member]) -> None:
    """Train runs of one kind to their ends. PreemptedError once each that was asked to stop is saved."""
    for member in members:
        member.go_on(len(members))
    live = [member for member in members if member.is_live]
    steps = max((member.session.settings.steps - member.session.records.step for member in live), default=0)
    progress, taken = Progress(f"pretrain {len(members)} runs together", steps, "steps"), 0
    while live:
        live.sort(key=lambda member: (repr(member.session.settings), member.session.records.step))
        sessions = [member.session for member in live]
        stack = Stack([session.trainer for session in sessions], [session.records.step for session in sessions])
        for session in sessions:
            session.together = len(live)
        while all(member.is_live for member in live):
            results, flags = stack.step(), [*sessions[0].stop.flags()]
            due = [number for number, each in enumerate(sessions) if each.is_evaluated(each.records.step + 1)]
            sums = dict(zip(due, stack.evaluate(due), strict=True))
            for number, (member, result) in enumerate(zip(live, results, strict=True)):
                sessions[number].trainer.flags = flags
                member.go_on((result, sums.get(number, ())))
            taken += 1
            losses = [result.loss for result in results]
            progress.update(taken, f"losses {min(losses):.3f} to {max(losses):.3f}, {sessions[0].pace.note()}")
        if stopped := [member.stopped for member in live if member.stopped]:
            raise stopped[0]
        live = [member for member in live if member.is_live]
        stack = None  # the weights of all lie in it; it and what makes its batches hold each other
        gc.collect()


# --- their models as one ----------------------------------------------------------------------------------------------


class Feed:
    """The batches of a run by their steps, several made at once."""

    def __init__(self, task: Task) -> None:
        self.task, self.first, self.made = task, 0, list[Batch]()

    def batch(self, step: int) -> Batch:
        """The batch of step `step` (from 0)."""
        if not self.first <= step < self.first + len(self.made):
            count = max(1, ROWS_AHEAD // self.task.settings.batch_size)
            self.first, self.made = step, self.task.training_batches(step, count)
        return self.made[step - self.first]


class Rows:
    """Some parameters of several models, and what AdamW keeps of them: a row for each model. From now on those of the
    models and of their optimizers are parts of it."""

    def __init__(self, trainers: list[Trainer], names: list[str]) -> None:
        first = trainers[0].model
        self.names, self.shapes = names, [first.get_parameter(name).shape for name in names]
        self.sizes = [shape.numel() for shape in self.shapes]
        self.values = nn.Parameter(self._stacked(trainers, lambda parameter, state: parameter.detach()))
        zeros = torch.zeros_like
        self.moments = {
            key: self._stacked(trainers, lambda parameter, state, key=key: state.get(key, zeros(parameter)).detach())
            for key in MOMENTS
        }
        for number, trainer in enumerate(trainers):
            of_run = {key: self._parts(moment[number]) for key, moment in self.moments.items()}
            for name, part in self._parts(self.values.detach()[number]).items():
                parameter = trainer.model.get_parameter(name)
                parameter.data = part
                trainer.optimizer.state[parameter] = {key: parts[name] for key, parts in of_run.items()}

    def _stacked(self, trainers: list[Trainer], tensor_of: Callable[[nn.Parameter, dict], Tensor]) -> Tensor:
        """`run number`: of each run a tensor of each parameter."""
        rows = []
        for trainer in trainers:
            parameters = [trainer.model.get_parameter(name) for name in self.names]
            tensors = [tensor_of(each, trainer.optimizer.state.get(each, {})).flatten() for each in parameters]
            rows.append(torch.cat(tensors))
        return torch.stack(rows)

    def _parts(self, row: Tensor) -> dict[str, Tensor]:
        parts = zip(self.names, row.split(self.sizes), self.shapes, strict=True)
        return {name: part.view(shape) for name, part, shape in parts}

    def by_name(self, chosen: list[int]) -> dict[str, Tensor]:
        """The parameters of some models, `run …`."""
        values = self.values if len(chosen) == len(self.values) else self.values[chosen]
        parts = zip(self.names, values.split(self.sizes, dim=1), self.shapes, strict=True)
        return {name: part.view(len(chosen), *shape) for name, part, shape in parts}


class Stack:
    """The models of several runs as one, and the computation of their steps, from the `steps` on that each has taken.
    Runs with equal settings and steps that stand side by side share an optimizer."""

    def __init__(self, trainers: list[Trainer], steps: list[int]) -> None:
        self.trainers, self.lead = trainers, trainers[0]
        named = [(name, parameter.ndim) for name, parameter in self.lead.model.named_parameters()]
        self.matrices = Rows(trainers, [name for name, dimensions in named if dimensions > 1])
        self.others = Rows(trainers, [name for name, dimensions in named if dimensions <= 1])
        self.clips = torch.tensor([[each.settings.gradient_clip] for each in trainers], device=self.lead.device)
        buffers = [dict(trainer.model.named_buffers()) for trainer in trainers]
        of_runs = {name: [each[name] for each in buffers] for name in buffers[0]}
        self.buffers = {
            name: torch.stack(tensors)
            for name, tensors in of_runs.items()
            if any(not torch.equal(tensor, tensors[0]) for tensor in tensors)
        }
        feeds: dict[Any, Feed] = {}
        self.feeds = [  # runs at other steps read other batches
            feeds.setdefault((_learns_from(trainer), step), Feed(trainer.task))
            for trainer, step in zip(trainers, steps, strict=True)
        ]
        self.begun, self.taken = steps, 0
        make, is_beside = self._batches, compute.computes_beside(self.lead.device)
        self.batches: Callable[[int], list[Batch]] = compute.Ahead(make) if is_beside else make
        numbered = groupby(range(len(trainers)), key=lambda number: (trainers[number].settings, steps[number]))
        self.blocks = [Block(self, [*numbers]) for _, numbers in numbered]

    def step(self) -> list[StepResult]:
        """Take the next step of each run. A number of one that is not finite reaches no other."""
        batches = self.batches(self.taken)
        self.lead.model.train()
        losses = self.lead.fitting(lambda: self._accumulate_gradients(batches))
        norms = self._clip()
        rates = [
            trainer.learning_rate(step + self.taken) for trainer, step in zip(self.trainers, self.begun, strict=True)
        ]
        for block in self.blocks:
            block.update(rates[block.rows.start])
        self.taken += 1
        numbers = torch.stack([losses, norms], dim=1).tolist()
        return [StepResult(*each, rate) for each, rate in zip(numbers, rates, strict=True)]

    def _batches(self, number: int) -> list[Batch]:
        """Those of the step after so many."""
        return [feed.batch(step + number) for feed, step in zip(self.feeds, self.begun, strict=True)]

    def _accumulate_gradients(self, batches: list[Batch]) -> Tensor:
        """Add up the gradients of all; returns the mean loss of each run."""
        self.matrices.values.grad = self.others.values.grad = None
        for trainer in self.trainers:
            trainer.micro_batch_size = self.lead.micro_batch_size
        counts = torch.tensor([max(count_targets(batch), 1) for batch in batches], device=self.lead.device)
        total = torch.zeros(len(batches), device=self.lead.device)
        for rows in self.lead.world.batches(self.lead.settings.batch_size, self.lead.micro_batch_size):
            parts = [{name: tensor[rows.start : rows.stop] for name, tensor in batch.items()} for batch in batches]
            losses = self._losses(parts, [*range(len(parts))]) / counts
            losses.sum().backward()
            total += losses.detach()
        return total

    def _clip(self) -> Tensor:
        """Clip the norm of each run's gradient; returns the norms before."""
        gradients = [rows.values.grad for rows in (self.matrices, self.others)]
        norms = torch.stack([torch.linalg.vector_norm(each, dim=1) for each in gradients]).norm(dim=0)
        for each in gradients:
            each.mul_((self.clips / (norms[:, None] + 1e-6)).clamp(max=1))  # as torch.nn.utils.clip_grad_norm_
        return norms

    @torch.no_grad()
    def evaluate(self, chosen: list[int]) -> list[Sums]:
        """The sums of the validation sequences, of some runs."""
        trainers = [self.trainers[number] for number in chosen]
        self.lead.model.eval()
        return self.lead.fitting(lambda: self._sums_of_validation(trainers, chosen)) if chosen else []

    def _sums_of_validation(self, trainers: list[Trainer], chosen: list[int]) -> list[Sums]:
        tasks = {_looks_at(trainer): trainer.task for trainer in trainers}
        losses, counts = [0.0] * len(trainers), [0] * len(trainers)
        for share in self.lead.world.batches(len(self.lead.task.validation), self.lead.micro_batch_size):
            rows = np.arange(share.start, share.stop)
            made = {key: task.validation_batch(rows) for key, task in tasks.items()}
            batches = [made[_looks_at(trainer)] for trainer in trainers]
            for number, loss in enumerate(self._losses(batches, chosen).tolist()):
                losses[number] += loss
                counts[number] += count_targets(batches[number])
        return [*zip(losses, counts, strict=True)]

    def _losses(self, batches: list[Batch], chosen: list[int]) -> Tensor:
        """The summed loss of a batch of each of some runs, in nats."""
        lead = self.lead
        weights = self.matrices.by_name(chosen) | self.others.by_name(chosen)
        weights |= {name: buffer[chosen] for name, buffer in self.buffers.items()}
        named = {f"model.{name}": tensor for name, tensor in weights.items()}
        inputs = move(lead.task.inputs_together(batches), lead.device)

        def loss_of(weights: dict[str, Tensor], inputs: Batch) -> Tensor:
            return functional_call(lead.loss, weights, (), inputs)

        with compute.autocast(lead.precision, lead.device), AsOfOne():
            return torch.vmap(loss_of)(named, inputs)


def _learns_from(trainer: Trainer) -> tuple[Any, ...]:
    """What the batches of a run follow from, among runs of one kind."""
    return trainer.run.manifest, trainer.run.pretrain_seed, trainer.settings.mask_probability


def _looks_at(trainer: Trainer) -> tuple[Any, ...]:
    """The same of the batches of its validation."""
    return trainer.run.manifest, trainer.settings.mask_probability


class Block:
    """Runs of a stack side by side that have one rate at each step, and their optimizer: each of its two tensors has
    the numbers of all of them."""

    def __init__(self, stack: Stack, numbers: list[int]) -> None:
        self.rows, trainers = slice(numbers[0], numbers[-1] + 1), [stack.trainers[number] for number in numbers]
        settings, device = trainers[0].settings, stack.lead.device
        matrices = nn.Parameter(stack.matrices.values.detach()[self.rows])
        others = nn.Parameter(stack.others.values.detach()[self.rows].flatten())  # one dimension: without decay
        self.tensors = [(matrices, stack.matrices), (others, stack.others)]
        optimizer = compute.build_optimizer(nn.ParameterList([matrices, others]), settings)
        for tensor, rows in self.tensors:
            taken = torch.tensor(float(stack.begun[numbers[0]]), device=device)
            moments = {key: moment[self.rows].view_as(tensor) for key, moment in rows.moments.items()}
            optimizer.state[tensor] = {"step": taken, **moments}
            for trainer in trainers:
                for name in rows.names:
                    trainer.optimizer.state[trainer.model.get_parameter(name)]["step"] = taken
        self.updater = compute.Updater(nn.Module(), optimizer, settings.gradient_clip, stack.lead.precision, device)

    def update(self, rate: float) -> None:
        """Move the weights by the gradients of the stack."""
        for tensor, rows in self.tensors:
            tensor.grad = rows.values.grad[self.rows].view_as(tensor)
        self.updater.update(rate)


class AsOfOne(TorchFunctionMode):
    """Two functions of PyTorch that `vmap` does not compute as for one model: it calls the CPU's kernel of attention
    once for each run, and gives the padding piece, which a random token may be, a gradient (findings/vmap-padding.sh).
    """

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        options = kwargs or {}
        if function is F.scaled_dot_product_attention:
            return self._attend(*args, **options)
        if function is F.embedding:
            return self._embed(*args, **options)
        return function(*args, **options)

    def _embed(self, ids: Tensor, weight: Tensor, padding_idx: int | None = None, *args: Any, **options: Any) -> Tensor:
        embedded = F.embedding(ids, weight, None, *args, **options)
        return embedded if padding_idx is None else embedded.detach().where((ids == padding_idx)[..., None], embedded)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        *args: Any,
        **options: Any,
    ) -> Tensor:
        return _Folded.apply(query, key, value, attn_mask, args, options)


class _Folded(torch.autograd.Function):
    """Attention of all runs by one call of PyTorch's kernels: the runs become a part of the batch."""

    @staticmethod
    def forward(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, args: Any, options: Any) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, mask, *args, **options)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, args: Any, options: Any
    ) -> tuple[Tensor, int]:
        runs = info.batch_size

        def spread(tensor: Tensor, dimension: int | None) -> Tensor:  # run batch heads token …
            return tensor.expand(runs, *tensor.shape) if dimension is None else tensor.movedim(dimension, 0)

        sides = [spread(*each) for each in zip((query, key, value), in_dims, strict=False)]
        if mask is not None and (in_dims[3] is not None or (mask.ndim == 4 and len(mask) > 1)):
            mask = spread(mask, in_dims[3])
            mask = mask.expand(-1, sides[0].shape[1], *mask.shape[2:]).flatten(0, 1)
        batch = max(side.shape[1] for side in sides)
        folded = [side.expand(-1, batch, *side.shape[2:]).flatten(0, 1) for side in sides]
        mixed = F.scaled_dot_product_attention(*folded, mask, *args, **options)
        return mixed.unflatten(0, (runs, batch)), 0
