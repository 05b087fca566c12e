"""JSON files of a run that hold something else, and a damaged log: named, or the checkpoint before is taken."""

import shutil

import pytest

from damage import assert_named
from pretrain.corpora import options
from symbert.cli import main


@pytest.fixture
def run(unpublished, tmp_path):
    """A copy of a run that has published nothing, so that it goes on from its last checkpoint."""
    return shutil.copytree(unpublished, tmp_path / "run")


@pytest.fixture
def words(run, manifest, brief):
    return options(manifest, brief(), run)


def test_what_a_run_is_told_and_what_it_records_are_named_when_they_are_something_else(run, words, manifest, capsys):
    records = (run / "state" / name for name in ("identity.json", "status.json", "provenance.json"))
    for file in (manifest, run / "run.json", *records):
        assert_named(words, file, capsys)


def test_a_log_that_is_damaged_at_its_beginning_stops_the_run_and_is_named(run, words, capsys):
    log = run / "state/metrics.jsonl"
    log.write_bytes(b"#" + log.read_bytes()[1:])
    assert main(words) == 65
    said = capsys.readouterr().err.splitlines()[-1]
    assert "no intact checkpoint" in said and f"{log}: its first" in said and f"delete {run / 'state'}" in said


def test_what_an_extraction_reads_is_named_when_it_is_something_else(run, words, manifest, capsys):
    assert main(words) == 0
    words, state = ["extract", str(run), "20"], run / "state"
    read = (run / "run.json", run / "done.json", manifest.parent / "settings.json")
    for file in (*read, state / "config.json", state / "weights/step-00000020.json"):
        assert_named(words, file, capsys)
    assert main(words) == 0
