"""Work on a GPU that is the same each time but for what its tensors hold is recorded once, as a CUDA graph, and then
started by one call: the launches of a thousand kernels take longer than many of the kernels.

A graph computes what it was recorded with, at the same places in memory; all that changes lies in tensors there
(PyTorch's notes on CUDA semantics, "CUDA Graphs"). Dropout draws from the device's generator, which each replay
advances. Each graph is tried before it is used, on other weights and rows than it was recorded with.
"""

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from symbert.errors import line_of
from symbert.pretrain.compute import sent, share_compiled_code
from symbert.pretrain.tasks import Batch

# How far a replay may be from the same work without a graph, as a share of what that changes: the order of sums
# differs, and AdamW's first steps follow a gradient's signs.
TOLERANCES = {"loss": 0.02, "gradients": 0.05, "weights": 0.3}
SHRUNK = 0.5  # by which weights are multiplied where a graph is tried

Run = Callable[[], None]


class Recorder(Protocol):
    """What makes graphs for all fine-tunings of a job, or for a pre-training."""

    refusal: str  # why it makes none any more

    def aside(self) -> AbstractContextManager:
        """Context in which work is computed as it will be recorded."""

    def record(self, run: Run) -> Run:
        """What repeats `run`, which is not computed now."""


class Place(NamedTuple):
    """Where the graphs of a device are recorded."""

    pool: Any
    stream: torch.cuda.Stream
    first: torch.cuda.CUDAGraph


@cache
def place_on(device: torch.device) -> Place:
    """One pool of memory for all graphs of a process, as nothing in it outlives a replay, and the stream that its
    memory belongs to. A pool ends with its last graph, so an empty one is kept."""
    place = Place(torch.cuda.graph_pool_handle(), torch.cuda.Stream(device), torch.cuda.CUDAGraph())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is empty
        with torch.cuda.graph(place.first, pool=place.pool, stream=place.stream):
            pass
    return place


class CudaGraphs:
    """CUDA graphs of one device."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.refusal = device, ""
        self.pool, self.stream, _ = place_on(device)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """On the stream of the graphs, behind what was started before, and before what is started afterwards."""
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        try:
            with torch.cuda.stream(self.stream):
                yield
        finally:
            torch.cuda.current_stream(self.device).wait_stream(self.stream)

    def record(self, run: Run) -> Run:
        """The replay of a graph of `run`."""
        generator = torch.cuda.default_generators[self.device.index or 0]
        intact = generator.clone_state()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
                run()
        except BaseException:
            generator.graphsafe_set_state(intact)  # the other one would wait for the end of the recording for ever
            raise
        return graph.replay


def recorder_on(device: torch.device) -> CudaGraphs | None:
    """What records the work of a job, on a GPU."""
    if device.type != "cuda":
        return None
    share_compiled_code()
    return CudaGraphs(device)


def refuse(recorder: Recorder, reason: str) -> None:
    """No further graphs in this job; one line says why."""
    if not recorder.refusal:
        print(f"warning: steps are computed without CUDA graphs, which takes longer: {reason}", file=sys.stderr)
        recorder.refusal = reason


class Recorded(ABC):
    """Work that has a graph for each of a few keys, such as lengths.

    Where no graph can be recorded, or one computes something else than it should, the work is computed without.
    """

    def __init__(self, model: nn.Module, recorder: Recorder, device: torch.device) -> None:
        self.recorder, self.device = recorder, device
        self.parameters = [*model.parameters()]
        self.graphs: dict[Hashable, Run | None] = {}  # None: computed without

    @abstractmethod
    def kept(self) -> list[Tensor]:
        """All that the work reads or changes."""

    @abstractmethod
    def other_rows(self) -> None:
        """Change what the work reads beside weights, in place."""

    @abstractmethod
    def outcome(self) -> dict[str, list[Tensor]]:
        """What the work is judged by: some of TOLERANCES."""

    def compute(self, key: Hashable, run: Run) -> None:
        """Compute `run`, the same for a key each time: by its graph, where it has one."""
        if key not in self.graphs:
            self.graphs[key] = self._recorded(run)
        (self.graphs[key] or run)()

    def _recorded(self, run: Run) -> Run | None:
        """A graph of some work; nothing is changed by it. None where it cannot be had: then there are no others either,
        as after a failure they would draw dropout apart from what is computed without."""
        if self.recorder.refusal:
            return None
        before, graph, reason = None, None, ""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []), self.recorder.aside():
            try:
                before = _copies(self.kept())
                run()  # once, for what only a first time does: kernels are compiled and chosen
                start = self._disturb(before)
                run()
                expected = self._outcome()
                self._restore(before)
                graph = self.recorder.record(run)
                self._disturb(before)
                graph()
                reason = self._difference(start, expected)
            except Exception as error:  # whatever it is: an error of the work itself comes again without a graph
                reason = f"{type(error).__name__}: {line_of(error)}"
            if before is not None:
                self._restore(before)
        if reason:
            refuse(self.recorder, reason)
            self.graphs = dict.fromkeys(self.graphs)
            return None
        return graph

    @torch.no_grad()
    def _restore(self, before: list[Tensor]) -> None:
        for tensor, values in zip(self.kept(), before, strict=True):
            tensor.copy_(values)

    @torch.no_grad()
    def _disturb(self, before: list[Tensor]) -> dict[str, list[Tensor]]:
        """Other weights, other rows, dropout of a fixed seed: what a graph that holds on to something of its recording
        does not follow."""
        self._restore(before)
        for parameter in self.parameters:
            parameter.mul_(SHRUNK)
        self.other_rows()
        torch.manual_seed(0)
        return self._outcome()

    def _outcome(self) -> dict[str, list[Tensor]]:
        return {name: _copies(part) for name, part in self.outcome().items()}

    def _difference(self, start: dict[str, list[Tensor]], expected: dict[str, list[Tensor]]) -> str:
        """Why what the graph computed is not what was expected; empty where it is."""
        for name, found in self._outcome().items():
            share = _distance(found, expected[name]) / _distance(expected[name], start[name])
            if not share <= TOLERANCES[name]:
                return f"a graph's {name} differ from those of the same step without it ({share:.2g} of what changes)"
        return ""


def _copies(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in tensors]


def _distance(some: list[Tensor], others: list[Tensor]) -> float:
    return torch.stack([(a - b).norm() for a, b in zip(some, others, strict=True)]).norm().item()


# --- pre-training -----------------------------------------------------------------------------------------------------


class MicroSteps(Recorded):
    """Loss and gradients of some sequences at a time, a graph for each shape of inputs.

    `loss_of` adds the gradients of a batch on the device to those there are, and returns its summed loss, both divided
    by a count.
    """

    def __init__(
        self,
        loss_of: Callable[[Batch, Tensor], Tensor],
        model: nn.Module,
        recorder: Recorder,
        device: torch.device,
    ) -> None:
        super().__init__(model, recorder, device)
        self.loss_of = loss_of
        self.inputs: dict[Hashable, Batch] = {}  # by shapes
        self.present: Batch = {}  # those of the last call
        self.gradients: list[tuple[nn.Parameter, Tensor]] = []  # of the parameters that have one
        self.count, self.loss = torch.ones((), device=device), torch.zeros((), device=device)

    @torch.no_grad()
    def begin(self) -> None:
        """Of a step: gradients of zero, at the places that graphs know."""
        if not self.gradients:
            return
        for parameter, gradient in self.gradients:
            parameter.grad = gradient
        torch._foreach_zero_([gradient for _, gradient in self.gradients])

    def __call__(self, batch: Batch, count: int) -> Tensor:
        """The loss of a batch on the CPU; the next call overwrites it."""
        shapes = tuple((name, tensor.shape) for name, tensor in batch.items())
        if shapes not in self.inputs:
            self.inputs[shapes] = {name: torch.empty_like(tensor, device=self.device) for name, tensor in batch.items()}
        self.present = self.inputs[shapes]
        for name, tensor in batch.items():
            self.present[name].copy_(sent(tensor, self.device))
        self.count.fill_(count)
        run = partial(self._run, shapes)
        if not self.gradients:
            self._find_gradients(run)
        self.compute(shapes, run)
        return self.loss

    def _run(self, shapes: Hashable) -> None:
        self.loss.copy_(self.loss_of(self.inputs[shapes], self.count))

    def _find_gradients(self, run: Run) -> None:
        """Which parameters have one is known once it was computed: the optimizer leaves the others as they are."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []), self.recorder.aside():
            run()
        self.gradients = [(each, each.grad) for each in self.parameters if each.grad is not None]
        self.begin()

    def kept(self) -> list[Tensor]:
        """As of all recorded work."""
        gradients = [gradient for _, gradient in self.gradients]
        return [*self.present.values(), self.count, self.loss, *self.parameters, *gradients]

    def other_rows(self) -> None:
        """As of all recorded work: all in reverse, and gradients to add to."""
        for tensor in self.present.values():
            tensor.copy_(tensor.flip(0))
        self.count.mul_(2)
        for parameter, gradient in self.gradients:
            gradient.copy_(parameter)

    def outcome(self) -> dict[str, list[Tensor]]:
        """As of all recorded work."""
        return {"loss": [self.loss], "gradients": [gradient for _, gradient in self.gradients]}
