import hashlib
import re
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.stock import TEXTS, stock_ids
from symbert.corpus import guarded, tokens
from symbert.corpus.counts import EDGES
from symbert.corpus.tokens import OFFSET, count_words, tokenize_part
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import read_json, sha256_of

SCHEMA = {"line": pyarrow.uint32(), "id": pyarrow.string(), "url": pyarrow.string(), "text": pyarrow.string()}
MANY = TEXTS * 5 + [f"the value of {number} and the given function" for number in range(900)]


def write_documents(path, texts, facts=None, row_group=50):
    """A part whose documents come from every second line."""
    columns = {
        "line": range(1, 2 * len(texts), 2),
        "id": [f"<urn:uuid:{number}>" for number in range(len(texts))],
        "url": [None] * len(texts),
        "text": texts,
    }
    table = pyarrow.table({name: pyarrow.array(values, SCHEMA[name]) for name, values in columns.items()})
    pyarrow.parquet.write_table(
        table.replace_schema_metadata(facts),
        path,
        row_group,
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    )
    return path


def tokenize(folder, documents, vocabulary):
    """Ids, offsets and record of a part."""
    folder.mkdir(exist_ok=True)
    tokenize_part(documents, vocabulary, folder / "ids.npy", folder / "offsets.npy", folder / "record.json")
    return np.load(folder / "ids.npy"), np.load(folder / "offsets.npy"), read_json(folder / "record.json")


def tokenize_by_tokenizers(folder, texts, vocabulary):
    """The record of a part where tokie is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tokie", None)
        return tokenize(folder, write_documents(folder.with_name("part.parquet"), texts), vocabulary)[2]


def test_a_part_is_its_documents_one_after_another(tmp_path, vocabulary):
    ids, offsets, record = tokenize(tmp_path, write_documents(tmp_path / "part.parquet", TEXTS), vocabulary)
    assert ids.dtype == np.uint16
    assert offsets.dtype == OFFSET
    pieces = [piece.tolist() for piece in np.split(ids, offsets["start"][1:])]
    assert pieces == stock_ids(vocabulary, TEXTS)
    assert {(piece[0], piece[-1]) for piece in pieces} == {(2, 3)}, "[CLS] ... [SEP]"
    first = hashlib.sha256(b"<urn:uuid:0>").hexdigest()
    assert f"{offsets['id_hash'][0]:016x}" == first[:16]
    assert offsets["line"].tolist() == list(range(1, 2 * len(TEXTS), 2))
    assert sum(record["histogram"]) == len(TEXTS)
    assert record["histogram"][int(np.searchsorted(EDGES["tokens"], len(pieces[0]), side="right"))] >= 1


def test_the_record_says_what_the_files_hold(tmp_path, vocabulary):
    documents = write_documents(tmp_path / "en_meta_part_3.parquet", MANY)
    ids, offsets, record = tokenize(tmp_path, documents, vocabulary)
    assert (record["part"], record["taken"], record["documents"]) == ("en_meta_part_3", True, len(MANY))
    assert record["tokens"] == len(ids)
    assert record["words"] == sum(len(text.encode().split()) for text in MANY)
    assert record["vocabulary_sha256"] == sha256_of(vocabulary)
    assert record["tokens_sha256"] == sha256_of(tmp_path / "ids.npy")
    assert record["offsets_sha256"] == sha256_of(tmp_path / "offsets.npy")
    assert record["encoder"]["name"].startswith("tokie ")
    sampled = {*range(16), *np.flatnonzero(offsets["id_hash"] % 200 == 0)}
    assert record["encoder"]["checked"] == len(sampled) > 16
    assert record["encoder"]["reference"] == 15, "three texts, five times each"


@pytest.mark.parametrize("bytes_at_once", [1, 1 << 30])
@pytest.mark.parametrize("row_group", [7, 5000])
def test_the_bytes_do_not_depend_on_batches_row_groups_or_encoder(
    tmp_path, vocabulary, monkeypatch, bytes_at_once, row_group
):
    expected = tokenize_by_tokenizers(tmp_path / "a", MANY[:150], vocabulary)
    monkeypatch.setattr(tokens, "BYTES_AT_ONCE", bytes_at_once)
    documents = write_documents(tmp_path / "part.parquet", MANY[:150], row_group=row_group)
    found = tokenize(tmp_path / "b", documents, vocabulary)[2]
    assert expected.pop("encoder")["name"].startswith("tokenizers ")
    assert found.pop("encoder")["name"].startswith("tokie ")
    assert found == expected


class Liar:
    """tokie, but wrong about one word, or broken."""

    def __init__(self, tokenizer, behave):
        self.tokenizer, self.behave = tokenizer, behave

    def encode_batch_flat(self, texts):
        return self.tokenizer.encode_batch_flat([self.behave(text) for text in texts])


class PanicException(BaseException):
    """As the binding of a Rust library raises it."""


def panic(text):
    if "of 800" in text:
        raise PanicException("index out of bounds")
    return text


@pytest.mark.parametrize(
    ("behave", "message"),
    [
        (
            lambda text: text.replace("given function", "function"),
            r"document <urn:uuid:\d+>: tokie \S+ gives other ids than tokeniz",
        ),
        (panic, r"document <urn:uuid:865>: tokie broke down \(index out of bounds\)"),
    ],
)
def test_a_part_on_which_tokie_errs_is_encoded_by_tokenizers(
    tmp_path, vocabulary, monkeypatch, capsys, behave, message
):
    expected = tokenize_by_tokenizers(tmp_path / "a", MANY, vocabulary)
    honest = guarded.load_tokie
    monkeypatch.setattr(guarded, "load_tokie", lambda tokenizer: Liar(honest(tokenizer), behave))
    found = tokenize(tmp_path / "b", write_documents(tmp_path / "part.parquet", MANY), vocabulary)[2]
    assert found == expected
    assert re.search(rf"part\.parquet: {message}.*; tokenizers encodes the whole part", capsys.readouterr().err)


def test_a_part_without_documents_has_no_tokens_and_says_whether_it_was_read(tmp_path, vocabulary):
    for word, taken in (("true", True), ("false", False)):
        documents = write_documents(tmp_path / "part.parquet", [], {"taken": word})
        ids, offsets, record = tokenize(tmp_path, documents, vocabulary)
        assert len(ids) == len(offsets) == record["tokens"] == record["documents"] == record["words"] == 0
        assert record["taken"] is taken


@given(st.lists(st.text(alphabet=" \t\n\x0b\x0c\r\x1c\u00a0\u2003aé中", max_size=12)), st.integers(0, 3))
def test_words_are_what_stands_between_ascii_white_space(texts, first):
    expected = sum(len(text.encode().split()) for text in texts[first:])
    assert count_words(pyarrow.array(texts, pyarrow.string())[first:]) == expected


def test_damage_of_the_documents_is_found(tmp_path, vocabulary):
    documents = write_documents(tmp_path / "part.parquet", MANY, row_group=10**6)
    content = bytearray(documents.read_bytes())
    content[len(content) // 2] ^= 1
    documents.write_bytes(content)
    with pytest.raises(IntegrityError, match=r"part\.parquet: damaged .*; delete it and run filter-part"):
        tokenize(tmp_path / "a", documents, vocabulary)
    assert list((tmp_path / "a").iterdir()) == []


def test_what_is_no_part_is_named(tmp_path, vocabulary):
    with pytest.raises(MissingInputError, match=r"none\.parquet: file not found; run filter-part"):
        tokenize(tmp_path, tmp_path / "none.parquet", vocabulary)
    (tmp_path / "text.parquet").write_text("text")
    with pytest.raises(DataError, match=r"text\.parquet: not parquet"):
        tokenize(tmp_path, tmp_path / "text.parquet", vocabulary)
    pyarrow.parquet.write_table(pyarrow.table({"id": ["a"], "text": ["b"]}), tmp_path / "old.parquet")
    with pytest.raises(DataError, match=r"old\.parquet: no column 'line'; delete it and run filter-part"):
        tokenize(tmp_path, tmp_path / "old.parquet", vocabulary)
