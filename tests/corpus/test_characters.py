import json
import sys
import unicodedata

import pytest

from symbert.corpus import characters as scanner
from symbert.corpus.characters import scan_characters
from symbert.corpus.wordpiece import CODE_POINTS, SPECIAL_TOKENS, encoder, load_tokie, versions
from symbert.files import read_json, sha256_of

tokie = pytest.importorskip("tokie")


@pytest.fixture
def few_points(monkeypatch):
    """Only Latin, which takes a moment."""
    monkeypatch.setattr(scanner, "CODE_POINTS", 0x250)


def test_the_scan_names_exactly_the_code_points_whose_ids_differ(characters, vocabulary):
    scan = read_json(characters)
    assert scan["problem"] is None
    assert scan["versions"] == versions(sha256_of(vocabulary))
    ranges = scan["differing"]
    assert ranges == sorted(ranges)
    assert all(0 <= first <= last < CODE_POINTS for first, last in ranges)
    differing = {point for first, last in ranges for point in range(first, last + 1)}
    reference = encoder(vocabulary)
    fast = load_tokie(reference)
    for point in [*range(0x500), *range(0x500, 0xD800, 37), *range(0xE000, CODE_POINTS, 997)]:
        texts = [f"e{chr(point)}e", f"é{chr(point)}É"]
        expected = [encoding.ids for encoding in reference.encode_batch(texts)]
        found = [fast.encode_batch_flat([text])[0].tolist() for text in texts]
        assert (found != expected) == (point in differing) or is_not_used(point), hex(point)


def is_not_used(point):
    """Not assigned, a surrogate, or of the private planes."""
    return unicodedata.category(chr(point)) in ("Cn", "Cs") or point >= 0xF0000


def test_code_points_that_no_text_should_have_are_among_them_without_comparison(characters):
    differing = {point for first, last in read_json(characters)["differing"] for point in range(first, last + 1)}
    assert {point for point in range(CODE_POINTS) if is_not_used(point)} <= differing
    assert len(differing) < CODE_POINTS * 7 / 8 and not differing & set(range(0xE000, 0xF900)), "icons are compared"


def test_text_of_common_scripts_is_not_among_them(characters):
    differing = read_json(characters)["differing"]
    for character in "é中한あяα\u200d\u00a0“”–€👍🎉":
        assert not any(first <= ord(character) <= last for first, last in differing), unicodedata.name(character)
    assert [127, 127] in differing


def test_a_letter_after_which_tokie_forgets_the_end_of_a_word_is_among_them(tmp_path, few_points):
    """A word may end within the pieces that could follow, but at the end of none: it is [UNK], and tokie loses b."""
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL_TOKENS.values(), "a", "##a", "##break"]))
    scan_characters(path, tmp_path / "characters.json")
    assert read_json(tmp_path / "characters.json")["differing"] == [[66, 66], [98, 98], [127, 127]]


def test_a_vocabulary_without_letters_to_compare_by_is_a_problem(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL_TOKENS.values(), "a", "##break"]))
    scan_characters(path, tmp_path / "characters.json")
    assert "no letter that both begins and continues words" in read_json(tmp_path / "characters.json")["problem"]


class Liar:
    """tokie with a mistake: it drops what it should keep."""

    def __init__(self, tokenizer, dropped):
        self.tokenizer, self.dropped = tokenizer, dropped

    def encode_batch_flat(self, texts):
        return self.tokenizer.encode_batch_flat([text.replace(self.dropped, "") for text in texts])


class PanicException(BaseException):
    """As the binding of a Rust library raises it."""


class Fragile(Liar):
    """tokie that breaks down."""

    def encode_batch_flat(self, texts):
        if any(self.dropped in text for text in texts):
            raise PanicException("out of bounds")
        return self.tokenizer.encode_batch_flat(texts)


def test_where_tokie_breaks_down_is_found(vocabulary, tmp_path, few_points, monkeypatch):
    honest = scanner.load_tokie
    monkeypatch.setattr(scanner, "load_tokie", lambda tokenizer: Fragile(honest(tokenizer), "ñ"))
    scan_characters(vocabulary, tmp_path / "characters.json")
    assert read_json(tmp_path / "characters.json")["differing"] == [[127, 127], [0xF1, 0xF1]]


@pytest.mark.parametrize(("dropped", "found"), [("ñ", [[0xF1, 0xF1]]), ("~", [[0x7E, 0x7F]])])
def test_a_mistake_of_tokie_is_found(vocabulary, tmp_path, few_points, monkeypatch, dropped, found):
    honest = scanner.load_tokie
    monkeypatch.setattr(scanner, "load_tokie", lambda tokenizer: Liar(honest(tokenizer), dropped))
    scan_characters(vocabulary, tmp_path / "characters.json")
    differing = read_json(tmp_path / "characters.json")["differing"]
    assert [pair for pair in differing if pair not in ([127, 127],)] == found


def test_mistakes_with_special_tokens_long_words_and_beginnings_of_pieces_are_problems(
    vocabulary, tmp_path, few_points, monkeypatch
):
    honest = scanner.load_tokie
    for dropped, named in (("[MASK]", "'[MASK]'"), ("a" * 101, "'" + "a" * 60), ("functio", "'functio'")):
        monkeypatch.setattr(scanner, "load_tokie", lambda tokenizer, dropped=dropped: Liar(honest(tokenizer), dropped))
        scan_characters(vocabulary, tmp_path / "characters.json")
        assert f"tokie and tokenizers differ on {named}" in read_json(tmp_path / "characters.json")["problem"]


def test_without_tokie_the_scan_says_so(vocabulary, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokie", None)
    scan_characters(vocabulary, tmp_path / "characters.json")
    scan = json.loads((tmp_path / "characters.json").read_text())
    assert "tokie was not installed" in scan["problem"]
