import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.mirrored import mirrored_documents
from symbert.corpus.language_model import estimate, write_arpa
from symbert.corpus.perplexity import harmful_perplexity, words
from symbert.corpus.sources import HARMFUL_MODEL
from symbert.errors import DataError, MissingInputError

# The 25 code points with the Unicode property White_Space.
RUST_WHITE_SPACE = {
    *range(9, 14),
    32,
    0x85,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
}


@given(st.text(st.sampled_from([*map(chr, sorted(RUST_WHITE_SPACE)), *"ab\x1c\x1f\u200b\u180e\ufeff\u00ad"])))
def test_words_stand_between_unicode_white_space(text):
    spaced = "".join(" " if ord(character) in RUST_WHITE_SPACE else character for character in text)
    assert words(text) == [word for word in spaced.split(" ") if word]


def test_separators_that_only_python_splits_at_stay_in_their_word():
    assert "\x1c".isspace()
    assert words("a\x1cb\u00a0c") == ["a\x1cb", "c"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "en.arpa"
    write_arpa(estimate(["the file is read", "the file is the file"] * 3, ["click the button"]), path)
    return path


def test_perplexity_is_the_formula_over_words_and_the_end(model):
    unigrams = {}
    bigrams = {}
    backoffs = {}
    for line in model.read_text().splitlines():
        log10, *columns = line.split("\t")
        if len(columns) == 2:
            unigrams[columns[0]], backoffs[columns[0]] = float(log10), float(columns[1])
        elif columns:
            bigrams[tuple(columns[0].split())] = float(log10)
    sentence = ["<s>", "click", "the", "file", "<unk>", "</s>"]
    total = 0.0
    for history, word in pairwise(sentence):
        seen = bigrams.get((history, word))
        total += backoffs[history] + unigrams[word] if seen is None else seen
    expected = math.pow(10, -total / 5)
    assert harmful_perplexity(model)("click the\n file\u00a0zebra") == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "in_words"),
    [
        ("click the\0file", "click zebra"),
        ("click \0 the file", "click zebra the file"),
        ("click\0 the file\0 is\0\0 read", "zebra the zebra zebra read"),
        ("\0", "zebra"),
    ],
)
def test_a_text_does_not_end_at_a_nul_of_which_the_model_knows_no_word(model, text, in_words):
    """Upstream gives KenLM each word with its length, so that a word with a NUL is one that it does not know."""
    perplexity = harmful_perplexity(model)
    assert perplexity(text) == perplexity(in_words)


def test_an_empty_document_has_the_perplexity_of_its_end(model):
    assert harmful_perplexity(model)("") == harmful_perplexity(model)(" \n\u2003") > 1


def test_perplexity_is_a_32_bit_float_in_its_shortest_form(model):
    value = harmful_perplexity(model)("the file")
    assert value == float(str(np.float32(value)))


def test_a_missing_or_broken_model_is_named(tmp_path):
    with pytest.raises(MissingInputError, match=r"none\.arpa"):
        harmful_perplexity(tmp_path / "none.arpa")
    (tmp_path / "broken.arpa").write_text("\\data\\\nngram 1=2\n")
    with pytest.raises(DataError, match=r"broken\.arpa"):
        harmful_perplexity(tmp_path / "broken.arpa")


def test_perplexity_equals_that_of_the_mirror_to_the_last_bit(mirror):
    perplexity = harmful_perplexity(mirror / HARMFUL_MODEL.location)
    documents = [document for document in mirrored_documents(mirror) if document.metadata.harmful_pp]
    other = [document for document in documents if perplexity(document.content) != document.metadata.harmful_pp]
    assert len(documents) > 1400
    # The mirror's README: a few values at the window's edges were set by hand.
    assert all(min(abs(document.metadata.harmful_pp - edge) for edge in (5, 100_000)) < 0.01 for document in other)
    assert len(other) < 5
