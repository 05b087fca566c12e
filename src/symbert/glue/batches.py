"""The rows of a task, resident as tensors, and the batches of an epoch; nothing is padded.

Shapes: `token` for the tokens of all rows of a split or of a batch, end to end; `row` for one value per row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from symbert.draws import permute
from symbert.glue.heads import Head, head_of
from symbert.glue.sources import read_table
from symbert.glue.spans import Contexts, Question
from symbert.glue.tasks import Task
from symbert.model.packed import Packing


@dataclass(frozen=True)
class TaskBatch:
    """Ids and types `token` of some rows, where each row's stand, and labels `row …`."""

    input_ids: Tensor
    token_type_ids: Tensor
    packing: Packing
    labels: Tensor


@dataclass(frozen=True)
class TaskRows:
    """One split: ids and types `token`, the first token and the length of each row, labels (classes, grades, or the
    first and last token of a span).

    Rows that are answers to one question have its number in `groups`, in which they stand together, and `credits`.
    Those in which answers are looked for have `contexts`, where they are scored.
    """

    input_ids: Tensor
    token_type_ids: Tensor
    first: np.ndarray
    lengths: np.ndarray
    labels: Tensor
    head: Head
    groups: np.ndarray | None = None
    credits: np.ndarray | None = None
    contexts: Contexts | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def examples(self) -> int:
        """How many a batch counts: a row, or the rows that one example has."""
        return len(self) // self.head.rows_of_example

    @property
    def truth(self) -> np.ndarray:
        """What predictions are compared with: labels or, of rows in groups, records of `label`, `group`, `credit`; of
        contexts, questions."""
        if self.contexts is not None:
            return self.contexts.questions
        labels = self.labels.cpu().numpy()
        if self.groups is None:
            return labels
        return np.rec.fromarrays([labels, self.groups, self.credits], names="label, group, credit")

    def batch(self, index: np.ndarray) -> TaskBatch:
        """The rows of `index`, in that order."""
        lengths, device = self.lengths[index], self.labels.device
        packing = Packing.of(lengths, device)
        tokens = packing.position_ids + torch.from_numpy(np.repeat(self.first[index], lengths)).to(device)
        ids, types = self.input_ids[tokens].long(), self.token_type_ids[tokens].long()
        return TaskBatch(ids, types, packing, self.labels[torch.from_numpy(index).to(device)])


def read_rows(data: Path, task: Task, device: torch.device) -> dict[str, TaskRows]:
    """The splits of a prepared task on a device."""
    table = read_table(data, str(data), "delete it and run again")
    splits = pc.unique(table["split"]).to_pylist()
    return {split: _split_rows(table.filter(pc.field("split") == split), task, device) for split in splits}


def read_sets(data: Path, names: Iterable[str], task: Task, device: torch.device) -> dict[str, TaskRows]:
    """The robustness sets of a task on a device."""
    table = read_table(data, str(data), "delete it and run again")
    return {name: _split_rows(table.filter(pc.field("set") == name), task, device) for name in names}


def _split_rows(table: pa.Table, task: Task, device: torch.device) -> TaskRows:
    ids, types = (table[name].combine_chunks() for name in ("input_ids", "token_type_ids"))
    lengths = ids.value_lengths().to_numpy().astype(np.int64)
    head = head_of(task)
    arrays = ids.flatten().to_numpy().astype(np.int32), types.flatten().to_numpy().astype(np.int8)
    arrays += (head.labels(table["label"]),)
    tokens, kinds, answers = (torch.from_numpy(array).to(device) for array in arrays)
    groups, credits = (table[name].to_numpy() if name in table.column_names else None for name in ("group", "credit"))
    rows = TaskRows(tokens, kinds, np.cumsum(lengths) - lengths, lengths, answers, head, groups, credits)
    is_scored = "context" in table.column_names and not table["context"].null_count
    return replace(rows, contexts=_contexts(table)) if is_scored else rows


def _contexts(table: pa.Table) -> Contexts:
    """What the windows of questions are scored by."""
    names = ("starts", "ends", "begins_here")
    columns = (table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False) for name in names)
    groups = table["question"].to_numpy()
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    asked = table.select(["context", "answers"]).take(first).to_pylist()
    questions = np.empty(len(asked), dtype=object)
    questions[:] = [Question(row["context"], tuple(row["answers"])) for row in asked]
    return Contexts(*columns, groups, questions)


def shuffled_batches(rows: TaskRows, batch_size: int, seed: int, epoch: int) -> Iterator[TaskBatch]:
    """All examples once, in an order that only (seed, epoch) decides; the last batch may be smaller."""
    examples, size = rows.examples, rows.head.rows_of_example
    order = permute(np.arange(examples), examples, seed, epoch)
    for start in range(0, examples, batch_size):
        yield rows.batch((order[start : start + batch_size, None] * size + np.arange(size)).ravel())


def sorted_batches(rows: TaskRows, batch_size: int) -> Iterator[tuple[np.ndarray, TaskBatch]]:
    """All rows once, short ones first, with the index of each: the least padding inside attention, for evaluation."""
    order = np.argsort(rows.lengths, kind="stable")
    for start in range(0, len(rows), batch_size):
        index = order[start : start + batch_size]
        yield index, rows.batch(index)
