import os
from contextlib import redirect_stderr
from types import SimpleNamespace

import pytest

from symbert.progress import (
    Progress,
    last_error,
    last_lines,
    last_place,
    warnings_of,
)


def test_progress_says_rate_and_remaining_time_and_always_the_end(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 20.0])
    monkeypatch.setattr("symbert.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    progress = Progress("filter", 300, "documents")
    progress.update(50)
    progress.update(100, "loss 5.1")
    progress.update(300)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "filter: 100/300 documents, 10.0/s, 20 s left, loss 5.1",
        "filter: 300/300 documents, 15.0/s, 0 s left",
    ]


def test_a_resumed_step_counts_only_what_it_did(capsys, monkeypatch):
    clock = iter([0.0, 10.0])
    monkeypatch.setattr("symbert.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    Progress("pretrain", 300, "steps", start=200).update(300)
    assert "10.0/s" in capsys.readouterr().err


# Logs, read back.


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """Writes progress to a log, ten seconds after its beginning, and gives the last place in it."""

    def write(label: str, total: int | None, unit: str, done: int, note: str = "", start: int = 0):
        clock = iter([0.0, 10.0])
        monkeypatch.setattr("symbert.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
        with open(tmp_path / "log", "a") as file, redirect_stderr(file):
            Progress(label, total, unit, start, interval=0).update(done, note)
        return last_place(tmp_path / "log")

    return write


def test_the_place_in_a_log_is_what_progress_wrote_last(logged, tmp_path):
    """Only the steps of a training say how much time its job has left: of other lines there may be several in a log."""
    assert logged("verify shards", 12, "shards", 12) == ("12/12 shards, 1.2/s, 0 s left", None)
    assert logged("filter x", None, "documents", 12_345, "so many") == ("12,345 documents, 1,234.5/s", None)
    training = "pretrain tiny-pairwise seed 1"
    assert logged(training, 1600, "steps", 400, "56,053 tokens/s") == ("400/1,600 steps, 40.0/s, 30 s left", 30.0)
    task = "finetune tiny-pairwise seed 1 step 1600: mrpc seed 2"
    assert logged(task, 315, "steps", 63) == ("mrpc seed 2: 63/315 steps, 6.3/s, 40 s left", None)
    (tmp_path / "log").open("a").write("a warning: of 3/4 libraries\n\n")
    assert last_place(tmp_path / "log")[0] == "mrpc seed 2: 63/315 steps, 6.3/s, 40 s left"


@pytest.mark.parametrize(("total", "left"), [(3960, 80.0), (11_240, 1900.0), (1_000_000, 249_090.0)])
def test_the_time_that_is_left_is_read_in_its_units(logged, total, left):
    """Of a training that was resumed at step 3,600: its steps are no measure of the time that it takes from there."""
    assert logged("pretrain x", total, "steps", 3640, start=3600)[1] == pytest.approx(left, rel=0.02)


def test_what_is_older_than_a_job_is_of_another_one(logged, tmp_path):
    log = tmp_path / "log"
    logged("pretrain x", 10, "steps", 5)
    os.utime(log, (100, 100))
    assert last_place(log, since=101) == ("", None) and last_place(log, since=99)[1] == 10.0
    assert last_place(tmp_path / "none") == ("", None) and last_lines(tmp_path) == []


def test_the_end_of_a_long_log_is_read_whatever_bytes_it_has(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"symbert finetune: first\n" + b"\xff" * 100_000 + b"\nlast\n\n")
    assert last_lines(log)[-1] == "last" and last_error([str(log)]) == ""


def test_the_last_error_of_a_command_is_the_line_that_matters(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("symbert: x\nTraceback\nsymbert pretrain-model: y: 12 of 13; free space\ntorchrun: failed\n")
    second.write_text("slurmstepd: error\n")
    assert last_error([str(first), str(second)]) == "symbert pretrain-model: y: 12 of 13; free space"
    assert last_error([str(second)]) == last_error([]) == ""


def test_a_warning_is_not_why_a_command_failed(tmp_path):
    """That an operator mixes tokens was shown as the failure of a job that the system had killed for its memory."""
    log = tmp_path / "log"
    log.write_text("warning: attention 'a' mixes tokens\nfinetune: 1/9 steps, 1.0/s, 8 s left\nKilled\n")
    assert last_error([str(log)]) == "" and last_lines(log)[-1] == "Killed"
    assert warnings_of([str(log), str(tmp_path / "none")]) == ["warning: attention 'a' mixes tokens"]
