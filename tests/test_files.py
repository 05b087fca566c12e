import errno
import fcntl
import json
import os
import platform
import subprocess
import sys
import threading
import time
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from symbert import files
from symbert.errors import DataError, InputOutputError, explain
from symbert.files import (
    publish,
    read_json,
    read_json_lines,
    single_writer,
    write_json,
)


def test_a_write_replaces_the_file_at_once_or_leaves_the_old_one_and_no_other(tmp_path):
    target = tmp_path / "deep/table.csv"
    with publish(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
    with pytest.raises(RuntimeError), publish(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "new" and os.listdir(target.parent) == ["table.csv"]


def test_what_a_killed_process_left_is_removed_and_what_a_running_one_writes_is_not(tmp_path):
    """Names had only the number of the process: of two containers with shared results, each number 1, one wrote into
    the other's file, or removed it."""
    target, dead = tmp_path / "a[1].csv", subprocess.Popen(["true"])
    dead.wait()
    here, there = files._machine(), "0" * 8
    kept = {f".a[1].csv.{here}-{os.getppid()}-0a0a0a0a.tmp", f".a[1].csv.{there}-{dead.pid}-0a0a0a0a.tmp"}
    kept |= {f".b.csv.{here}-{dead.pid}-0a0a0a0a.tmp", ".a[1].csv.x.tmp", f"a[1].csv.{here}-{dead.pid}-0a0a0a0a.tmp"}
    old = f".a[1].csv.{there}-1-0b0b0b0b.tmp"  # unchanged for two days
    for name in (*kept, f".a[1].csv.{here}-{dead.pid}-0c0c0c0c.tmp", old):
        (tmp_path / name).touch()
    os.utime(tmp_path / old, (time.time() - 2 * 86_400,) * 2)
    with publish(target) as temporary, publish(target) as another:
        assert set(os.listdir(tmp_path)) == kept
        temporary.write_text("new")
        another.write_text("other")
        assert temporary != another
    assert set(os.listdir(tmp_path)) == {*kept, target.name} and target.read_text() == "new"


def test_a_lock_whose_file_was_removed_keeps_others_out_no_more_and_is_taken_anew(tmp_path):
    """A folder is removed with its lock: who waited for that lock held one that the next process did not see."""
    with single_writer(tmp_path):
        waiting = open(tmp_path / "lock", "ab")  # noqa: SIM115 (closed by the product)
        (tmp_path / "lock").unlink()
    opened = mock.Mock(side_effect=[waiting, *(open(tmp_path / "lock", "ab") for _ in range(2))])  # noqa: SIM115
    with mock.patch.object(files, "open", opened, create=True):  # noqa: SIM117 (the inner one is refused)
        with single_writer(tmp_path), pytest.raises(InputOutputError), single_writer(tmp_path):
            pass


def test_a_full_disk_is_named_with_the_target_and_the_old_file_stays(tmp_path):
    target = tmp_path / "table"
    target.write_text("old")
    with pytest.raises(OSError) as failure, publish(target) as temporary:
        temporary.symlink_to("/dev/full")
        pq.write_table(pa.table({"number": np.arange(10**6)}), temporary)
    assert explain(failure.value) == (65, f"{target}: No space left on device")
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["table"]


@pytest.mark.parametrize(
    ("call", "number"), [("os.replace", errno.EIO), ("os.fsync", errno.ESTALE), ("os.open", errno.EROFS)]
)
def test_a_disk_that_fails_while_a_file_is_published_is_no_bug(tmp_path, monkeypatch, call, number):
    target = tmp_path / "table.csv"
    target.write_text("old")
    error = OSError(number, os.strerror(number))  # it names no file, as libraries and descriptors do
    monkeypatch.setattr(call, mock.Mock(side_effect=error))
    with pytest.raises(OSError) as failure:
        write_json(target, {})
    monkeypatch.undo()
    assert explain(failure.value) == (65, f"{target}: {os.strerror(number)}")
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["table.csv"]


def test_a_number_that_is_not_finite_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "score.json", {"mrpc": float("nan")})
    assert not (tmp_path / "score.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"a": "\xff"}', b"[" * 100_000, b'{"a": 1} x'])
def test_bytes_that_are_no_json_are_told_with_file_and_line(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match=rf"^{tmp_path}/x: not (JSON|UTF-8)"):
        read_json(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"{}\n" + content + b"\n{}\n")
    with pytest.raises(DataError, match=rf"^{tmp_path}/x:2: not (JSON|UTF-8).*; make it again$"):
        list(read_json_lines(tmp_path / "x", "make it again"))


def test_a_question_who_works_in_a_folder_stops_no_writer_that_begins_in_that_instant(tmp_path):
    with open(tmp_path / "lock", "wb") as asked:
        fcntl.flock(asked, fcntl.LOCK_SH)
        threading.Timer(0.05, fcntl.flock, (asked, fcntl.LOCK_UN)).start()
        with single_writer(tmp_path):
            assert json.loads((tmp_path / "lock").read_text())["process"] == os.getpid()


ENTER = "import pathlib, sys, symbert.files as f; f.single_writer(pathlib.Path(sys.argv[1])).__enter__()"


def test_a_second_process_is_refused_while_the_first_writes_and_told_who_does(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    enter = [sys.executable, "-c", ENTER, tmp_path]
    with single_writer(tmp_path):
        refused = subprocess.run(enter, capture_output=True, text=True)
    who = f"in use by process {os.getpid()} on {platform.node()}, Slurm job 4711; wait for it or stop it"
    assert refused.stderr.splitlines()[-1].endswith(f"{tmp_path}: {who}")
    assert subprocess.run(enter).returncode == 0


SHAPE = {"step": int, "scaler": dict, "sha256": {str: str}, "shards": [{"rows": int}], "loss": (float, type(None))}
FITTING = {"step": 1, "scaler": {}, "sha256": {"a": "b"}, "shards": [{"rows": 2, "more": 3}], "loss": None, "other": 4}
WRONG = {
    "expected 'object', got 'array'": [],
    "object missing required field 'step'": {key: value for key, value in FITTING.items() if key != "step"},
    "'step': expected 'int', got 'bool'": FITTING | {"step": True},
    "'sha256[...]': expected 'str', got 'int'": FITTING | {"sha256": {"a": 1}},
    "'shards[1]': object missing required field 'rows'": FITTING | {"shards": [{"rows": 1}, {}]},
    "'loss': expected 'float | null', got 'str'": FITTING | {"loss": "1"},
}


@pytest.mark.parametrize("told", WRONG)
def test_json_of_another_shape_is_told_by_what_is_wrong_with_it(tmp_path, told):
    write_json(tmp_path / "x.json", FITTING)
    assert read_json(tmp_path / "x.json", SHAPE) == FITTING
    (tmp_path / "x.json").write_text(json.dumps(WRONG[told]))
    with pytest.raises(DataError) as failure:
        read_json(tmp_path / "x.json", SHAPE)
    assert str(failure.value) == f"{tmp_path}/x.json: {told}; delete it and run again"
