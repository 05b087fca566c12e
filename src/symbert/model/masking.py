"""Masked-token corruption (BERT, §3.1) as a pure function of (seed, epoch, sequence, token)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbert.draws import Words, below, mix, stream

Ids = NDArray[np.int64]

ROWS_AT_ONCE = 64  # their words stay in the processor's cache: twice as fast as a batch of 256 at once


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

    def corrupt(self, ids: Ids, epoch: Ids, sequence: Ids) -> tuple[Ids, Ids]:
        """Corrupted ids `batch token` and the chosen positions, flat and in rising order.

        `epoch` and `sequence` (each `batch`) say which pass over which row of the corpus it is; the result
        of a row does not depend on the rows beside it. Every token has one word; only a chosen one gets a second.
        """
        keys = mix(self.seed, epoch, sequence)
        corrupted, tokens, positions = ids.copy(), ids.shape[1], [np.empty(0, np.int64)]
        for first in range(0, len(ids), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            positions.append(self._corrupt_in_place(corrupted[rows], keys[rows]) + first * tokens)
        return corrupted, np.concatenate(positions)

    def _corrupt_in_place(self, ids: Ids, keys: Words) -> Ids:
        """Replace the chosen ids of rows that lie together in memory; returns their flat positions."""
        words = stream(keys, ids.shape[1])
        candidates = np.flatnonzero(words < np.uint64(self.probability * 2**64))
        positions = candidates[~np.isin(ids.take(candidates), self.special_ids)]
        ids.reshape(-1)[positions] = self._replacements(ids.take(positions), mix(words.take(positions)))
        return positions

    def _replacements(self, originals: Ids, words: Words) -> Ids:
        """What stands in the place of each chosen id: one draw decides the kind (of ten) and the random token."""
        kind, random = np.divmod(below(words, 10 * self.vocabulary_size), self.vocabulary_size)
        return np.where(kind < 8, self.mask_id, np.where(kind < 9, random, originals))
