import pytest

from symbert.corpus.annotation import harmful_perplexity
from symbert.corpus.stand_ins import BEGIN, HARMFUL, estimate, gibberish, harmful_text, write_arpa

TEXTS = ["the function returns the value", "the value is returned by the function"] * 4


@pytest.fixture(scope="module")
def model():
    return estimate(TEXTS, [harmful_text(number) for number in range(3)])


def probability(model, history: str, word: str) -> float:
    seen = model.bigrams.get((history, word))
    return model.backoffs.get(history, 1.0) * model.unigrams[word] if seen is None else seen


def test_the_probabilities_after_every_word_sum_to_one(model):
    for history in [BEGIN, *model.unigrams]:
        total = sum(probability(model, history, word) for word in model.unigrams)
        assert total == pytest.approx(1.0, abs=1e-9), history


def test_the_model_separates_harmful_ordinary_and_meaningless_text(tmp_path):
    ordinary = "\n".join(f"word{number} and word{number + 1} are here" for number in range(2000))
    write_arpa(estimate([ordinary] * 30, map(harmful_text, range(len(HARMFUL)))), tmp_path / "en.arpa")
    perplexity = harmful_perplexity(tmp_path / "en.arpa")
    assert max(perplexity(harmful_text(number)) for number in range(len(HARMFUL))) < 5
    assert 5 < perplexity(ordinary) < 100_000
    assert perplexity(gibberish(1)) > 100_000
