import json
from functools import partial
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbert.corpus.shards import pack_shards
from symbert.corpus.wordpiece import OFFSET, SPECIAL_TOKENS
from symbert.errors import DataError, MissingInputError
from symbert.files import read_json, sha256_of

Document = tuple[int, int]  # (id hash, tokens)


def ids_of(number: int, document: Document) -> list[int]:
    """Distinct tokens for each document, so that a lost or doubled one shows."""
    return [(100 * number + place) % 60_000 for place in range(document[1])]


def pack(folder, documents: list[Document], cuts=(), length=4, held_out=2, max_documents=10**6, shard_rows=3):
    """Packs documents that are dealt to parts at `cuts`; gives the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    bounds = [0, *sorted(min(cut, len(documents)) for cut in cuts), len(documents)]
    tokens, offsets = [], []
    for part, (first, after) in enumerate(pairwise(bounds)):
        pieces = [ids_of(number, documents[number]) for number in range(first, after)]
        starts = np.cumsum([0, *map(len, pieces)])[:-1]
        table = np.array([(start, documents[first + row][0]) for row, start in enumerate(starts)], OFFSET)
        tokens.append(folder / f"{part}.npy")
        offsets.append(folder / f"{part}.offsets.npy")
        np.save(tokens[-1], np.array([*chain(*pieces)], np.uint16))
        np.save(offsets[-1], table)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join([*SPECIAL_TOKENS.values(), "a"]))
    values = {"sequence_length": length, "validation_sequences": held_out}
    values |= {"max_documents": max_documents, "sequences_per_shard": shard_rows}
    (folder / "pack.json").write_text(json.dumps(values))
    output = folder / "shards" / "manifest.json"
    pack_shards(tokens, offsets, vocabulary, folder / "pack.json", output)
    return read_json(output)


def rows_of(folder, manifest, split) -> np.ndarray:
    files = [shard["file"] for shard in manifest["shards"] if shard["split"] == split]
    return np.concatenate([np.load(folder / "shards" / file) for file in files])


DOCUMENTS = [(number * 7919 % 101, 3 + number % 5) for number in range(40)]
corpora = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(2, 30)), min_size=3, max_size=40)


@settings(deadline=None, max_examples=40)
@given(corpora, st.lists(st.integers(0, 40), max_size=4), st.integers(1, 9), st.integers(1, 4), st.integers(5, 60))
def test_rows_and_rest_are_the_concatenation_of_the_documents(
    tmp_path_factory, documents, cuts, length, held_out, shard_rows
):
    folder = tmp_path_factory.mktemp("corpus")
    attempt = partial(pack, length=length, held_out=held_out, shard_rows=shard_rows)
    lowest = sorted(documents)
    filled = np.cumsum([tokens for _, tokens in lowest])
    count = int(np.argmax(filled >= held_out * length)) + 1
    threshold = lowest[count - 1][0]
    sides = {"train": [], "validation": []}
    for number, document in enumerate(documents):
        sides["validation" if document[0] <= threshold else "train"] += ids_of(number, document)
    if filled[-1] < held_out * length or len(sides["train"]) < length:
        with pytest.raises(DataError, match=r"corpus\.pack\.validation_sequences"):
            attempt(folder, documents, cuts)
        return
    manifest = attempt(folder, documents, cuts)
    train, validation = (rows_of(folder, manifest, split) for split in ("train", "validation"))
    rest = len(sides["train"]) - train.size
    assert train.ravel().tolist() == sides["train"][: train.size]
    assert 0 <= rest < length
    assert manifest["remainder_tokens"] == rest
    assert validation.shape == (held_out, length)
    assert validation.ravel().tolist() == sides["validation"][: validation.size]
    assert manifest["surplus_tokens"] == len(sides["validation"]) - validation.size
    assert manifest["tokens"] == sum(tokens for _, tokens in documents)


@settings(deadline=None, max_examples=8)
@given(st.lists(st.integers(0, 40), max_size=5))
def test_shards_do_not_depend_on_how_documents_are_dealt_to_parts(tmp_path_factory, cuts):
    whole = pack(tmp_path_factory.mktemp("whole"), DOCUMENTS)
    assert pack(tmp_path_factory.mktemp("parts"), DOCUMENTS, cuts) == whole


def test_the_manifest_describes_the_files_beside_it(tmp_path):
    manifest = pack(tmp_path, DOCUMENTS)
    assert manifest["special_tokens"] == {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    assert manifest["vocabulary_size"] == 6
    assert manifest["vocabulary_sha256"] == sha256_of(tmp_path / "vocab.txt")
    assert sum(manifest["documents"].values()) == 40
    files = {path.name for path in (tmp_path / "shards").iterdir()}
    assert files == {"manifest.json", *(shard["file"] for shard in manifest["shards"])}
    for shard in manifest["shards"]:
        path = tmp_path / "shards" / shard["file"]
        rows = np.load(path)
        assert (rows.dtype, rows.shape) == (np.uint16, (shard["rows"], 4))
        assert shard["sha256"] == sha256_of(path)
        assert shard["rows"] <= 3
    for split in ("train", "validation"):
        assert manifest["rows"][split] == len(rows_of(tmp_path, manifest, split))


def test_the_hash_follows_content_and_vocabulary(tmp_path):
    first = pack(tmp_path / "a", DOCUMENTS)
    other = pack(tmp_path / "b", [(999, 9), *DOCUMENTS[1:]])
    assert len(first["hash"]) == 16
    assert first["hash"] != other["hash"]


def test_only_the_first_documents_count(tmp_path):
    capped = pack(tmp_path / "capped", DOCUMENTS, cuts=[10, 25, 30], max_documents=20)
    assert capped == pack(tmp_path / "short", DOCUMENTS[:20])


def test_documents_of_equal_id_are_on_one_side(tmp_path):
    twins = [(1, 5), (50, 20), (1, 5), (60, 20)]
    assert pack(tmp_path, twins, held_out=1)["documents"] == {"train": 2, "validation": 2}


def test_shards_of_a_larger_corpus_do_not_stay(tmp_path):
    pack(tmp_path, DOCUMENTS)
    manifest = pack(tmp_path, DOCUMENTS[:15])
    files = {path.name for path in (tmp_path / "shards").glob("*.npy")}
    assert files == {shard["file"] for shard in manifest["shards"]}


def test_too_few_tokens_are_refused_with_the_remedy(tmp_path):
    with pytest.raises(DataError, match=r"2 documents have 10 tokens, fewer than the 400 held out; take more parts"):
        pack(tmp_path, [(1, 5), (2, 5)], held_out=100)
    with pytest.raises(DataError, match="no training row is left"):
        pack(tmp_path, [(1, 5), (2, 3)], held_out=1)


def test_damaged_and_missing_arrays_are_named(tmp_path):
    pack(tmp_path, DOCUMENTS)
    arguments = (
        [tmp_path / "0.offsets.npy"],
        tmp_path / "vocab.txt",
        tmp_path / "pack.json",
        tmp_path / "out" / "m.json",
    )
    with pytest.raises(MissingInputError, match=r"none\.npy"):
        pack_shards([tmp_path / "none.npy"], *arguments)
    with pytest.raises(DataError, match=r"0\.offsets\.npy: 1 dimensions of"):
        pack_shards([tmp_path / "0.offsets.npy"], *arguments)
    np.save(tmp_path / "0.npy", np.zeros(4, np.uint16))
    with pytest.raises(DataError, match="does not fit"):
        pack_shards([tmp_path / "0.npy"], *arguments)
    (tmp_path / "0.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(DataError, match=r"0\.npy: not an array"):
        pack_shards([tmp_path / "0.npy"], *arguments)
