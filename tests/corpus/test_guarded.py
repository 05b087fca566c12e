import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings

from corpus.stock import Liar, hard_texts, stock_ids
from symbert.corpus import guarded as module
from symbert.corpus import wordpiece
from symbert.corpus.guarded import Guarded, encode_chunk, guarded, load_tokie
from symbert.corpus.wordpiece import CODE_POINTS, SPECIAL_TOKENS, Reference, encoder

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
    return [point for point in points if not fast.trusts(np.array([point]))]


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


@pytest.fixture
def lying(reference, monkeypatch):
    """The guard around a tokie with a mistake."""
    honest = module.load_tokie

    def lying(*mistake):
        monkeypatch.setattr(module, "load_tokie", lambda tokenizer: Liar(honest(tokenizer), *mistake))
        return guarded(reference)

    return lying


def test_a_character_on_which_tokie_errs_or_breaks_down_is_found(lying):
    for mistake, found in ((("ñ", True), [127, 0xF1]), (("ñ",), [127, 0xF1]), (("~",), [0x7E, 127])):
        assert differing_of(lying(*mistake), range(0x250)) == found


@pytest.mark.parametrize("dropped", ["[MASK]", "a" * 101, "functio"])
def test_tokie_is_not_used_that_errs_about_special_tokens_long_words_or_beginnings_of_pieces(lying, capsys, dropped):
    assert lying(dropped) is None
    assert f"differ on '{dropped[:60]}'" in capsys.readouterr().err


def test_without_tokie_or_a_letter_to_compare_by_tokenizers_is_used_and_that_is_said(
    tmp_path, reference, monkeypatch, capsys
):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS.values(), "a", "##break"]))
    assert guarded(Reference(encoder(tmp_path / "vocab.txt"))) is None
    monkeypatch.setitem(sys.modules, "tokie", None)
    assert guarded(reference) is None
    assert len(capsys.readouterr().err.splitlines()) == 2


@settings(max_examples=400)
@given(hard_texts)
def test_ids_are_those_of_hugging_face_on_any_text_wherever_it_is_cut(vocabulary, fast, text):
    [expected] = stock_ids(vocabulary, [text])
    assert fast.encode(text).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wordpiece, "CHUNK", 5)
        assert fast.encode(text).tolist() == expected


def test_an_interrupt_of_tokie_is_no_disagreement(reference):
    class Interrupted:
        def encode_batch_flat(self, texts):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_chunk(Interrupted(), "text")
