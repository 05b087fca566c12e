"""JSON files of a run that hold something else, and a damaged log: named, or the checkpoint before is taken."""

import shutil

import pytest

from damage import assert_named
from pretrain.corpora import options
from symbert.cli import main
from symbert.files import sha256_of


@pytest.fixture
def run(unpublished, tmp_path):
    """A copy of a run that has published nothing, so that it goes on from its last checkpoint."""
    return shutil.copytree(unpublished, tmp_path / "run")


@pytest.fixture
def words(run, manifest, brief):
    return options(manifest, brief(), run)


def assert_finished_as(run, finished) -> None:
    for name in ("metrics.jsonl", "done.json"):
        assert sha256_of(run / name) == sha256_of(finished / name), name


def spoil(log, line, damage):
    """Damage one line (from 0) of a log, so that its length stays."""
    lines = log.read_bytes().splitlines(keepends=True)
    lines[line] = damage(lines[line])
    log.write_bytes(b"".join(lines))


def test_what_a_run_is_told_and_what_it_records_are_named_when_they_are_something_else(run, words, manifest, capsys):
    records = (run / "state" / name for name in ("identity.json", "status.json", "provenance.json"))
    for file in (manifest, run / "run.json", *records):
        assert_named(words, file, capsys)


@pytest.mark.parametrize("content", ["[]", "{}", "{"])
def test_a_newest_checkpoint_whose_record_is_none_is_skipped_for_the_one_before(run, words, finished, capsys, content):
    """Only what was no JSON, or had another hash, was: `[]` ended with 70, "internal error"."""
    record = run / "state/resume/step-00000030/checkpoint.json"
    record.write_text(content)
    assert main(words) == 0
    assert f"warning: {record}: " in capsys.readouterr().err
    assert_finished_as(run, finished)


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[:5] + b"\xff" + line[6:],
        lambda line: line.replace(b'"step": 30', b'"step": 31'),
    ],
    ids=["no UTF-8", "another number"],
)
def test_a_log_that_is_damaged_since_the_checkpoint_before_is_written_again_from_there(
    run, words, finished, capsys, damage
):
    """Its bytes were in no checksum: a flipped digit became a point of the curve."""
    log = run / "state/metrics.jsonl"
    spoil(log, -1, damage)
    assert sha256_of(log) != sha256_of(finished / "metrics.jsonl")
    assert main(words) == 0
    assert f"warning: {log}: its first {log.stat().st_size} bytes are others" in capsys.readouterr().err
    assert_finished_as(run, finished)


def test_a_log_that_is_damaged_at_its_beginning_stops_the_run_and_is_named(run, words, capsys):
    log = run / "state/metrics.jsonl"
    spoil(log, 0, lambda line: b"#" + line[1:])
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
