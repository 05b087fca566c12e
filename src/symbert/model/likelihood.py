"""How likely a model finds rows of tokens, whatever host it is: what minimal pairs are judged by.

Rows of one length are computed together, so that nothing is padded, and in parts of bounded memory.
"""

from collections.abc import Iterator, Sequence
from functools import singledispatch

import numpy as np
import torch
from torch import Tensor, nn

from symbert.model.bert import DecoderModel, MaskedModel

# Computed at a time: 16 MiB. Larger blocks (32 MiB and more) the C library gives back each time: 1.5 × the time.
MOST_LOGITS = 2**22
MOST_TOKENS = 2**14  # read at a time


@singledispatch
def log_likelihoods(model: nn.Module, rows: Sequence[Sequence[int]], mask_id: int) -> Tensor:
    """Of each of `rows`, ids [CLS] … [SEP], the log likelihood in nats (`row`, float64, on the CPU).

    The special tokens at both ends are read, but do not count. TypeError for a model that gives no likelihood.
    """
    raise TypeError(f"{type(model).__name__} says of no row how likely it is")


@log_likelihoods.register
@torch.inference_mode()
def _of_masked(model: MaskedModel, rows: Sequence[Sequence[int]], mask_id: int) -> Tensor:
    """Pseudo-log-likelihoods (Salazar et al., "Masked Language Model Scoring", ACL 2020, equation 1): the sum over
    tokens of the log probability of each, given all others, while it alone is masked."""
    totals, device = torch.zeros(len(rows), dtype=torch.float64), next(model.parameters()).device
    model.eval()
    for index, ids in _of_one_length(rows):
        length = ids.shape[1]
        row = torch.arange(len(ids)).repeat_interleave(length - 2)
        place = torch.arange(1, length - 1).repeat(len(ids))
        most = max(1, min(MOST_TOKENS // length, MOST_LOGITS // model.config.vocab_size))
        for rows_of, places in zip(row.split(most), place.split(most), strict=True):
            each = torch.arange(len(rows_of))
            copies = ids[rows_of]
            targets = copies[each, places]
            copies[each, places] = mask_id
            logits = model.masked_logits(copies.to(device), (each * length + places).to(device))
            totals.index_add_(0, index[rows_of], _log_probabilities(logits, targets.to(device)))
    return totals


@log_likelihoods.register
@torch.inference_mode()
def _of_decoder(model: DecoderModel, rows: Sequence[Sequence[int]], mask_id: int) -> Tensor:
    """The sum over tokens of the log probability of each, given those before it."""
    totals, device = torch.zeros(len(rows), dtype=torch.float64), next(model.parameters()).device
    model.eval()
    for index, ids in _of_one_length(rows):
        length = ids.shape[1]
        most = max(1, min(MOST_TOKENS // length, MOST_LOGITS // (model.config.vocab_size * length)))
        for part, positions in zip(ids.split(most), index.split(most), strict=True):
            logits = model.logits(part[:, :-2].to(device))  # [SEP], and what would follow it, do not count
            totals[positions] = _log_probabilities(logits, part[:, 1:-1].to(device)).sum(dim=1)
    return totals


def _log_probabilities(logits: Tensor, targets: Tensor) -> Tensor:
    """Of the targets `…` under logits `… vocab`, float64 on the CPU."""
    logits = logits if logits.dtype == torch.float64 else logits.float()
    chosen = logits.gather(-1, targets[..., None])[..., 0]
    return (chosen - logits.logsumexp(dim=-1)).double().cpu()


def _of_one_length(rows: Sequence[Sequence[int]]) -> Iterator[tuple[Tensor, Tensor]]:
    """The rows with a token between both ends as tensors `row token`, each with their places among all, short first."""
    lengths = np.array([len(row) for row in rows])
    for length in np.unique(lengths[lengths > 2]):
        index = np.flatnonzero(lengths == length)
        yield torch.from_numpy(index), torch.tensor([rows[place] for place in index.tolist()])
