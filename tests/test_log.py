"""What a command says on standard error is in its log, whatever ends it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

LOGGED = "import sys; from pathlib import Path; from symbert.log import write_stderr; write_stderr(Path('log'))\n"


def ended(code: str, folder: Path) -> tuple[int, str]:
    """Exit code of a command, and its log; nothing of that is on standard error."""
    done = subprocess.run([sys.executable, "-c", LOGGED + code], cwd=folder, stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""
    return done.returncode, (folder / "log").read_text()


def test_what_a_command_and_its_children_say_is_in_the_log(tmp_path):
    (tmp_path / "log").write_text("of an earlier attempt")
    code = "import os; print('one', file=sys.stderr); os.system('echo two >&2'); os.write(2, b'three'); sys.exit(66)"
    assert ended(code, tmp_path) == (66, "one\ntwo\nthree")


def test_the_words_of_a_crash_are_in_the_log(tmp_path):
    code, said = ended("import faulthandler, os; faulthandler.enable(); os.abort()", tmp_path)
    assert code == -signal.SIGABRT and "Fatal Python error: Aborted" in said
    code, said = ended("raise KeyboardInterrupt", tmp_path)
    assert code == -signal.SIGINT and said.endswith("KeyboardInterrupt\n")


def test_the_log_of_a_launcher_holds_what_it_and_its_processes_say(tmp_path):
    launcher = ["sh", "-c", "echo launched >&2; sh -c 'echo process >&2'; exit 3"]
    command = [sys.executable, "-m", "symbert.log", "log", *launcher]
    done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and done.stderr == ""
    assert (tmp_path / "log").read_text() == "launched\nprocess\n"


def symbert(folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", "symbert", *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_the_error_of_a_command_is_in_its_log(tmp_path):
    code, said = symbert(tmp_path, "--log", "logs/plan", "import-scores", "missing", "--name", "theirs")
    assert code == 65 and said == ""
    assert (tmp_path / "logs/plan").read_text().startswith("symbert import-scores: missing: ")
    code, said = symbert(tmp_path, "--log", "plan", "filter-prat")
    assert code == 64 and "filter-prat" in (tmp_path / "plan").read_text()


def test_a_log_that_cannot_be_written_is_an_error_of_one_line(tmp_path):
    (tmp_path / "file").touch()
    code, said = symbert(tmp_path, "--log", "file/log", "pack", "manifest.json")
    assert code == 65 and said.count("\n") == 1 and said.startswith("symbert pack: file")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_why_a_command_failed_is_said_where_the_disk_of_its_log_is_full(tmp_path):
    """A job's log was taken to be writable: its last line was lost, and Python said "lost sys.stderr"."""
    code, said = symbert(tmp_path, "--log", "/dev/full", "build-blocklist", "none/blocklist.marisa")
    assert code == 65 and said.startswith("symbert build-blocklist: none")
