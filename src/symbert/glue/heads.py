"""What a classifier learns and predicts from its outputs, by kind of task; a row's outputs are those of its [CLS].

A head says which model has its outputs and how many rows, one after the other, are one example (they are drawn
together), gives the loss of each example or their mean, and a prediction for each row: the metrics of
`symbert.glue.metrics` make scores of these. Outputs of all tokens are made predictions of in `symbert.glue.spans`.
"""

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from symbert.model.network import Classifier, SpanModel
from symbert.suites import Task


class Classes:
    """An output for each class; the cross-entropy in nats; the class with the highest output."""

    model = Classifier
    rows_of_example = 1
    predicted: type = np.int64

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Of logits `row label` and labels `row`; `reduction` none: a loss for each example."""
        return F.cross_entropy(logits, labels, reduction=reduction)

    def predictions(self, logits: Tensor) -> Tensor:
        """A class for each row."""
        return logits.argmax(dim=1)


class Grades:
    """One output, which is the grade; the squared error."""

    model = Classifier
    rows_of_example = 1
    predicted: type = np.float64

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Of logits `row 1` and grades `row`."""
        return F.mse_loss(logits[:, 0], labels.to(logits.dtype), reduction=reduction)

    def predictions(self, logits: Tensor) -> Tensor:
        """A grade for each row."""
        return logits[:, 0]


class Choices(Grades):
    """One output for each of two rows, of which one is right; the cross-entropy between them."""

    rows_of_example = 2

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Of logits `row 1` and labels `row`, 1 for the right one of two."""
        right = labels.view(-1, self.rows_of_example).argmax(dim=1)
        return F.cross_entropy(logits.view(-1, self.rows_of_example), right, reduction=reduction)


class Candidates(Classes):
    """Learns as `Classes` whether a row is right; predicts the log odds, by which the rows of a group are ranked."""

    predicted = np.float64

    def predictions(self, logits: Tensor) -> Tensor:
        """Log odds of each row."""
        return logits[:, 1] - logits[:, 0]


class Spans:
    """Two outputs for each token of a row; the cross-entropy over tokens of the first and the last of the answer."""

    model = SpanModel
    rows_of_example = 1

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Of logits `row token 2`, −∞ where a row has no token, and the places `row 2` of the answer."""
        losses = F.cross_entropy(logits, labels, reduction="none").mean(dim=1)
        return losses.mean() if reduction == "mean" else losses


Head = Classes | Grades | Spans
HEADS: dict[str, Head] = {
    "classes": Classes(),
    "choices": Choices(),
    "candidates": Candidates(),
    "spans": Spans(),
}


def head_of(task: Task) -> Head:
    """The head of a task."""
    return HEADS[task.head] if task.labels else Grades()
