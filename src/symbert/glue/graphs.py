"""Fine-tuning on a GPU: a whole step, from gathered rows to moved weights, is recorded as one CUDA graph
(`symbert.pretrain.graphs`).

Rows are padded to a few lengths, with a graph each. All that changes from step to step lies in tensors: the numbers of
the rows, the weights of examples in the loss, and the learning rate.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from symbert.configuration import GlueSettings
from symbert.glue.train import DROPOUTS, Packed, Steps, TaskRows, Trainee
from symbert.model.bert import PLAIN, Classifier, Layer, SpanModel, is_token_wise
from symbert.pretrain.compute import autocast
from symbert.pretrain.graphs import Recorded, Recorder, refuse

STRIDE = 16  # the lengths of padded rows are its multiples: few lengths, of which a GPU keeps its plans
GRAPH_STRIDE = 32  # of those that have a graph each


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


class GraphSteps(Steps, Recorded):
    """The optimizer steps of a fine-tuning, each one replay of the graph of its length."""

    trainee: Padded

    def __init__(self, trainee: Padded, rows: TaskRows, settings: GlueSettings, recorder: Recorder) -> None:
        Steps.__init__(self, trainee, rows, settings, capturable=True)
        Recorded.__init__(self, trainee.model, recorder, rows.labels.device)
        if trainee.precision == "fp16":
            refuse(recorder, "in fp16 the scale of the loss is decided outside the step; bf16 has graphs")
        self.peak = settings.learning_rate
        self.examples, self.size = min(settings.batch_size, rows.examples), rows.task.rows_of_example
        self.index = torch.zeros(self.examples * self.size, dtype=torch.int64, device=self.device)
        self.shares, self.rate, self.total = (
            torch.zeros(shape, dtype=self.parameters[0].dtype, device=self.device) for shape in (self.examples, (), ())
        )
        self.done = 0  # steps since the losses were read
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
        self.compute(length, partial(self._compute, length))
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
        self.updater.optimizer.zero_grad(set_to_none=True)  # a recording that failed may have left gradients
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

    def kept(self) -> list[Tensor]:
        """As of all recorded work."""
        moments = [values for state in self.updater.optimizer.state.values() for values in state.values()]
        return [self.index, self.shares, self.rate, self.total, *self.parameters, *moments]

    def other_rows(self) -> None:
        """As of all recorded work: the first example for all, at the highest rate."""
        self.index.copy_(self.index[: self.size].repeat(self.examples))
        self.shares.fill_(1 / self.examples)
        self.rate.fill_(self.peak)

    def outcome(self) -> dict[str, list[Tensor]]:
        """As of all recorded work."""
        moments = [state["exp_avg"] for state in self.updater.optimizer.state.values()]
        return {"loss": [self.total], "gradients": moments, "weights": self.parameters}
