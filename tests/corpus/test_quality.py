import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.mirrored import mirrored_documents
from symbert.corpus.quality import is_noisy, quality_warnings

LONG = "word " * 20 + "ending"  # 106 letters and spaces
SHORT = "word"
MARKS_AND_LETTERS = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me"}


def deserved(*lines: str) -> list[str]:
    return quality_warnings("\n".join(lines))


def test_long_lines_deserve_no_warning():
    assert deserved(*[LONG] * 5) == []


def test_fewer_than_five_lines_are_tiny():
    assert deserved(*[LONG] * 4) == ["tiny"]
    assert quality_warnings("") == ["tiny"]
    assert quality_warnings("\n".join([LONG] * 4) + "\n") == ["tiny"], "a final line end opens no fifth line"


def test_more_than_half_of_the_lines_must_be_short():
    assert deserved(LONG, SHORT, LONG, SHORT, LONG, LONG) == []
    assert deserved(LONG, SHORT, SHORT, SHORT, LONG) == ["short_sentences"]


@pytest.mark.parametrize(("letters", "expected"), [(100, ["short_sentences"]), (101, [])])
def test_a_line_of_100_characters_is_short_for_sentences(letters, expected):
    assert deserved(*["a" * letters] * 5) == expected


@pytest.mark.parametrize(("line", "expected"), [("a" * 99, ["header"]), ("a" * 100, []), ("é" * 50, [])])
def test_a_line_under_100_bytes_is_short_for_headers(line, expected):
    assert deserved(line, *[LONG] * 4) == expected


def test_more_than_half_of_the_last_fifth_must_be_short():
    assert deserved(*[LONG] * 9, SHORT) == []
    assert deserved(*[LONG] * 8, SHORT, SHORT) == ["footer"]


def test_warnings_come_in_oscars_order():
    assert deserved("1") == ["tiny", "short_sentences", "noisy"]
    assert deserved(*["1"] * 10) == ["short_sentences", "header", "footer", "noisy"]


@given(st.text())
def test_noise_is_more_than_half_of_neither_letters_nor_marks(text):
    quiet = [character for character in text if unicodedata.category(character) in MARKS_AND_LETTERS]
    assert is_noisy(text) == (len(text) - len(quiet) > len(text) // 2)


def test_warnings_equal_those_of_the_mirror(mirror):
    documents = mirrored_documents(mirror)
    assert len(documents) == 1500
    for document in documents:
        if isinstance(document.metadata.quality_warnings, list | None):
            assert quality_warnings(document.content) == (document.metadata.quality_warnings or [])
