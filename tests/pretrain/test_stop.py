"""Requests to stop, sent to real processes."""

import os
import signal
import subprocess
import sys

import pytest

PATIENCE = 60  # seconds after which a process that does not end is a failure
WAIT = """
import sys
from symbert.pretrain.run import StopRequest
stop = StopRequest()
assert "torch" not in sys.modules and "numpy" not in sys.modules
print("ready", flush=True)
"""
TELL_ONCE_ASKED = f"{WAIT}sys.stdin.readline()\nprint(stop.signal, flush=True)"
IMPORT_TORCH = f"{WAIT}import torch\nprint(stop.signal, torch.ones(2).sum().item(), flush=True)"
START_A_CHILD = """
import signal, subprocess, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[2] == "nohup" else signal.SIG_DFL)
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
signal.pause()
"""


def start(*arguments: str) -> subprocess.Popen:
    """A process that has said that it is ready."""
    command = [sys.executable, "-c", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def answer(process: subprocess.Popen) -> str:
    """What it says once it is asked."""
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_is_remembered_by_its_name(number):
    process = start(TELL_ONCE_ASKED)
    process.send_signal(number)
    assert answer(process) == number.name
    assert process.wait(PATIENCE) == 0


def test_without_a_signal_there_is_no_request():
    process = start(TELL_ONCE_ASKED)
    assert answer(process) == "None"
    assert process.wait(PATIENCE) == 0


def test_a_signal_that_comes_while_torch_is_imported_is_remembered_and_the_import_succeeds():
    process = start(IMPORT_TORCH)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE)[0] == "SIGTERM 2.0\n"
    assert process.returncode == 0


@pytest.mark.parametrize(("way", "reason"), [("plain", "parent process ended"), ("nohup", "None")])
def test_a_process_whose_parent_was_killed_stops_unless_it_was_started_to_go_on(way, reason):
    parent = start(START_A_CHILD, TELL_ONCE_ASKED, way)
    os.kill(parent.pid, signal.SIGKILL)
    assert parent.wait(PATIENCE) == -signal.SIGKILL
    assert answer(parent) == reason
    assert parent.stdout.read() == ""  # the child has ended too: nobody else holds the pipe
