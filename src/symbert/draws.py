"""Random numbers as pure functions of what they are for: no state to save, none to replay.

`mix` is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) folded over its arguments,
so equal words give equal bits on every platform, whatever was drawn before.
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(*words: int | Words) -> Words:
    """64 well-mixed bits for each broadcast combination of `words` (non-negative integers below 2**64)."""
    state = np.zeros((), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in words:
            state = _finalise(state + GOLDEN + np.asarray(word).astype(np.uint64))
    return state


def _finalise(bits: Words) -> Words:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def uniform(*words: int | Words) -> NDArray[np.float64]:
    """A number in [0, 1) for each broadcast combination of `words`."""
    return (mix(*words) >> np.uint64(11)) * 2.0**-53


def permute(index: NDArray[np.int64], size: int, *key: int) -> NDArray[np.int64]:
    """Where a pseudo-random permutation of range(size), chosen by `key`, sends each index.

    A four-round Feistel network over the next power of four, walked until it lands inside the range:
    constant memory, so an epoch over 137 million sequences needs no shuffled list.
    """
    half = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
    image = _feistel(np.asarray(index).astype(np.uint64), half, key)
    while (outside := image >= size).any():
        image[outside] = _feistel(image[outside], half, key)
    return image.astype(np.int64)


def _feistel(value: Words, half: int, key: tuple[int, ...]) -> Words:
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    left, right = value >> shift, value & mask
    for turn in range(4):
        left, right = right, left ^ (mix(*key, turn, right) & mask)
    return left << shift | right
