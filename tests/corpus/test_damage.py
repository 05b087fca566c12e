"""JSON files of the corpus stage that hold something else ended every command with 70, "internal error"."""

import json

import pytest

from corpus.oscar import record, write_part
from corpus.test_shards import write_parts
from damage import CONTENTS, assert_named, options


def write(path, value):
    path.write_text(json.dumps(value))
    return path


@pytest.fixture
def counted(tmp_path):
    """What says how full the corpus is."""
    return {
        "batch": write(tmp_path / "0.json", {"documents": 1, "tokens": 2}),
        "intake": write(tmp_path / "intake.json", {"max_documents": 10}),
    }


@pytest.fixture
def sources(tmp_path):
    return write(tmp_path / "sources.json", {"repositories": {"a/b": {"commit": "0" * 40}}, "checksums": {"x": "0"}})


@pytest.mark.parametrize("damaged", ["records", "previous"])
def test_a_count_of_documents_that_is_none_is_named(tmp_path, counted, capsys, damaged):
    files = {"records": write(tmp_path / "part.json", {"documents": 1, "tokens": 2}), "previous": counted["batch"]}
    words = ["count-batch", *options(**files, output=tmp_path / "1.json")]
    assert_named(words, files[damaged], capsys)


@pytest.mark.parametrize("damaged", ["settings", "sources", "batch", "intake"])
def test_what_a_download_is_told_is_named_when_it_is_something_else(
    tmp_path, write_section, counted, sources, capsys, damaged
):
    settings = write_section("corpus_source", source="hub", root=None)
    files = {"settings": settings, "sources": sources, **counted}
    words = ["download-part", *options(**files, part="en_meta_part_1", output=tmp_path / "out")]
    assert_named(words, files[damaged], capsys)


@pytest.mark.parametrize("command", [["download-vocabulary"], ["download-harmful-model", "--file", "en.arpa"]])
def test_commits_that_are_none_are_named(tmp_path, write_section, sources, capsys, command):
    words = [*command, *options(settings=write_section("corpus_source"), sources=sources, output=tmp_path / "out")]
    assert_named(words, sources, capsys)


@pytest.mark.parametrize("damaged", ["settings", "sources", "batch", "intake"])
def test_what_the_filter_is_told_is_named_when_it_is_something_else(
    tmp_path, write_section, counted, sources, blocklist_file, capsys, damaged
):
    files = {"settings": write_section("filter"), "sources": sources, **counted}
    part = write_part(tmp_path / "part.jsonl.zst", [record(harmful_pp=7.5)])
    outputs = {"output": tmp_path / "out.parquet", "counts": tmp_path / "counts.json"}
    words = ["filter-part", *options(part=part, name="part", blocklist=blocklist_file, **files, **outputs)]
    assert_named(words, files[damaged], capsys)


def test_annotations_that_nobody_knows_are_refused_with_those_that_there_are(
    tmp_path, write_section, blocklist_file, capsys
):
    """They were a KeyError, and so a bug."""
    settings = write_section("filter", annotations="guessed")
    part = write_part(tmp_path / "part.jsonl.zst", [record(harmful_pp=7.5)])
    outputs = {"output": tmp_path / "out.parquet", "counts": tmp_path / "counts.json"}
    from symbert.cli import main

    given = options(part=part, name="part", blocklist=blocklist_file, settings=settings, **outputs)
    assert main(["filter-part", *given]) == 64
    said = capsys.readouterr().err
    assert "filter.json: 'annotations' is 'guessed'; did you mean 'published'?" in said


@pytest.mark.parametrize("damaged", ["settings", "records"])
def test_what_packing_is_told_is_named_when_it_is_something_else(tmp_path, write_section, capsys, damaged):
    files = write_parts(tmp_path / "parts", [(number, 8) for number in range(20)])
    settings = write_section("pack", sequence_length=8, validation_sequences=2)
    given = options(**files, vocabulary=tmp_path / "parts/vocab.txt", settings=settings, output=tmp_path / "manifest")
    assert_named(["pack-shards", *given], settings if damaged == "settings" else files["records"][0], capsys)


def test_a_manifest_that_is_none_is_named_where_a_row_is_looked_up(tmp_path, capsys):
    manifest = write(tmp_path / "manifest.json", {"rows": {"train": 1}, "sequence_length": 4, "parts": ["part"]})
    words = ["locate-sample", *options(manifest=manifest, filtered=tmp_path, split="train", row=0)]
    assert_named(words, manifest, capsys, (*CONTENTS, '{"rows": {"train": "1"}, "sequence_length": 4, "parts": []}'))
