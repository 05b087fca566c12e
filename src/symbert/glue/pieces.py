"""Fine-tuning the embeddings of the word pieces that a task has, and leaving the others where they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from torch import nn

from symbert.glue.batches import Rows


@contextmanager
def own_pieces(model: nn.Module, rows: Rows) -> Iterator[Rows]:
    """Give the model the embeddings of the pieces in `rows` alone, and these rows numbered accordingly.

    At the end the trained embeddings are put back among the others, which no row has moved: without weight decay
    exactly as if all had been in the optimizer, at less than half its cost.
    """
    embeddings = model.bert.embeddings
    every = embeddings.word_embeddings
    pieces, numbers = rows.input_ids.unique(return_inverse=True)
    padding = (pieces == every.padding_idx).nonzero().flatten().tolist()  # a text may spell it: it is not trained
    embeddings.word_embeddings = nn.Embedding.from_pretrained(
        every.weight.detach()[pieces], freeze=False, padding_idx=padding[0] if padding else None
    )
    try:
        yield replace(rows, input_ids=numbers)
    finally:
        every.weight.data[pieces] = embeddings.word_embeddings.weight.data
        embeddings.word_embeddings = every
