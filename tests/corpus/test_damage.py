"""Files of the corpus that hold something else end a command with one line that names them."""

import json

import pytest

from corpus.oscar import record, write_part, write_settings
from corpus.test_shards import pack, write_parts
from damage import CONTENTS, assert_named
from symbert.cli import main
from symbert.files import write_json


def write(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))
    return path


@pytest.fixture
def part(tmp_path, vocabulary, blocklist_file):
    """The words of a command that prepares a part."""
    folder = write_settings(tmp_path / "parts", vocabulary, {"blocklist": blocklist_file})
    text = write_part(tmp_path / "part.jsonl.zst", [record(harmful_pp=7.5)])
    return ["prepare-part", text, folder / "part.npy"]


@pytest.mark.parametrize("command", ["prepare-part", "pack", "build-blocklist", "download"])
def test_settings_that_are_none_are_named(tmp_path, part, capsys, command):
    settings = write(tmp_path / "other/settings.json", {})
    words = {"prepare-part": [*part[:2], tmp_path / "other/part.npy"]}
    assert_named(words.get(command, [command, settings.with_name("file")]), settings, capsys)


def test_annotations_that_nobody_knows_are_refused_with_those_that_there_are(tmp_path, part, vocabulary, capsys):
    write_settings(tmp_path / "parts", vocabulary, annotations="guessed")
    assert main([str(word) for word in part]) == 64
    assert "'annotations' is 'guessed'; did you mean 'published'?" in capsys.readouterr().err


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
