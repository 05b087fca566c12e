"""chrF and BLEU from sums: those that sacrebleu gives of the whole text."""

from collections import Counter

import pytest
from sacrebleu.metrics import BLEU, CHRF

from symbert.pretrain.tasks import count_matches, scores_of

REFERENCES = ["The cat sat on the mat.", "Hello there, world!", "It rains — again.", "He didn't go; she did."]
WRITTEN = ["The cat sat on a mat.", "hello world!", "", "He didn't go, she did."]


def test_sums_over_batches_give_the_scores_of_the_whole_text():
    """A process without a share of the held-out pairs adds as many numbers as the others."""
    counts = (count_matches(WRITTEN[part], REFERENCES[part]) for part in (slice(3), slice(3, 4), slice(0)))
    scores = scores_of([float(sum(column)) for column in zip(*counts, strict=True)])
    assert scores == {
        "chrf": CHRF().corpus_score(WRITTEN, [REFERENCES]).score,
        "bleu": BLEU().corpus_score(WRITTEN, [REFERENCES]).score,
    }
    assert 20 < scores["bleu"] < 80 and scores_of(count_matches([], [])) == {"chrf": 0, "bleu": 0}


def test_chrf_is_its_formula():
    """F2 of the mean precision and the mean recall of characters' n-grams up to 6, without spaces (Popović 2015)."""

    def grams(text: str, order: int) -> Counter:
        text = text.replace(" ", "")
        return Counter(text[first : first + order] for first in range(len(text) - order + 1))

    written, reference = "the cat sits", "the cat sat"
    pairs = [(grams(written, order), grams(reference, order)) for order in range(1, 7)]
    precision = sum((ours & theirs).total() / ours.total() for ours, theirs in pairs) / 6
    recall = sum((ours & theirs).total() / theirs.total() for ours, theirs in pairs) / 6
    expected = 100 * 5 * precision * recall / (4 * precision + recall)
    assert scores_of(count_matches([written], [reference]))["chrf"] == pytest.approx(expected)
