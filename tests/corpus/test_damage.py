"""Files of the corpus that hold something else end a command with one line that names them."""

import pytest

from corpus.oscar import record, write_part
from corpus.test_shards import pack, write_parts
from damage import CONTENTS, assert_named
from symbert.files import write_json


@pytest.mark.parametrize("command", ["prepare-part", "pack", "build-blocklist", "download"])
def test_settings_that_are_none_are_named(tmp_path, capsys, command):
    settings = tmp_path / "other/settings.json"
    write_json(settings, {})
    part = write_part(tmp_path / "part.jsonl.zst", [record()])
    words = {"prepare-part": [part, tmp_path / "other/part.npy"]}.get(command, [settings.with_name("file")])
    assert_named([command, *words], settings, capsys)


def test_a_record_of_a_part_that_is_none_is_named(tmp_path, capsys):
    parts = write_parts(tmp_path, [(number, 8) for number in range(20)])
    values = {"sequence_length": 8, "validation_sequences": 2, "max_documents": 100, "sequences_per_shard": 9}
    settings = {"parts": parts, "from": str(tmp_path / "parts"), "pack": values}
    write_json(tmp_path / "shards/settings.json", {**settings, "vocabulary": str(tmp_path / "vocab.txt")})
    assert_named(["pack", tmp_path / "shards/manifest.json"], tmp_path / "parts/part_0.json", capsys)


def test_a_manifest_that_is_none_is_named_where_a_row_is_looked_up(tmp_path, capsys):
    pack(tmp_path, [(number, 8) for number in range(20)])
    manifest = tmp_path / "shards/manifest.json"
    other = (*CONTENTS, '{"rows": {"train": "1"}, "sequence_length": 4, "parts": []}')
    assert_named(["locate-sample", manifest, "train", "0"], manifest, capsys, other)
