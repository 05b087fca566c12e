"""chrF and BLEU from sums: those that sacrebleu gives of the whole text."""

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
