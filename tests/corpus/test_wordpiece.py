import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertTokenizerFast

from corpus.mirrored import mirrored_documents
from corpus.stock import TEXTS, hard_texts, stock_ids
from symbert.corpus import wordpiece
from symbert.corpus.wordpiece import Reference, encoder, read_vocabulary
from symbert.errors import DataError
from symbert.sources import VOCABULARY


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


@pytest.fixture(scope="module")
def reference(vocabulary):
    return Reference(encoder(vocabulary))


@settings(max_examples=300)
@given(hard_texts)
def test_cutting_a_text_does_not_change_its_ids(vocabulary, reference, text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wordpiece, "PIECE", 5)
        assert reference.encode(text).tolist() == stock_ids(vocabulary, [text])[0]


@pytest.mark.parametrize(
    "text", ["(" + "a" * 50_000 + "é" + "b" * 50_000 + ")", "жa" * 50_000 + "? " + "ж\u0301" * 50_000, "]" * 20_000]
)
def test_a_long_text_without_blanks_is_encoded_whole(vocabulary, reference, text):
    assert "".join(reference.pieces(text)) == text
    assert reference.encode(text).tolist() == stock_ids(vocabulary, [text])[0]
