"""Masked-token corruption (BERT, §3.1) as a pure function of (seed, epoch, sequence)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbert.draws import uniform

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Masker:
    """Chooses `probability` of the tokens: 80 % become [MASK], 10 % a random token, 10 % stay.

    Special tokens are never chosen. A random token is any of the vocabulary, as in Hugging Face's collator.
    """

    seed: int
    probability: float
    vocabulary_size: int
    mask_id: int
    special_ids: tuple[int, ...]

    def corrupt(self, ids: Ids, epoch: Ids, sequence: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        """Corrupted ids and the chosen positions, both `batch token`.

        `epoch` and `sequence` (each `batch`) say which pass over which row of the corpus it is; the result
        of a row does not depend on the rows beside it.
        """
        token = np.arange(ids.shape[1])
        row = (self.seed, epoch[:, None], sequence[:, None], token)
        chosen = (uniform(*row, 0) < self.probability) & ~np.isin(ids, self.special_ids)
        kind = uniform(*row, 1)
        random = (uniform(*row, 2) * self.vocabulary_size).astype(np.int64)
        corrupted = np.where(kind < 0.8, self.mask_id, np.where(kind < 0.9, random, ids))
        return np.where(chosen, corrupted, ids), chosen
