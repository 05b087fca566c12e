"""What a model learns and predicts from its outputs, by what a task asks.

A head says which model has its outputs and how many rows, one after the other, are one example (they are drawn
together); it reads the labels of prepared rows, gives the mean loss of examples, and predictions, of which
`symbert.glue.metrics` makes scores. The outputs of a row are those of its [CLS]; `Spans` has outputs for all tokens.
"""

import numpy as np
import pyarrow as pa
from torch import Tensor
from torch.nn import functional as F

from symbert.glue.tasks import CHOICES, Task
from symbert.model.bert import Classifier, SpanModel


class Classes:
    """An output for each class; the cross-entropy in nats; the class with the highest output."""

    model = Classifier
    rows_of_example = 1
    label: type = np.int64
    predicted: type = np.int64

    def labels(self, column: pa.ChunkedArray) -> np.ndarray:
        """Labels `row` of prepared rows."""
        return column.to_numpy().astype(self.label)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean over rows, of logits `row label` and labels `row`."""
        return F.cross_entropy(logits, labels)

    def of_rows(self, logits: Tensor) -> Tensor:
        """A class for each row."""
        return logits.argmax(dim=1)


class Grades(Classes):
    """One output, which is the grade; the squared error."""

    label = np.float32
    predicted = np.float64

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean over rows, of logits `row 1` and grades `row`."""
        return F.mse_loss(logits[:, 0], labels.to(logits.dtype))

    def of_rows(self, logits: Tensor) -> Tensor:
        """A grade for each row."""
        return logits[:, 0]


class Choices(Grades):
    """One output for each of two rows, of which one is right; the cross-entropy between them."""

    rows_of_example = CHOICES
    label = np.int64

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean over examples, of logits `row 1` and labels `row`, 1 for the right one of two."""
        right = labels.view(-1, self.rows_of_example).argmax(dim=1)
        return F.cross_entropy(logits.view(-1, self.rows_of_example), right)


class Candidates(Classes):
    """Learns as `Classes` whether a row is right; predicts the log odds, by which the rows of a group are ranked."""

    predicted = np.float64

    def of_rows(self, logits: Tensor) -> Tensor:
        """Log odds of each row."""
        return logits[:, 1] - logits[:, 0]


class Spans:
    """Two outputs for each token of a row; the cross-entropy over tokens of the first and the last of the answer.

    `symbert.glue.spans.answers_of` makes predictions of them.
    """

    model = SpanModel
    rows_of_example = 1

    def labels(self, column: pa.ChunkedArray) -> np.ndarray:
        """The first and the last token `row 2` of the answer in prepared rows."""
        return column.combine_chunks().flatten().to_numpy().astype(np.int64).reshape(-1, 2)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean over rows, of logits `row token 2`, −∞ where a row has no token, and places `row 2` of the answer."""
        return F.cross_entropy(logits, labels, reduction="none").mean(dim=1).mean()


Head = Classes | Spans
HEADS: dict[str, Head] = {
    "classes": Classes(),
    "grades": Grades(),
    "choices": Choices(),
    "candidates": Candidates(),
    "spans": Spans(),
}


def head_of(task: Task) -> Head:
    """The head of a task."""
    return HEADS[task.head]
