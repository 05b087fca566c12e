"""Against what each kind must leave as it is, and against the shares that a fair draw gives."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbert.glue.noise import KINDS, NEIGHBOURS, noisy

ALL = (*KINDS, "mixed")
any_text = st.text(st.characters(exclude_categories=()), max_size=30) | st.text("abC é1,\n", max_size=30)
shares = st.floats(0, 1)
LETTER, OTHER = re.compile(r"[A-Za-z]"), re.compile(r"[^A-Za-z]")


def words(text):
    return OTHER.split(text)


def is_within(text, longer):
    rest = iter(longer)
    return all(character in rest for character in text)


@settings(max_examples=60)
@given(st.lists(any_text, max_size=4), st.sampled_from(ALL), shares, st.integers(0, 2**31 - 1))
def test_only_letters_are_struck_whatever_the_text(texts, kind, share, row):
    found = noisy(texts, kind, share, row)
    assert found == noisy(texts, kind, share, row)
    assert [LETTER.sub("", text) for text in found] == [LETTER.sub("", text) for text in texts]
    assert noisy(texts, kind, 0.0, row) == texts


@settings(max_examples=60)
@given(any_text, shares)
def test_each_kind_does_what_it_says_within_words(text, share):
    swapped, dropped, inserted, hit = (noisy([text], kind, share, 1)[0] for kind in KINDS)
    assert [Counter(word) for word in words(swapped)] == [Counter(word) for word in words(text)]
    assert is_within(dropped, text) and is_within(text, inserted)
    assert len(hit) == len(text)
    for before, after in zip(text, hit, strict=True):
        assert after == before or (after.lower() in NEIGHBOURS[before.lower()] and after.isupper() == before.isupper())


@given(st.lists(any_text, min_size=1, max_size=4), st.sampled_from(ALL), shares)
def test_the_noise_of_a_text_depends_on_its_own_numbers_alone(texts, kind, share):
    numbers = np.arange(len(texts)) + 5
    alone = [noisy([text], kind, share, 2, int(number), 0)[0] for text, number in zip(texts, numbers, strict=True)]
    assert noisy(texts, kind, share, 2, numbers, 0) == alone


LETTERS = 40_000


def check_share(count, trials, probability):
    """A count of independent trials is within 5 standard deviations of its mean."""
    assert abs(count - trials * probability) < 5 * math.sqrt(trials * probability * (1 - probability)) + 1e-9


@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
def test_the_share_of_changed_letters_is_the_one_asked_for(share):
    """A swap moves two letters, so each letter begins one with half of the share."""
    text = "word " * (LETTERS // 4)
    dropped, inserted, hit = (noisy([text], kind, share, 3)[0] for kind in ("drop", "insert", "keyboard"))
    struck = sum(before != after for before, after in zip(text, hit, strict=True))
    check_share(struck, LETTERS, share)
    assert len(text) - len(dropped) == len(inserted) - len(text) == struck
    pairs = noisy(["ab " * (LETTERS // 2)], "swap", share, 4)[0].split()
    check_share(pairs.count("ba"), len(pairs), 1 - (1 - share / 2) ** 2)


def test_kinds_letters_and_neighbouring_keys_are_drawn_evenly():
    found = noisy(["a " * LETTERS], "mixed", 0.4, 5)[0].split(" ")[:-1]  # a single letter cannot be swapped
    kinds = Counter("drop" if not word else "insert" if len(word) == 2 else "keyboard" for word in found if word != "a")
    for kind in ("drop", "insert", "keyboard"):
        check_share(kinds[kind], LETTERS, 0.1)
    inserted = Counter(word[1] for word in noisy(["g " * LETTERS], "insert", 1.0, 6)[0].split())
    hit = Counter(noisy(["g " * LETTERS], "keyboard", 1.0, 6)[0].split())
    assert len(inserted) == 26 and set(hit) == set("tyfhvb")
    for count, probability in ((inserted, 1 / 26), (hit, 1 / 6)):
        for letters in count.values():
            check_share(letters, LETTERS, probability)


def test_the_noise_is_the_same_on_any_machine_and_another_in_each_row():
    text = "The quick brown fox doesn't jump over 12 lazy dogs."
    assert noisy([text], "mixed", 0.2, 1, 2, 0) == ["The quick vrown fxo dojesh't jump over 12 layz dogs."]
    assert noisy(["abc d, Xy"], "swap", 2.0, 0) == ["bca d, yX"], "each letter struck"
    assert noisy(["ab1 cé d"], "drop", 1.0, 0) == ["1 é "]
    assert len(set(noisy(["the same words"] * 50, "mixed", 0.4, 1, np.arange(50)))) > 45
    assert noisy(["the same words"], "mixed", 0.4, 1, 0) != noisy(["the same words"], "mixed", 0.4, 2, 0)
