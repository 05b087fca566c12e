"""The likelihood of rows of tokens under a model of any architecture, by which minimal pairs are judged.

Rows of one length are computed together, so that there is no padding, and in parts of bounded memory.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from symbert.model.bert import DecoderModel

# Computed at a time: 16 MiB. Larger blocks (32 MiB and more) the C library gives back each time: 1.5 × the time.
MOST_LOGITS = 2**22
MOST_TOKENS = 2**14  # read at a time


@torch.inference_mode()
def log_likelihoods(model: nn.Module, rows: Sequence[Sequence[int]], mask_id: int) -> Tensor:
    """The log likelihood in nats of each of `rows`, ids [CLS] … [SEP] (`row`, float64, on the CPU).

    A decoder sums over tokens the log probability of each given those before it; a masked model that of each given all
    others, while it alone is masked: the pseudo-log-likelihood (Salazar et al., "Masked Language Model Scoring", ACL
    2020, equation 1). It is a MaskedModel, or has its `masked_logits`. The special tokens at both ends are read, but do
    not count.
    """
    totals, device = torch.zeros(len(rows), dtype=torch.float64), next(model.parameters()).device
    lengths, vocabulary_size = np.array([len(row) for row in rows]), model.config.vocab_size
    model.eval()
    for length in np.unique(lengths[lengths > 2]).tolist():  # of rows with a token between both ends
        index = np.flatnonzero(lengths == length)
        ids = torch.tensor([rows[place] for place in index.tolist()])
        index = torch.from_numpy(index)
        if isinstance(model, DecoderModel):
            most = max(1, min(MOST_TOKENS // length, MOST_LOGITS // (vocabulary_size * length)))
            for part, positions in zip(ids.split(most), index.split(most), strict=True):
                logits = model(part[:, :-2].to(device))  # [SEP] and its successor do not count
                totals[positions] = _log_probabilities(logits, part[:, 1:-1].to(device)).sum(dim=1)
            continue
        most = max(1, min(MOST_TOKENS // length, MOST_LOGITS // vocabulary_size))
        copies = torch.cartesian_prod(torch.arange(len(ids)), torch.arange(1, length - 1))  # a row, a masked place
        for row, place in (part.unbind(1) for part in copies.split(most)):
            masked, number = ids[row], torch.arange(len(row))
            targets = masked[number, place]
            masked[number, place] = mask_id
            logits = model.masked_logits(masked.to(device), (number * length + place).to(device))
            totals.index_add_(0, index[row], _log_probabilities(logits, targets.to(device)))
    return totals


def _log_probabilities(logits: Tensor, targets: Tensor) -> Tensor:
    """Of the targets `…` under logits `… vocab`, float64 on the CPU."""
    logits = logits if logits.dtype == torch.float64 else logits.float()
    chosen = logits.gather(-1, targets[..., None])[..., 0]
    return (chosen - logits.logsumexp(dim=-1)).double().cpu()
