"""What runs were computed on: each session is counted, and what was removed is not missed."""

import json

import pytest

from symbert.errors import DataError
from symbert.report.data import Data
from symbert.report.machines import gpus, hours, read_pretrained
from symbert.report.tables.provenance import runs_table


def rows(*files, sessions=()):
    return runs_table(Data(provenance=list(files), sessions=list(sessions))).frame.to_dict("records")


def test_a_run_of_one_session_has_its_hours_and_hashes(pretrained):
    (row,) = rows(*pretrained("original"))
    assert row["run"] == "tiny-original seed 1" and row["device"] == "cpu" and row["versions"] == "torch 2.13.0"
    assert (row["settings_hash"], row["corpus_hash"]) == ("5e77", "c0ffee")
    assert (row["sessions"], str(row["wall_hours"]), str(row["gpu_hours"])) == (1, "0.010", "0.000")  # 36 seconds


def test_an_interrupted_run_has_the_hours_of_all_its_sessions_and_each_machine(pretrained, write_sessions):
    """One hour on two GPUs of a, one and a half on one GPU of b: 2.5 hours, and 3.5 of GPUs."""
    files = pretrained("original", device="A card", sessions=2)
    sessions = write_sessions(files[0], ("a", "A card", 2, 60), ("b", "Another card", 1, 90))
    (row,) = rows(*files, sessions=[sessions])
    assert (row["device"], row["processes"]) == ("A card; Another card", "2; 1") and "host" not in row
    assert (row["sessions"], str(row["wall_hours"]), str(row["gpu_hours"])) == (2, "2.500", "3.500")


def test_the_hours_of_one_session_are_not_those_of_three(pretrained, tmp_path):
    """Where the state is gone, timing.json tells of the last session alone."""
    gone = [tmp_path / "tiny-original/seed-1/state/gone.json"]
    (row,) = rows(*pretrained("original", sessions=3), sessions=gone)
    assert row["sessions"] == 3 and row["wall_hours"] is row["gpu_hours"] is None
    (row,) = rows(*pretrained("original", sessions=1), sessions=gone)
    assert str(row["wall_hours"]) == "0.010"


def test_sessions_are_those_of_the_run_in_whose_folder_they_lie(pretrained, write_sessions):
    first, tenth = pretrained("original", seed=1), pretrained("original", seed=10)
    sessions = write_sessions(tenth[0], ("a", "cpu", 1, 60))
    assert [str(row["wall_hours"]) for row in rows(*tenth, *first, sessions=[sessions])] == ["0.010", "1.000"]


def test_a_decoder_is_not_the_encoder_of_its_name(pretrained, write_sessions, tmp_path):
    """Of its commits and machines no table told, and their files would have gone with those of the encoder."""
    encoder = pretrained("original", commit="77aa")
    decoder = []
    for file, changes in zip(encoder, ({}, {"commit": "4f0e, modified"}), strict=True):
        decoder.append(tmp_path / "pretrain/decoder/tiny-original/seed-1" / file.name)
        decoder[-1].parent.mkdir(parents=True, exist_ok=True)
        decoder[-1].write_text(json.dumps({**json.loads(file.read_text()), **changes, "model_host": "decoder"}))
    sessions = [write_sessions(encoder[0], ("a", "cpu", 1, 60)), write_sessions(decoder[0], ("b", "cpu", 1, 30))]
    told = rows(*decoder, *encoder, sessions=sessions)
    assert [(row["run"], str(row["wall_hours"])) for row in told] == [
        ("tiny-original seed 1", "1.000"),
        ("decoder tiny-original seed 1", "0.500"),
    ]
    assert [run.facts_of("commit") for run in read_pretrained([*encoder, *decoder], [])] == ["77aa", "4f0e, modified"]


def test_a_session_that_was_killed_at_once_took_no_time():
    assert hours({"started": "2026-01-01T00:00:00Z"}) == 0
    assert hours({"started": "2026-01-01T00:00:00Z", "until": "2026-01-02T06:00:00Z"}) == 30
    assert gpus({"device": "cpu", "processes": 4}) == 0 and gpus({"device": "A card", "processes": 4}) == 4


def test_a_file_that_is_of_no_run_is_named(tmp_path):
    other = tmp_path / "parameters.json"
    other.write_text("{}")
    with pytest.raises(DataError, match=r"parameters.json: has no 'size'; give done.json or timing"):
        read_pretrained([other], [])


def test_imported_results_name_their_files_and_hashes(tmp_path):
    told = {"name": "authors", "files": {"scores.csv": "ab12", "losses.csv": "cd34"}, "steps": 200_000}
    file = tmp_path / "import.json"
    file.write_text(json.dumps(told))
    (row,) = runs_table(Data(origin=file)).frame.to_dict("records")
    assert (row["name"], row["files"], row["steps"]) == ("authors", "scores.csv ab12, losses.csv cd34", 200_000)
