"""Pairs of sequences whose tokens must be aligned: what encoder-decoders are trained on. Imports no torch.

A source begins with the token of its task: its letters are written in reverse, or again without those that are deleted,
or each as its substitute.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from symbert.draws import Words, below, mix, permute, stream
from symbert.hosts import HELD_OUT_PAIRS, LETTERS, LONGEST, SHORTEST, TASKS_OF_PAIRS

Ids = NDArray[np.int64]
Pairs = tuple[Ids, Ids]

TRAINING, VALIDATION = 1, 2  # of what a pair is drawn
PADDING, START, END = 0, 1, 2
FIRST_TASK = 3
FIRST_LETTER = FIRST_TASK + len(TASKS_OF_PAIRS)
DELETED = LETTERS // 4  # so many letters, the first ones, are never written in the task of deletions
SUBSTITUTES = FIRST_LETTER + permute(np.arange(LETTERS), LETTERS, 0)


def split_pairs(seed: int) -> tuple[Callable[[Ids], Pairs], Pairs]:
    """What a run with this seed is trained on, by the numbers of pairs, and what is held out for all runs."""
    held_out = pairs_of(mix(0, VALIDATION, np.arange(HELD_OUT_PAIRS)))
    return lambda numbers: pairs_of(mix(seed, TRAINING, numbers)), held_out


def pairs_of(keys: Words) -> Pairs:
    """Sources `row token` and targets `row token`, one pair for each key, padded to the longest that there may be.

    A source has its task and its letters, a target START, what is to be written, and END.
    """
    words = stream(keys, 2 + LONGEST)
    tasks, lengths = below(words[:, 0], len(TASKS_OF_PAIRS)), SHORTEST + below(words[:, 1], LONGEST - SHORTEST + 1)
    letters = FIRST_LETTER + below(words[:, 2:], LETTERS)
    sources, targets = (np.full((len(keys), tokens), PADDING, np.int64) for tokens in (1 + LONGEST, 2 + LONGEST))
    for row, (task, length) in enumerate(zip(tasks.tolist(), lengths.tolist(), strict=True)):
        read = letters[row, :length]
        written = answer_of(TASKS_OF_PAIRS[task], read)
        sources[row, : 1 + length] = [FIRST_TASK + task, *read]
        targets[row, : 2 + len(written)] = [START, *written, END]
    return sources, targets


def answer_of(task: str, letters: Ids) -> Ids:
    """What is to be written of letters."""
    if task == "reverse":
        return letters[::-1]
    if task == "delete":
        return letters[letters >= FIRST_LETTER + DELETED]
    return SUBSTITUTES[letters - FIRST_LETTER]
