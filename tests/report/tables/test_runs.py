"""What runs were computed on: each session is counted, and what was removed is not missed."""

import json
import shutil

import pytest

from report.written import collected
from symbert.errors import DataError
from symbert.report.machines import gpus, hours, read_pretrained
from symbert.report.tables.corpus import runs_table


def rows(*runs, hosts=()):
    return runs_table(collected(runs=list(runs), hosts=list(hosts))).frame.to_dict("records")


def test_a_run_of_one_session_has_its_hours_and_hashes(pretrained):
    (row,) = rows(pretrained("original"))
    assert row["run"] == "tiny-original seed 1" and row["device"] == "cpu" and row["versions"] == "torch 2.13.0"
    assert (row["settings_hash"], row["corpus_hash"]) == ("5e77", "c0ffee")
    assert (row["sessions"], str(row["wall_hours"]), str(row["gpu_hours"])) == (1, "0.010", "0.000")  # 36 seconds


def test_an_interrupted_run_has_the_hours_of_all_its_sessions_and_each_machine(pretrained, write_sessions):
    """One hour on two GPUs of a, one and a half on one GPU of b: 2.5 hours, and 3.5 of GPUs."""
    run = pretrained("original", device="A card", sessions=2)
    write_sessions(run, ("a", "A card", 2, 60), ("b", "Another card", 1, 90))
    (row,) = rows(run)
    assert (row["device"], row["processes"]) == ("A card; Another card", "2; 1") and "host" not in row
    assert (row["sessions"], str(row["wall_hours"]), str(row["gpu_hours"])) == (2, "2.500", "3.500")


def test_the_hours_of_one_session_are_not_those_of_three(pretrained):
    """Where the state is gone, timing.json tells of the last session alone."""
    (row,) = rows(pretrained("original", sessions=3))
    assert row["sessions"] == 3 and row["wall_hours"] is row["gpu_hours"] is None
    (row,) = rows(pretrained("original", sessions=1))
    assert str(row["wall_hours"]) == "0.010"


def test_a_decoder_is_not_the_encoder_of_its_name(pretrained, write_sessions, tmp_path):
    """Of its commits and machines no table told, and their files would have gone with those of the encoder."""
    encoder = pretrained("original", commit="77aa")
    decoder = shutil.copytree(encoder, tmp_path / "runs/decoder/tiny-original/seed-1")
    for name, changes in (("done.json", {}), ("timing.json", {"commit": "4f0e, modified"})):
        told = {**json.loads((decoder / name).read_text()), **changes, "model_host": "decoder"}
        (decoder / name).write_text(json.dumps(told))
    write_sessions(encoder, ("a", "cpu", 1, 60))
    write_sessions(decoder, ("b", "cpu", 1, 30))
    assert [(row["run"], str(row["wall_hours"])) for row in rows(encoder, hosts=[decoder])] == [
        ("tiny-original seed 1", "1.000"),
        ("decoder tiny-original seed 1", "0.500"),
    ]
    shutil.rmtree(encoder / "state")
    shutil.rmtree(decoder / "state")
    assert [run.facts_of("commit") for run in read_pretrained([decoder, encoder])] == ["77aa", "4f0e, modified"]


def test_a_session_that_was_killed_at_once_took_no_time():
    assert hours({"started": "2026-01-01T00:00:00Z"}) == 0
    assert hours({"started": "2026-01-01T00:00:00Z", "until": "2026-01-02T06:00:00Z"}) == 30
    assert gpus({"device": "cpu", "processes": 4}) == 0 and gpus({"device": "A card", "processes": 4}) == 4


def test_a_file_that_is_of_no_run_is_named(tmp_path):
    (tmp_path / "done.json").write_text("{}")
    with pytest.raises(DataError, match=r"done.json: has no 'size'"):
        read_pretrained([tmp_path])


def test_imported_results_name_their_files_and_hashes():
    told = {"name": "authors", "files": {"scores.csv": "ab12", "losses.csv": "cd34"}, "steps": 200_000}
    (row,) = runs_table(collected(origin=told)).frame.to_dict("records")
    assert (row["name"], row["files"], row["steps"]) == ("authors", "scores.csv ab12, losses.csv cd34", 200_000)
