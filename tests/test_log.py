"""What a command says on standard error is in its log, whatever ends it; and the log changes nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from symbert.log import LOG_ONLY

LOGGED = "import sys; from pathlib import Path; from symbert.log import copy_stderr; copy_stderr(Path('log'))\n"


def start(code, folder, **options):
    command = [sys.executable, "-c", LOGGED + code]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True, **options)


def ended(code, folder):
    """Exit code of a command, and what it said, once on standard error and in the log."""
    process = start(code, folder)
    said = process.stderr.read()
    assert said == (folder / "log").read_text()
    return process.wait(), said


def test_what_a_command_and_its_children_say_is_in_the_log_and_on_standard_error(tmp_path):
    code = "import os; print('one', file=sys.stderr); os.system('echo two >&2'); os.write(2, b'three'); sys.exit(66)"
    assert ended(code, tmp_path) == (66, "one\ntwo\nthree")


def test_a_log_is_whole_when_its_command_has_ended(tmp_path):
    for _ in range(10):
        process = start("for number in range(5000): print(number, file=sys.stderr)", tmp_path)
        process.stderr.close()  # nor does a terminal that is gone end a command
        assert process.wait() == 0
        assert (tmp_path / "log").read_text().splitlines()[-1] == "4999"


def test_the_words_of_a_crash_are_in_the_log(tmp_path):
    code, said = ended("import faulthandler, os; faulthandler.enable(); os.abort()", tmp_path)
    assert code == -signal.SIGABRT and "Fatal Python error: Aborted" in said
    code, said = ended("raise KeyboardInterrupt", tmp_path)
    assert code == -signal.SIGINT and said.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_last_words_after_a_signal_to_the_whole_group_are_in_the_log(number, tmp_path):
    code = (
        f"import signal, time; signal.signal({int(number)}, lambda *_: sys.exit('saved'))\n"
        "print('ready', file=sys.stderr); time.sleep(60)"
    )
    process = start(code, tmp_path)
    assert process.stderr.readline() == "ready\n"
    os.killpg(process.pid, number)
    assert process.stderr.read() == "saved\n" and process.wait() == 1
    assert (tmp_path / "log").read_text() == "ready\nsaved\n"


def test_a_command_waits_for_no_child_that_lives_on_whose_words_are_still_copied(tmp_path):
    os.mkfifo(tmp_path / "wait")
    process = start("import os; print('end', file=sys.stderr); os.system('(read x <wait; echo later >&2) &')", tmp_path)
    assert process.wait(timeout=60) == 0
    assert (tmp_path / "log").read_text() == "end\n"
    (tmp_path / "wait").write_text("go on\n")
    assert process.stderr.read() == "end\nlater\n" == (tmp_path / "log").read_text()


def test_where_a_console_reads_the_logs_standard_error_goes_there_alone(tmp_path):
    code = "import os; print('one', file=sys.stderr); os.system('echo two >&2'); os.abort()"
    process = start(code, tmp_path, env={**os.environ, LOG_ONLY: "1"})
    assert process.stderr.read() == "" and process.wait() == -signal.SIGABRT
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_the_log_of_a_launcher_holds_what_it_and_its_processes_say(tmp_path):
    launcher = ["sh", "-c", "echo launched >&2; sh -c 'echo process >&2'; exit 3"]
    command = [sys.executable, "-m", "symbert.log", "log", *launcher]
    done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert done.stderr == "launched\nprocess\n" == (tmp_path / "log").read_text()


def symbert(folder, *words):
    done = subprocess.run([sys.executable, "-m", "symbert", *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_the_error_of_a_command_is_in_its_log(tmp_path):
    code, said = symbert(tmp_path, "--log", "logs/plan", "import-scores", "missing", "--name", "theirs")
    assert code == 65 and said.startswith("symbert import-scores: missing: ")
    assert said == (tmp_path / "logs/plan").read_text()
    code, said = symbert(tmp_path, "--log", "plan", "filter-prat")
    assert code == 64 and said == (tmp_path / "plan").read_text()


def test_a_log_that_cannot_be_written_is_an_error_of_one_line(tmp_path):
    (tmp_path / "file").touch()
    code, said = symbert(tmp_path, "--log", "file/log", "write-settings", "--values", "{}", "--output", "settings")
    assert code == 65 and said.count("\n") == 1 and said.startswith("symbert write-settings: file")
    assert not (tmp_path / "settings").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_why_a_command_failed_is_said_where_the_disk_of_its_log_is_full():
    """A job's log was taken to be writable: its last line was lost, and Python said "lost sys.stderr"."""
    command = [sys.executable, "-m", "symbert", "--log", "/dev/full", "build-blocklist", "--record", "none.json"]
    ended = subprocess.run(
        [*command, "--archive", "none.tar.gz", "--output", "out", "--summary", "out.json"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, LOG_ONLY: "1"},
    )
    assert ended.returncode == 65
    assert ended.stderr.startswith("symbert build-blocklist: none")
