"""Fine-tuning on a GPU, where the launches of a step's thousand kernels take longer than the kernels: a whole step,
from gathered rows to moved weights, is recorded as one CUDA graph and then started by one call.

Rows are padded to a few lengths, with a graph each. A graph computes what it was recorded with, at the same places in
memory; all that changes from step to step lies in tensors there: the numbers of the rows, the weights of examples in
the loss, and the learning rate (PyTorch's notes on CUDA semantics, "CUDA Graphs"). Dropout draws from the device's
generator, which each replay advances. Each graph is tried before it is used, on other weights and rows than it was
recorded with.
"""

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from symbert.configuration import GlueSettings
from symbert.errors import line_of
from symbert.glue.train import DROPOUTS, Packed, Steps, TaskRows, Trainee
from symbert.model.bert import PLAIN, Classifier, Layer, SpanModel, is_token_wise
from symbert.pretrain.compute import autocast

STRIDE = 16  # the lengths of padded rows are its multiples: few lengths, of which a GPU keeps its plans
GRAPH_STRIDE = 32  # of those that have a graph each
# How far a replay may be from the same step without a graph, as a share of what the step changes: the order of sums
# differs, and AdamW's first steps follow a gradient's signs.
TOLERANCES = {"loss": 0.02, "gradients": 0.05, "weights": 0.3}
SHRUNK = 0.5  # by which weights are multiplied where a graph is tried

Run = Callable[[], None]


class Recorder(Protocol):
    """What makes graphs for all fine-tunings of a job."""

    refusal: str  # why it makes none any more

    def aside(self) -> AbstractContextManager:
        """Context in which a step is computed as it will be recorded."""

    def record(self, run: Run) -> Run:
        """What repeats `run`, which is not computed now."""


class CudaGraphs:
    """CUDA graphs of one device, in one pool of memory: nothing in it outlives a replay."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.refusal = device, ""
        self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(device)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """On the stream of the graphs, behind what was started before, and before what is started afterwards."""
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            yield
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


def refuse(recorder: Recorder, reason: str) -> None:
    """No further graphs in this job; one line says why."""
    if not recorder.refusal:
        print(f"finetune: steps are computed without CUDA graphs, which takes longer: {reason}", file=sys.stderr)
        recorder.refusal = reason


@dataclass(frozen=True)
class PaddedBatch:
    """Some rows, padded: ids, types, and whether a slot has a token, all `row longest`, and labels `row …`."""

    input_ids: Tensor
    token_type_ids: Tensor
    attended: Tensor
    labels: Tensor


class Padded(Trainee):
    """A model that reads rows padded to one of few lengths; with a recorder its steps are graphs."""

    def __init__(self, model: nn.Module, precision: str = "fp32", recorder: Recorder | None = None) -> None:
        super().__init__(model, precision)
        self.recorder = recorder

    @abstractmethod
    def forward(self, batch: PaddedBatch) -> Tensor:
        """As of every `Trainee`."""

    def batch(self, rows: TaskRows, index: np.ndarray) -> PaddedBatch:
        """The rows of `index`, in that order."""
        numbers = torch.from_numpy(index).to(rows.labels.device)
        return self.gather(rows, numbers, self.length_of(rows, index))

    def length_of(self, rows: TaskRows, index: np.ndarray) -> int:
        """To how many tokens the rows of `index` are padded."""
        stride, most = STRIDE, rows.longest
        if self.recorder:
            stride, most = GRAPH_STRIDE, getattr(self.model.config, "max_position_embeddings", math.inf)
        return min(math.ceil(rows.lengths[index].max() / stride) * stride, most)

    def gather(self, rows: TaskRows, numbers: Tensor, length: int) -> PaddedBatch:
        """The rows of some `numbers`, padded to a length; nothing waits for the device.

        A slot without a token has the padding piece or, of a model that has none, the row's first piece.
        """
        first, lengths = (each[numbers].unsqueeze(1) for each in rows.places)
        places = torch.arange(length, device=numbers.device)
        attended = places < lengths
        tokens = first + places * attended
        ids, types = rows.input_ids[tokens].long(), rows.token_type_ids[tokens].long() * attended
        if self.pad_id is not None:
            ids = ids.masked_fill(~attended, self.pad_id)
        return PaddedBatch(ids, types, attended, rows.labels[numbers])

    def steps(self, rows: TaskRows, settings: GlueSettings) -> Steps:
        """Graphs, where there is a recorder."""
        return GraphSteps(self, rows, settings, self.recorder) if self.recorder else super().steps(rows, settings)


class PaddedBert(Padded):
    """A model of this project with an operator to which padding is nothing. With `is_compiled` its layers are compiled
    for training, all by one code for each length."""

    dropouts = DROPOUTS

    def __init__(
        self,
        model: Classifier | SpanModel,
        precision: str = "fp32",
        is_compiled: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(model, precision, recorder)
        is_plain = type(model.bert.encoder.layer[0].attention.self).forward in PLAIN
        self.training_layer = compiled_layer() if is_compiled and is_plain else Layer.forward

    @property
    def embeddings(self) -> nn.Module:
        """Of word pieces."""
        return self.model.bert.embeddings.word_embeddings

    def forward(self, batch: PaddedBatch) -> Tensor:
        """As `symbert.model.packed`; the last layer of a classifier is computed for the first token of a row alone."""
        model, bert = self.model, self.model.bert
        layer_of = self.training_layer if model.training else Layer.forward
        hidden, mask = bert.embeddings(batch.input_ids, batch.token_type_ids), batch.attended[:, None, None]
        for layer in bert.encoder.layer[:-1]:
            hidden = layer_of(layer, hidden, mask)
        if isinstance(model, SpanModel):
            hidden = layer_of(bert.encoder.layer[-1], hidden, mask)
            return model.qa_outputs(hidden).masked_fill(~batch.attended[..., None], -math.inf)
        rows, length = batch.input_ids.shape
        first = torch.arange(rows, device=hidden.device) * length
        hidden = layer_of(bert.encoder.layer[-1], hidden, mask, first)
        return model.classifier(model.dropout(bert.pooler(hidden)))


def compiled_layer() -> Callable[..., Tensor]:
    """A layer's pass, compiled: once for each shape, whichever layer or model it is of."""
    from torch import _dynamo

    _dynamo.config.recompile_limit = 256  # lengths, heads, operators
    return torch.compile(Layer.forward, fullgraph=True, dynamic=False)


def trainee_of(
    model: Classifier | SpanModel, precision: str, is_compiled: bool, recorder: Recorder | None
) -> Packed | PaddedBert:
    """A model of this project as it is fine-tuned: padded where graphs can be recorded, else end to end."""
    operator = model.bert.encoder.layer[0].attention.self
    if recorder is None:
        return Packed(model, precision, is_compiled)
    if not is_token_wise(operator):
        refuse(
            recorder, f"{type(operator).__name__} does not say token_wise, so rows are computed one length at a time"
        )
        return Packed(model, precision, is_compiled)
    return PaddedBert(model, precision, is_compiled, recorder)


class GraphSteps(Steps):
    """The optimizer steps of a fine-tuning, each one replay of the graph of its length.

    Where no graph can be recorded, or one computes something else than it should, the same steps are computed without.
    """

    trainee: Padded

    def __init__(self, trainee: Padded, rows: TaskRows, settings: GlueSettings, recorder: Recorder) -> None:
        super().__init__(trainee, rows, settings, capturable=True)
        if trainee.precision == "fp16":
            refuse(recorder, "in fp16 the scale of the loss is decided outside the step; bf16 has graphs")
        self.recorder, self.peak = recorder, settings.learning_rate
        self.examples, self.size = min(settings.batch_size, rows.examples), rows.task.rows_of_example
        self.parameters, device = [*trainee.model.parameters()], rows.labels.device
        self.index = torch.zeros(self.examples * self.size, dtype=torch.int64, device=device)
        self.shares, self.rate, self.total = (
            torch.zeros(shape, dtype=self.parameters[0].dtype, device=device) for shape in (self.examples, (), ())
        )
        self.done = 0  # steps since the losses were read
        self.graphs: dict[int, Run | None] = {}  # by length; None: computed without
        self._start_optimizer()

    def step(self, index: np.ndarray, rate: float) -> None:
        """Train on the rows of `index` at a learning rate. Surplus rows of a smaller batch repeat others, and count
        nothing."""
        shares, examples = np.zeros(self.examples), len(index) // self.size
        shares[:examples] = 1 / examples
        for tensor, values in ((self.index, np.resize(index, len(self.index))), (self.shares, shares)):
            tensor.copy_(torch.from_numpy(values), non_blocking=True)
        self.rate.fill_(rate)
        length = self.trainee.length_of(self.rows, index)
        if length not in self.graphs:
            self.graphs[length] = self._recorded(partial(self._compute, length))
        if replay := self.graphs[length]:
            replay()
        else:
            self._compute(length)
        self.done += 1

    def mean_loss(self) -> float:
        """As of every `Steps`."""
        mean = self.total.item() / self.done
        self.total.zero_()
        self.done = 0
        return mean

    def _compute(self, length: int) -> None:
        """The step itself: all that it reads and changes lies in tensors that stay where they are."""
        trainee, dtype = self.trainee, self.total.dtype
        batch = trainee.gather(self.rows, self.index, length)
        # A rounded weight that was kept from before would be recorded as a constant.
        with autocast(trainee.precision, self.index.device, cache_enabled=False):
            logits = trainee.forward(batch).to(dtype)
        loss = (self.rows.head.loss(logits, batch.labels, reduction="none") * self.shares).sum()
        self.updater.backward(loss)
        self.updater.clip()
        self.updater.update(self.rate)
        self.total += loss.detach()

    def _start_optimizer(self) -> None:
        """Give the optimizer its moments, all zero: made in a recording, they would be of the recording."""
        optimizer = self.updater.optimizer
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        for group in optimizer.param_groups:
            group["lr"] = self.rate
        optimizer.step()  # of gradients 0, at rate 0
        optimizer.zero_grad(set_to_none=True)
        for state in optimizer.state.values():
            state["step"].zero_()

    # --- recording ----------------------------------------------------------------------------------------------------

    def _recorded(self, run: Run) -> Run | None:
        """A graph of a step; nothing is changed by it. None where it cannot be had: then there are no others either, as
        after a failure they would draw dropout apart from the steps that are computed without."""
        if self.recorder.refusal:
            return None
        device, before, graph, reason = self.index.device, None, None, ""
        with torch.random.fork_rng([device] if device.type == "cuda" else []), self.recorder.aside():
            try:
                before = [tensor.clone() for tensor in self._kept()]
                run()  # once, for what only a first time does: kernels are compiled and chosen
                start = self._disturb(before)
                run()
                expected = self._outcome()
                self._restore(before)
                graph = self.recorder.record(run)
                self._disturb(before)
                graph()
                reason = self._difference(start, expected)
            except Exception as error:  # whatever it is: an error of the step itself comes again without a graph
                reason = f"{type(error).__name__}: {line_of(error)}"
            self.updater.optimizer.zero_grad(set_to_none=True)
            if before is not None:
                self._restore(before)
        if reason:
            refuse(self.recorder, reason)
            self.graphs = dict.fromkeys(self.graphs)
            return None
        return graph

    def _kept(self) -> list[Tensor]:
        """All that a step reads or changes."""
        moments = [values for state in self.updater.optimizer.state.values() for values in state.values()]
        return [self.index, self.shares, self.rate, self.total, *self.parameters, *moments]

    @torch.no_grad()
    def _restore(self, before: list[Tensor]) -> None:
        for tensor, values in zip(self._kept(), before, strict=True):
            tensor.copy_(values)

    @torch.no_grad()
    def _disturb(self, before: list[Tensor]) -> dict[str, list[Tensor]]:
        """Other weights, other rows (the first example for all), the highest rate, dropout of a fixed seed: what a
        graph that holds on to something of its recording does not follow."""
        self._restore(before)
        for parameter in self.parameters:
            parameter.mul_(SHRUNK)
        self.index.copy_(self.index[: self.size].repeat(self.examples))
        self.shares.fill_(1 / self.examples)
        self.rate.fill_(self.peak)
        torch.manual_seed(0)
        return self._outcome()

    def _outcome(self) -> dict[str, list[Tensor]]:
        """What a step is judged by."""
        moments = [state["exp_avg"] for state in self.updater.optimizer.state.values()]
        parts = {"loss": [self.total], "gradients": moments, "weights": self.parameters}
        return {name: [tensor.detach().clone() for tensor in part] for name, part in parts.items()}

    def _difference(self, start: dict[str, list[Tensor]], expected: dict[str, list[Tensor]]) -> str:
        """Why what the graph computed is not what was expected; empty where it is."""
        for name, found in self._outcome().items():
            share = _distance(found, expected[name]) / _distance(expected[name], start[name])
            if not share <= TOLERANCES[name]:
                return f"a graph's {name} differ from those of the same step without it ({share:.2g} of what changes)"
        return ""


def _distance(some: list[Tensor], others: list[Tensor]) -> float:
    return torch.stack([(a - b).norm() for a, b in zip(some, others, strict=True)]).norm().item()
