"""chrF and BLEU from sums: those that sacrebleu gives of the whole text."""

from collections import Counter

import pytest
from sacrebleu.metrics import BLEU, CHRF

from symbert.pretrain.tasks import count_matches, scores_of

REFERENCES = ["The cat sat on the mat.", "Hello there, world!", "It rains — again.", "He didn't go; she did."]
WRITTEN = ["The cat sat on a mat.", "hello world!", "", "He didn't go, she did."]


def test_sums_over_batches_give_the_scores_of_the_whole_text():
    one, other = count_matches(WRITTEN[:3], REFERENCES[:3]), count_matches(WRITTEN[3:], REFERENCES[3:])
    scores = scores_of([float(first + second) for first, second in zip(one, other, strict=True)])
    assert scores == {
        "chrf": CHRF().corpus_score(WRITTEN, [REFERENCES]).score,
        "bleu": BLEU().corpus_score(WRITTEN, [REFERENCES]).score,
    }
    assert 20 < scores["bleu"] < 80


def test_chrf_is_its_formula():
    """F2 of the mean precision and the mean recall of characters' n-grams up to 6, without spaces (Popović 2015)."""

    def grams(text: str, order: int) -> Counter:
        text = "".join(text.split())
        return Counter(text[first : first + order] for first in range(len(text) - order + 1))

    written, reference = "the cat sits", "the cat sat"
    common, one, other = ([], [], [])
    for order in range(1, 7):
        first, second = grams(written, order), grams(reference, order)
        common.append((first & second).total())
        one.append(first.total())
        other.append(second.total())
    precision, recall = (
        sum(share / count for share, count in zip(common, counts, strict=True)) / 6 for counts in (one, other)
    )
    expected = 100 * 5 * precision * recall / (4 * precision + recall)
    assert scores_of(count_matches([written], [reference]))["chrf"] == pytest.approx(expected)


def test_text_that_was_cut_into_words_scores_less():
    """Scored are lines as somebody would write them: spaces around signs are mistakes of chrF's or of BLEU's words."""
    cut = ["He did n't go ; she did ."]
    assert scores_of(count_matches(cut, REFERENCES[3:]))["bleu"] < 100
    assert scores_of(count_matches(REFERENCES[3:], REFERENCES[3:])) == pytest.approx({"chrf": 100, "bleu": 100})


def test_nothing_counts_nothing():
    """A process without a share of the held-out pairs adds as many numbers as the others."""
    counts = count_matches([], [])
    assert counts == [0] * len(count_matches(WRITTEN, REFERENCES)) and scores_of(counts) == {"chrf": 0, "bleu": 0}
