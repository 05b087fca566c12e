import json
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertTokenizerFast

from corpus.mirrored import mirrored_documents
from corpus.stock import TEXTS, stock_ids
from symbert.corpus import wordpiece
from symbert.corpus.sources import VOCABULARY
from symbert.corpus.wordpiece import (
    DisagreementError,
    Guarded,
    Reference,
    encoder,
    guarded,
    load_tokie,
    pieces,
    read_vocabulary,
)
from symbert.errors import DataError, MissingInputError
from symbert.files import sha256_of


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_ids_equal_those_of_hugging_face_on_any_text(vocabulary, texts):
    assert [encoding.ids for encoding in encoder(vocabulary).encode_batch(texts)] == stock_ids(vocabulary, texts)


def test_a_pair_has_two_segments(vocabulary):
    encoding = encoder(vocabulary).encode("the value", "the function")
    expected = BertTokenizerFast(vocab=str(vocabulary))("the value", "the function")
    assert (encoding.ids, encoding.type_ids) == (expected["input_ids"], expected["token_type_ids"])


def test_ids_of_real_documents_by_tokenizers_equal_those_of_hugging_face(mirror):
    vocabulary = mirror / VOCABULARY.location
    texts = TEXTS + [document.content[:3000] for document in mirrored_documents(mirror)[:300]]
    assert [encoding.ids for encoding in encoder(vocabulary).encode_batch(texts)] == stock_ids(vocabulary, texts)


def test_the_trained_vocabulary_has_the_asked_size_special_tokens_first_and_no_hash_order(vocabulary):
    pieces = read_vocabulary(vocabulary)
    assert list(pieces)[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(pieces) <= 120
    inner = [piece for piece in pieces if len(piece) == 3 and piece.startswith("##")]
    assert inner == sorted(inner)
    assert "function" in pieces


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["[PAD]", "a"], r"no \[UNK\]"),
        (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "a"], "1 pieces occur twice"),
        (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(65_532))], "65,537 pieces"),
        (["\udcff"], "not UTF-8"),
    ],
)
def test_an_unusable_vocabulary_is_named(tmp_path, lines, reason):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    with pytest.raises(DataError, match=rf"vocab\.txt: .*{reason}"):
        read_vocabulary(path)


def test_a_missing_vocabulary_is_named(tmp_path):
    with pytest.raises(MissingInputError, match=r"none\.txt"):
        encoder(tmp_path / "none.txt")


pytest.importorskip("tokie")
HARD = [
    *("[SEP]", "[sep]", "[MASK", "[[CLS]", "##ing", "##", "x" * 99, "é" * 100, "function" * 13, "[PAD][PAD]"),
    *("\u0301", "\u0323", "\u302e", "\U0001d165", "\u200d", "\ufe0f", "\u00ad", "\ufeff", "\ufffd", "\x00", "\x7f"),
    *("\u00a0", "\u2028", "\u0085", "\u3000", "\t", "\n", "\r", " ", "İ", "ı", "ß", "ẞ", "ﬁ", "Σ", "ς", "中", "\uf900"),
    *("각", "ᄀ", "ᅡ", "ᆨ", "\U0002f800", "\U0001f468", "\U0001f1eb", "\U0010ffff", "\ue000", "\u0378", "Ⅳ", "ŉ"),
]
hard_texts = st.lists(st.one_of(st.sampled_from(HARD), st.text(max_size=8), st.sampled_from(["the ", "value", "."])))


@pytest.fixture(scope="module")
def reference(vocabulary):
    return Reference(encoder(vocabulary))


@pytest.fixture(scope="module")
def fast(reference, characters, vocabulary):
    """tokie behind its guard."""
    return guarded(reference, characters, sha256_of(vocabulary))


@pytest.fixture
def short_pieces(monkeypatch):
    """Texts are cut every five characters, if they can."""
    monkeypatch.setattr(wordpiece, "PIECE", 5)


class Recorder:
    """tokie that keeps the texts it was given."""

    def __init__(self, tokie):
        self.tokie, self.texts = tokie, []

    def encode_batch_flat(self, texts):
        self.texts += texts
        return self.tokie.encode_batch_flat(texts)


def test_both_encoders_give_the_ids_of_hugging_face_on_hard_texts(vocabulary, reference, fast):
    for text, expected in zip(TEXTS, stock_ids(vocabulary, TEXTS), strict=True):
        assert reference.encode(text).tolist() == expected, text[:60]
        assert fast.encode(text).tolist() == expected, text[:60]


@settings(deadline=None, max_examples=400)
@given(hard_texts.map("".join))
def test_both_encoders_give_the_ids_of_hugging_face_on_any_text(vocabulary, reference, fast, text):
    [expected] = stock_ids(vocabulary, [text])
    assert reference.encode(text).tolist() == expected
    assert fast.encode(text).tolist() == expected


@settings(deadline=None, max_examples=300)
@given(hard_texts.map("".join))
def test_cutting_a_text_does_not_change_its_ids(vocabulary, reference, fast, text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wordpiece, "PIECE", 5)
        cut = pieces(text)
        assert "".join(cut) == text
        assert all(len(piece) <= 5 or not wordpiece.BREAK.search(piece, 1) for piece in cut)
        [expected] = stock_ids(vocabulary, [text])
        assert reference.encode(text).tolist() == expected
        assert fast.encode(text).tolist() == expected


def test_a_text_is_cut_at_the_last_break_that_fits_or_at_the_first_one_after(short_pieces):
    assert pieces("ab cd ef") == ["ab cd", " ef"]
    assert pieces("ab cdefg") == ["ab", " cdefg"]
    assert pieces("abcdefgh ij") == ["abcdefgh", " ij"]
    assert pieces("abcdefgh") == ["abcdefgh"]
    assert pieces("") == [""]


def test_a_text_without_breaks_is_shortened_where_its_word_is_unknown_anyway(vocabulary, reference):
    text = "(" + "a" * 50_000 + "é" + "b" * 50_000 + ")"
    assert max(map(len, pieces(text))) < 300
    assert reference.encode(text).tolist() == stock_ids(vocabulary, [text])[0]


def test_ids_of_real_documents_by_tokie_equal_those_of_hugging_face(mirror, tmp_path, characters):
    vocabulary = mirror / VOCABULARY.location
    reference = Reference(encoder(vocabulary))
    scan = json.loads(characters.read_text())  # the code points do not depend on the vocabulary
    scan["versions"]["vocabulary_sha256"] = sha256_of(vocabulary)
    (tmp_path / "characters.json").write_text(json.dumps(scan))
    fast = guarded(reference, tmp_path / "characters.json", sha256_of(vocabulary))
    texts = TEXTS + [document.content for document in mirrored_documents(mirror)[:250]]
    assert [fast.encode(text).tolist() for text in texts] == stock_ids(vocabulary, texts)


def test_tokie_gets_one_short_text_at_a_time_and_none_in_which_it_is_known_to_differ(reference, characters, vocabulary):
    recorder = Recorder(load_tokie(reference.tokenizer))
    agreeing = np.ones(wordpiece.CODE_POINTS, bool)
    for first, last in json.loads(characters.read_text())["differing"]:
        agreeing[first : last + 1] = False
    fast = Guarded(recorder, reference, agreeing)
    for text in TEXTS:
        fast.encode(text)
    assert max(len(text.encode()) for text in recorder.texts) < 65_536
    assert all(agreeing[ord(character)] for text in recorder.texts for character in set(text))
    assert any("naïve" in text for text in recorder.texts)
    unknown = [text for text in TEXTS if any(unicodedata.category(character) in ("Cn", "Co") for character in text)]
    assert fast.referred == len({*unknown, TEXTS[3], TEXTS[-1]}) == 4, "not used (two), DEL, a word longer than a piece"


def test_a_part_of_a_long_text_goes_to_tokenizers_and_the_rest_to_tokie(
    reference, characters, vocabulary, short_pieces
):
    recorder = Recorder(load_tokie(reference.tokenizer))
    agreeing = np.ones(wordpiece.CODE_POINTS, bool)
    agreeing[ord("q")] = False
    fast = Guarded(recorder, reference, agreeing)
    assert fast.encode("one two q four").tolist() == stock_ids(vocabulary, ["one two q four"])[0]
    assert recorder.texts == ["one", " two", " four"]
    assert fast.referred == 1


class PanicException(BaseException):
    """As the binding of a Rust library raises it."""


def test_a_breakdown_of_tokie_is_a_disagreement_and_an_interrupt_is_not(reference):
    class Broken:
        def encode_batch_flat(self, texts):
            raise error

    broken = Guarded(Broken(), reference, np.ones(wordpiece.CODE_POINTS, bool))
    error = PanicException("out of bounds")
    with pytest.raises(DisagreementError, match=r"tokie broke down \(out of bounds\)"):
        broken.encode("text")
    error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        broken.encode("text")


def test_tokie_is_used_only_with_a_scan_of_the_same_versions_and_vocabulary(
    reference, characters, vocabulary, tmp_path, capsys, monkeypatch
):
    digest = sha256_of(vocabulary)
    assert guarded(reference, characters, digest).name == f"tokie {wordpiece.versions(digest)['tokie']}"
    assert guarded(reference, None, digest) is None
    assert "no --characters given; run scan-characters: tokenizers alone" in capsys.readouterr().err
    assert guarded(reference, characters, "0" * 64) is None
    assert "characters.json: made by other versions or for another vocabulary; delete it" in capsys.readouterr().err
    scan = json.loads(characters.read_text())
    other = tmp_path / "characters.json"
    other.write_text(json.dumps({**scan, "problem": "they differ on 'xyz'"}))
    assert guarded(reference, other, digest) is None
    assert "they differ on 'xyz'" in capsys.readouterr().err
    other.write_text(json.dumps({**scan, "versions": {**scan["versions"], "tokie": "0.1.3"}}))
    assert guarded(reference, other, digest) is None
    monkeypatch.setitem(sys.modules, "tokie", None)
    assert guarded(reference, characters, digest) is None
    assert "tokie is not installed" in capsys.readouterr().err
