import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import read_json, write_json
from symbert.pretrain.tasks import PackedRows, verify_manifest, verify_shards


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data())
def test_rows_are_those_of_the_shards_across_their_borders(tmp_path_factory, sizes, data):
    folder, whole = tmp_path_factory.mktemp("shards"), np.random.default_rng(0).integers(0, 2**16, (sum(sizes), 3))
    for number, piece in enumerate(np.split(whole.astype(np.uint16), np.cumsum(sizes)[:-1])):
        np.save(folder / f"{number}.npy", piece)
    shards = [{"file": f"{number}.npy", "split": "train", "rows": size} for number, size in enumerate(sizes)]
    (folder / "manifest.json").write_text(json.dumps({"shards": shards}))
    rows = PackedRows(folder / "manifest.json", "train")
    index = np.array(data.draw(st.lists(st.integers(0, sum(sizes) - 1), max_size=20)), np.int64)
    assert len(rows) == sum(sizes) and rows.sequence_length == 3
    assert rows[index].dtype == np.int64 and (rows[index] == whole[index]).all()


def test_a_missing_or_shorter_shard_and_a_split_without_one_are_named(manifest):
    shard = manifest.parent / "train-00001.npy"
    np.save(shard, np.load(shard)[:-1])
    with pytest.raises(IntegrityError, match=r"train-00001\.npy: 24 rows, the manifest says 25"):
        PackedRows(manifest, "train")
    shard.unlink()
    for read in (lambda: PackedRows(manifest, "train"), lambda: verify_shards(manifest)):
        with pytest.raises(MissingInputError, match=r"train-00001\.npy"):
            read()
    with pytest.raises(MissingInputError, match=r"manifest\.json: names no shard of the split 'test'"):
        PackedRows(manifest, "test")


def test_a_bit_that_flips_after_a_session_has_verified_its_shard_is_noticed_by_the_next(manifest):
    """A shard of the size and time that were verified once was not read again, and another corpus was learned."""
    verify_shards(manifest)
    shard = manifest.parent / "train-00001.npy"
    status, content = shard.stat(), bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    os.utime(shard, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(IntegrityError, match=r"train-00001\.npy: sha256 expected \w{64}, found \w{64}; run snakemake"):
        verify_shards(manifest)


def test_a_manifest_that_was_edited_is_not_the_corpus_that_its_hash_names(manifest):
    """It was believed that shards with right sums are the corpus; their list, and how ids are read, were not in it."""
    told = read_json(manifest)
    assert verify_manifest(manifest) == told["hash"]
    first, *others = told["shards"]
    for changes in (
        {"sequence_length": 8},
        {"vocabulary_size": 61},
        {"vocabulary_sha256": 64 * "0"},
        {"special_tokens": {**told["special_tokens"], "unk": 9}},
        {"rows": {"train": 49, "validation": 8}},
        {"shards": others},
        {"shards": [{**first, "split": "validation"}, *others]},
        {"shards": [{**first, "sha256": 64 * "0"}, *others]},
        {"hash": "0123456789abcdef"},
    ):
        write_json(manifest, {**told, **changes})
        with pytest.raises(IntegrityError, match=r"manifest\.json: hash expected \w{16}, found \w{16}: edited"):
            verify_manifest(manifest)
    for lacking in ("hash", "special_tokens"):
        write_json(manifest, {key: value for key, value in told.items() if key != lacking})
        with pytest.raises(DataError, match=rf"manifest\.json: has no '{lacking}'; run snakemake -R pack"):
            verify_manifest(manifest)
