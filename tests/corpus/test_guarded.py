import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings

from corpus.mirrored import mirrored_documents
from corpus.stock import TEXTS, hard_texts, stock_ids
from symbert.corpus import guarded as module
from symbert.corpus import wordpiece
from symbert.corpus.guarded import DisagreementError, Guarded, guarded, load_tokie
from symbert.corpus.wordpiece import CODE_POINTS, SPECIAL_TOKENS, Reference, encoder
from symbert.sources import VOCABULARY

tokie = pytest.importorskip("tokie")


@pytest.fixture(scope="module")
def reference(vocabulary):
    return Reference(encoder(vocabulary))


@pytest.fixture(scope="module")
def fast(reference):
    """tokie behind its guard."""
    return guarded(reference)


def differing_of(fast: Guarded, points) -> list[int]:
    """Those around which tokie is not trusted."""
    return [point for point in points if not fast._agreement.holds(np.array([point]))]


def is_not_used(point):
    """Not assigned, a surrogate, or of the private planes."""
    return unicodedata.category(chr(point)) in ("Cn", "Cs") or point >= 0xF0000


POINTS = [*range(0x500), *range(0x500, 0xD800, 37), *range(0xE000, CODE_POINTS, 997)]


def test_exactly_the_code_points_whose_ids_differ_are_not_trusted(fast, reference):
    tokie = load_tokie(reference.tokenizer)
    differing = {*differing_of(fast, POINTS)}
    for point in POINTS:
        texts = [f"e{chr(point)}e", f"é{chr(point)}É"]
        expected = [encoding.ids for encoding in reference.tokenizer.encode_batch(texts)]
        found = [tokie.encode_batch_flat([text])[0].tolist() for text in texts]
        assert (found != expected) == (point in differing) or is_not_used(point), hex(point)


def test_a_letter_after_which_tokie_forgets_the_end_of_a_word_is_not_trusted(tmp_path):
    """A word may end within the pieces that could follow, but at the end of none: it is [UNK], and tokie loses b."""
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL_TOKENS.values(), "a", "##a", "##break"]))
    assert differing_of(guarded(Reference(encoder(path))), range(0x250)) == [66, 98, 127]


def test_a_vocabulary_without_letters_to_compare_by_is_a_problem(tmp_path, capsys):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL_TOKENS.values(), "a", "##break"]))
    assert guarded(Reference(encoder(path))) is None
    assert "no letter that both begins and continues words" in capsys.readouterr().err


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


@pytest.fixture
def lying(reference, monkeypatch):
    """The guard around a tokie that is wrapped in one of the classes above."""
    honest = module.load_tokie

    def lying(kind, dropped):
        monkeypatch.setattr(module, "load_tokie", lambda tokenizer: kind(honest(tokenizer), dropped))
        return guarded(reference)

    return lying


def test_where_tokie_breaks_down_is_found(lying):
    assert differing_of(lying(Fragile, "ñ"), range(0x250)) == [127, 0xF1]


@pytest.mark.parametrize(("dropped", "found"), [("ñ", [127, 0xF1]), ("~", [0x7E, 127])])
def test_a_mistake_of_tokie_is_found(lying, dropped, found):
    assert differing_of(lying(Liar, dropped), range(0x250)) == found


def test_mistakes_with_special_tokens_long_words_and_beginnings_of_pieces_are_problems(lying, capsys):
    for dropped, named in (("[MASK]", "'[MASK]'"), ("a" * 101, "'" + "a" * 60), ("functio", "'functio'")):
        assert lying(Liar, dropped) is None
        said = capsys.readouterr().err
        assert f"tokie and tokenizers differ on {named}" in said
        assert said.endswith(": tokenizers alone gives the ids, the same, at a tenth of the speed\n")


def test_without_tokie_tokenizers_is_used_and_that_is_said(reference, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tokie", None)
    assert guarded(reference) is None
    assert "tokie is not installed" in capsys.readouterr().err


@settings(max_examples=400)
@given(hard_texts)
def test_ids_are_those_of_hugging_face_on_any_text(vocabulary, reference, fast, text):
    [expected] = stock_ids(vocabulary, [text])
    assert reference.encode(text).tolist() == expected
    assert fast.encode(text).tolist() == expected


@settings(max_examples=300)
@given(hard_texts)
def test_cutting_a_text_does_not_change_its_ids(vocabulary, fast, text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wordpiece, "PIECE", 5)
        assert fast.encode(text).tolist() == stock_ids(vocabulary, [text])[0]


def test_ids_of_real_documents_equal_those_of_hugging_face(mirror):
    vocabulary = mirror / VOCABULARY.location
    fast = guarded(Reference(encoder(vocabulary)))
    texts = TEXTS + [document.content for document in mirrored_documents(mirror)[:250]]
    assert [fast.encode(text).tolist() for text in texts] == stock_ids(vocabulary, texts)


class Trusting:
    """In the place of what was compared: only these characters differ."""

    def __init__(self, differing=""):
        self.differing = np.array([ord(character) for character in differing])

    def holds(self, points):
        return not np.isin(points, self.differing).any()


def test_a_breakdown_of_tokie_is_a_disagreement_and_an_interrupt_is_not(reference):
    class Broken:
        def encode_batch_flat(self, texts):
            raise error

    broken = Guarded(Broken(), reference, Trusting())
    error = PanicException("out of bounds")
    with pytest.raises(DisagreementError, match=r"tokie broke down \(out of bounds\)"):
        broken.encode("text")
    error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        broken.encode("text")
