import hashlib

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertTokenizerFast

from corpus.mirrored import mirrored_documents
from symbert.corpus.embedded import write_vocabulary
from symbert.corpus.filters import SCHEMA
from symbert.corpus.sources import VOCABULARY
from symbert.corpus.wordpiece import OFFSET, encoder, id_hash, read_vocabulary, tokenize_part
from symbert.errors import DataError, MissingInputError

TEXTS = [
    "The Café's naïve façade — unbelievable!",
    "中文 and 日本語 mixed",
    "tabs\tnew\nlines\r\n and \u00a0 blanks\u2028there",
    "control \x00 \x07 \u200b \ufeff \u00ad characters",
    "literal [SEP] and [MASK], [cls] and ##ing",
    "a" * 101 + " " + "b" * 100,
    "emoji 👩‍👩‍👧 and flags 🇫🇷",
    "ﬁne Ⅳ ½ İstanbul ẞ ß",
    "",
    "   ",
]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    """A vocabulary as the embedded source makes it."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    write_vocabulary(["the function returns the value of the given function", "mixed blanks and tabs"] * 50, 120, path)
    return path


def reference(vocabulary, texts):
    """Ids by Hugging Face's own tokenizer of bert-base-uncased."""
    tokenizer = BertTokenizerFast(vocab=str(vocabulary), do_lower_case=True)
    return tokenizer(texts)["input_ids"] if texts else []


def write_documents(path, texts):
    ids = [f"<urn:uuid:{number}>" for number in range(len(texts))]
    columns = {"id": ids, "url": [None] * len(texts), "text": texts}
    pyarrow.parquet.write_table(pyarrow.table(columns, schema=SCHEMA), path)
    return path


def test_a_part_is_its_documents_one_after_another(tmp_path, vocabulary):
    documents = write_documents(tmp_path / "part.parquet", TEXTS)
    tokenize_part(documents, vocabulary, tmp_path / "ids.npy", tmp_path / "offsets.npy")
    ids, offsets = np.load(tmp_path / "ids.npy"), np.load(tmp_path / "offsets.npy")
    assert ids.dtype == np.uint16
    assert offsets.dtype == OFFSET
    pieces = [piece.tolist() for piece in np.split(ids, offsets["start"][1:])]
    assert pieces == reference(vocabulary, TEXTS)
    assert {(piece[0], piece[-1]) for piece in pieces} == {(2, 3)}, "[CLS] ... [SEP]"
    first = hashlib.sha256(b"<urn:uuid:0>").hexdigest()
    assert f"{offsets['id_hash'][0]:016x}" == first[:16]


def test_a_part_without_documents_has_no_tokens(tmp_path, vocabulary):
    documents = write_documents(tmp_path / "part.parquet", [])
    tokenize_part(documents, vocabulary, tmp_path / "ids.npy", tmp_path / "offsets.npy")
    assert len(np.load(tmp_path / "ids.npy")) == len(np.load(tmp_path / "offsets.npy")) == 0


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_ids_equal_those_of_hugging_face_on_any_text(vocabulary, texts):
    assert [encoding.ids for encoding in encoder(vocabulary).encode_batch(texts)] == reference(vocabulary, texts)


def test_a_pair_has_two_segments(vocabulary):
    encoding = encoder(vocabulary).encode("the value", "the function")
    expected = BertTokenizerFast(vocab=str(vocabulary))("the value", "the function")
    assert (encoding.ids, encoding.type_ids) == (expected["input_ids"], expected["token_type_ids"])


def test_ids_of_real_documents_equal_those_of_hugging_face(mirror):
    vocabulary = mirror / VOCABULARY.location
    texts = TEXTS + [document.content[:3000] for document in mirrored_documents(mirror)[:300]]
    assert [encoding.ids for encoding in encoder(vocabulary).encode_batch(texts)] == reference(vocabulary, texts)


def test_the_trained_vocabulary_has_the_asked_size_special_tokens_first_and_no_hash_order(tmp_path, vocabulary):
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


def test_missing_files_are_named(tmp_path, vocabulary):
    with pytest.raises(MissingInputError, match=r"none\.txt"):
        encoder(tmp_path / "none.txt")
    with pytest.raises(MissingInputError, match=r"none\.parquet"):
        tokenize_part(tmp_path / "none.parquet", vocabulary, tmp_path / "ids.npy", tmp_path / "offsets.npy")


def test_id_hash_is_64_bits_of_sha256():
    assert id_hash("a") == int(hashlib.sha256(b"a").hexdigest()[:16], 16)
