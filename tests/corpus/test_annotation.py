import math
import unicodedata
from collections import Counter
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.oscar import mirrored_documents
from symbert.corpus.annotation import annotator, are_noisy, harmful_perplexity, quality_warnings, words
from symbert.corpus.document import Document, Metadata, WarcHeaders
from symbert.errors import DataError
from symbert.sources import DEMO, HARMFUL_MODEL

LONG = "word " * 20 + "ending"  # 106 letters and spaces
SHORT = "word"
MARKS_AND_LETTERS = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me"}


WARNED = [  # for headers and footers bytes count
    *(([LONG] * 5, []), ([LONG] * 4, ["tiny"]), ([""], ["tiny"]), ([LONG] * 4 + [""], ["tiny"])),
    *(([LONG, SHORT, LONG, SHORT, LONG, LONG], []), ([LONG, SHORT, SHORT, SHORT, LONG], ["short_sentences"])),
    *((["a" * 100] * 5, ["short_sentences"]), (["a" * 101] * 5, [])),
    *((["a" * 99, *[LONG] * 4], ["header"]), (["a" * 100, *[LONG] * 4], []), (["é" * 50, *[LONG] * 4], [])),
    *(([*[LONG] * 9, SHORT], []), ([*[LONG] * 8, SHORT, SHORT], ["footer"])),  # more than half of the last fifth
]


def test_quality_warnings_are_those_of_ungoliants_rules():
    for lines, expected in WARNED:
        pieces = [lines[0], *(f"\n{line}" for line in lines[1:])]  # as a long text is read
        assert quality_warnings(["\n".join(lines)]) == quality_warnings(pieces) == expected, lines


@pytest.mark.usefixtures("kenlm")
def test_a_pointer_in_place_of_the_model_and_no_model_are_named(tmp_path):
    for content, named in (("version https://git-lfs.github.com/spec/v1\nsize 9\n", "Git LFS"), ("a text\n", "KenLM")):
        (tmp_path / "en.arpa").write_text(content)
        with pytest.raises(DataError, match=rf"en\.arpa: .*{named}"):
            harmful_perplexity(tmp_path / "en.arpa")


@given(st.text())
def test_noise_is_more_than_half_of_neither_letters_nor_marks(text):
    quiet = [character for character in text if unicodedata.category(character) in MARKS_AND_LETTERS]
    assert are_noisy(Counter(text)) == (len(text) - len(quiet) > len(text) // 2)


# The 25 code points with the Unicode property White_Space.
ONE_BY_ONE = (32, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
RUST_WHITE_SPACE = {*range(9, 14), *range(0x2000, 0x200B), *ONE_BY_ONE}


@given(st.text(st.sampled_from([*map(chr, sorted(RUST_WHITE_SPACE)), *"ab\x1c\x1f\u200b\u180e\ufeff\u00ad"])))
def test_words_stand_between_unicode_white_space(text):
    spaced = "".join(" " if ord(character) in RUST_WHITE_SPACE else character for character in text)
    assert words(text) == [word for word in spaced.split(" ") if word]


MODEL = DEMO / HARMFUL_MODEL.location  # knows "click the" and no zebra


@pytest.mark.usefixtures("kenlm")
def test_perplexity_is_the_formula_over_words_and_the_end():
    unigrams, bigrams, backoffs = {}, {}, {}
    for line in MODEL.read_text(encoding="utf-8").split("\n"):
        log10, *columns = line.split("\t")
        if columns and " " in columns[0]:
            bigrams[tuple(columns[0].split(" "))] = float(log10)
        elif columns:
            unigrams[columns[0]], backoffs[columns[0]] = float(log10), float((*columns, 0)[1])
    sentence = ["<s>", "click", "the", "file", "<unk>", "</s>"]
    total = 0.0
    for history, word in pairwise(sentence):
        seen = bigrams.get((history, word))
        total += backoffs[history] + unigrams[word] if seen is None else seen
    expected = math.pow(10, -total / 5)
    assert harmful_perplexity(MODEL)("click the\n file\u00a0zebra") == pytest.approx(expected, rel=1e-5)


@pytest.mark.usefixtures("kenlm")
def test_a_text_does_not_end_at_a_nul_of_which_the_model_knows_no_word():
    """Upstream gives KenLM each word with its length, so that a word with a NUL is one that it does not know."""
    perplexity = harmful_perplexity(MODEL)
    for text, in_words in (
        ("click the\0file", "click zebra"),
        ("click \0 the file", "click zebra the file"),
        ("\0", "zebra"),
    ):
        assert perplexity(text) == perplexity(in_words)


@pytest.mark.usefixtures("kenlm")
def test_warnings_and_perplexity_equal_those_of_the_mirror_to_the_last_bit(mirror):
    perplexity, pages = harmful_perplexity(mirror / HARMFUL_MODEL.location), mirrored_documents(mirror)
    assert len(pages) == 1500
    for page in pages:
        assert quality_warnings([page.content]) == (page.metadata.quality_warnings or [])
    annotated = [page for page in pages if page.metadata.harmful_pp]
    other = [page.metadata.harmful_pp for page in annotated if perplexity(page.content) != page.metadata.harmful_pp]
    assert len(annotated) > 1400
    # The mirror's README: a few values at the window's edges were set by hand.
    assert len(other) < 5 and all(min(abs(value - edge) for edge in (5, 100_000)) < 0.01 for value in other)


@pytest.mark.usefixtures("kenlm")
def test_annotations_are_what_each_rule_gives_and_null_where_oscar_writes_null(make_blocklist):
    blocklist = make_blocklist({"adult": (["bad.example"], []), "press": (["bad.example"], [])})
    long = "the file is read and read again by all of the readers who ever read a file of that kind or any other kind"
    good, bad = "\n".join([long] * 10), "the file"
    perplexity = harmful_perplexity(MODEL)
    for match, categories in (("exact", None), ("suffix", ["adult", "press"])):
        annotate = annotator(MODEL, partial(blocklist.look_up, match=match))
        url = WarcHeaders("https://www.bad.example/")
        assert annotate(Document(good, Metadata(), url)) == Metadata(perplexity(good), None, categories)
        found = annotate(Document(bad, Metadata(), None))
        assert found == Metadata(perplexity(bad), ["tiny", "short_sentences"], None)
