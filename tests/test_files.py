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

from snakemake_logger_plugin_symbert import LogHandler
from symbert import files
from symbert.errors import DataError, InputOutputError, explain
from symbert.files import (
    KNOWN,
    known_sha256,
    known_sha256s,
    publish,
    read_json,
    read_json_lines,
    sha256_of,
    single_writer,
    size_of,
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


@pytest.fixture
def reads(tmp_path, monkeypatch):
    """The files whose content is read for `known_sha256s`, which keeps also what takes no time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "QUICK", 0)
    read, digest = [], files._sha256_of_file
    monkeypatch.setattr(files, "_sha256_of_file", lambda file: (read.append(file.name), digest(file))[1])
    return read


def texts(folder, *contents):
    for number, content in enumerate(contents):
        (folder / f"{number}.txt").write_text(content)
    return sorted(folder.glob("*.txt"))


@pytest.fixture
def later(monkeypatch):
    """A minute later than it is."""
    now = time.time_ns
    monkeypatch.setattr(files.time, "time_ns", lambda: now() + 60 * 10**9)


def test_a_start_reads_files_of_the_users_own_again_only_where_they_changed(tmp_path, reads, later):
    """Those of less than 100 MB were read at every start and in every job: 10,000 small ones, too."""
    (tmp_path / "folder").mkdir()
    paths = [*texts(tmp_path / "folder", "a", "b"), *texts(tmp_path, "one", "two", "three")]
    places = [tmp_path / "folder", *paths[2:]]
    digests = known_sha256s(places)
    assert digests == [sha256_of(place) for place in places]
    reads.clear()
    assert (known_sha256s(places), reads) == (digests, [])
    paths[0].write_text("c")
    assert known_sha256s(places)[1:] == digests[1:] != known_sha256s(places)[:1] and reads == ["0.txt"]


@pytest.mark.parametrize("way", [os.replace, lambda other, file: file.write_bytes(other.read_bytes())])
def test_another_file_of_the_same_size_and_time_is_not_taken_for_the_one_that_was_read(tmp_path, reads, later, way):
    """Its digest was kept by size and time alone: `cp -p` of another text of the same length was not seen."""
    file, other = texts(tmp_path, "first", "other")
    first, facts = known_sha256(file), file.stat()
    way(other, file)
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)
    assert known_sha256(file) == sha256_of(file) != first


def test_a_file_that_changed_an_instant_ago_is_read_again(tmp_path, reads):
    """It may change once more in the same tick of the disk's clock, and would be taken for what it was."""
    (file,) = texts(tmp_path, "first")
    known_sha256(file)
    assert known_sha256(file) == sha256_of(file) and reads == ["0.txt", "0.txt"] and not KNOWN.exists()


def test_processes_that_keep_digests_at_the_same_time_harm_no_digest(tmp_path, reads, later):
    paths = texts(tmp_path, *map(str, range(40)))
    KNOWN.parent.mkdir()
    KNOWN.write_text('{"torn": [[1, 2')
    ours = "from pathlib import Path; from symbert import files; import sys, time; now = time.time_ns; files.QUICK = 0;"
    ours += "files.time.time_ns = lambda: now() + 60 * 10**9; print(*files.known_sha256s(sys.argv[1:]))"
    halves = [[sys.executable, "-c", ours, *paths[start : start + 20]] for start in (0, 10, 20) for _ in range(2)]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for words in halves]
    for words, process in zip(halves, processes, strict=True):
        assert process.communicate()[0].split() == [sha256_of(path) for path in words[3:]]
    assert known_sha256s(paths) == [sha256_of(path) for path in paths]
    reads.clear()
    known_sha256s(paths)
    assert reads == []


def test_a_long_reading_of_files_is_told_in_one_line(tmp_path, reads, later, monkeypatch, capsys):
    paths = texts(tmp_path, "one", "two")
    monkeypatch.setattr(files, "_sha256_of_file", lambda file: time.sleep(0.6) or "0" * 64)
    known_sha256s(paths)
    assert len(capsys.readouterr().err.splitlines()) == 1
    known_sha256s(paths)
    assert capsys.readouterr().err == ""


def test_a_file_that_vanishes_between_two_questions_has_no_size(tmp_path, monkeypatch):
    """`exists()` and then `stat()` ended a plan, a prune and the bar of jobs whose file was removed meanwhile."""
    monkeypatch.setattr("pathlib.Path.exists", lambda path: True)
    assert size_of(tmp_path / "gone") is None
    handler = mock.Mock(running={1: ("job", [str(tmp_path / "gone.log")], 0.5)}, done=0, total=1, start=0.0)
    assert LogHandler.look(handler)[1:] == []
