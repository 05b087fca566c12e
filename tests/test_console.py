"""What a command says on standard error is in its log, whatever ends it."""

import subprocess
import sys
from pathlib import Path


def test_what_a_command_and_its_children_say_is_in_the_log_and_not_on_standard_error(tmp_path):
    (tmp_path / "log").write_text("of an earlier attempt")
    code = """
import os, sys
from pathlib import Path
from symbert.console import write_stderr
write_stderr(Path('log'))
print('one', file=sys.stderr)
os.system('echo two >&2')
os.write(2, b'three')
sys.exit(66)"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr, (tmp_path / "log").read_text()) == (66, "", "one\ntwo\nthree")


def test_the_log_of_a_launcher_holds_what_it_and_its_processes_say(tmp_path):
    launcher = ["sh", "-c", "echo launched >&2; sh -c 'echo process >&2'; exit 3"]
    command = [sys.executable, "-m", "symbert.console", "log", *launcher]
    done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and done.stderr == ""
    assert (tmp_path / "log").read_text() == "launched\nprocess\n"


def symbert(folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", "symbert", *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_the_error_of_a_command_is_in_its_log_where_that_can_be_written(tmp_path):
    """The last line of a job was lost where the disk of its log was full, and Python said "lost sys.stderr"."""
    assert symbert(tmp_path, "--log", "logs/plan", "import-scores", "missing", "--name", "theirs") == (65, "")
    assert (tmp_path / "logs/plan").read_text().startswith("symbert import-scores: missing: ")
    (tmp_path / "file").touch()
    code, said = symbert(tmp_path, "--log", "file/log", "pack", "manifest.json")
    assert code == 65 and said.count("\n") == 1 and said.startswith("symbert pack: file")
    if Path("/dev/full").exists():
        code, said = symbert(tmp_path, "--log", "/dev/full", "build-blocklist", "none/blocklist.marisa")
        assert code == 65 and said.startswith("symbert build-blocklist: none")
