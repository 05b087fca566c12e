"""Random numbers as pure functions of what they are for: no state to save, none to replay; and masks drawn from them.

`mix` is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) folded over its arguments,
so equal words give equal bits on every platform, whatever was drawn before.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Ids = NDArray[np.int64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ROWS_AT_ONCE = 64  # their words stay in the processor's cache: twice as fast as a batch of 256 at once


def mix(*words: int | Words) -> Words:
    """64 well-mixed bits for each broadcast combination of `words` (non-negative integers below 2**64)."""
    state = np.zeros((), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in words:
            state = _fold(state, np.asarray(word).astype(np.uint64))
    return state


def _fold(state: Words, word: Words) -> Words:
    return _finalise(state + GOLDEN + word)


def stream(keys: Words, length: int) -> Words:
    """`keys length`: the first outputs of SplitMix64 started from each key, at one finalisation a word."""
    with np.errstate(over="ignore"):
        return _finalise(keys[:, None] + np.arange(1, length + 1, dtype=np.uint64) * GOLDEN)


def below(words: Words, limit: int) -> NDArray[np.int64]:
    """An integer in range(limit) from each word; no integer is likelier than another by more than 2**-52."""
    return (_fraction(words) * limit).astype(np.int64)


def _finalise(bits: Words) -> Words:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def uniform(*words: int | Words) -> NDArray[np.float64]:
    """A number in [0, 1) for each broadcast combination of `words`."""
    return _fraction(mix(*words))


def _fraction(words: Words) -> NDArray[np.float64]:
    """The upper 53 bits of each word as a number in [0, 1)."""
    return (words >> np.uint64(11)) * 2.0**-53


def permute(index: NDArray[np.int64], size: int, *key: int) -> NDArray[np.int64]:
    """Where a pseudo-random permutation of range(size), chosen by `key`, sends each index.

    A four-round Feistel network over the next power of four, walked until it lands inside the range:
    constant memory, so an epoch over 137 million sequences needs no shuffled list.
    """
    half = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
    rounds = [mix(*key, turn) for turn in range(4)]
    image = _feistel(np.asarray(index).astype(np.uint64), half, rounds)
    while (outside := image >= size).any():
        image[outside] = _feistel(image[outside], half, rounds)
    return image.astype(np.int64)


def _feistel(value: Words, half: int, rounds: list[Words]) -> Words:
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    left, right = value >> shift, value & mask
    with np.errstate(over="ignore"):
        for state in rounds:
            left, right = right, left ^ (_fold(state, right) & mask)
    return left << shift | right


@dataclass(frozen=True)
class Masker:
    """BERT's corruption (§3.1): of `probability` of the tokens 80 % become [MASK], 10 % a random token, 10 % stay.

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
