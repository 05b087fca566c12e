"""Requests to stop, sent to real processes."""

import os
import signal
import subprocess
import sys

import pytest

PATIENCE = 60  # seconds after which a process that does not end is a failure
TELL_ONCE_ASKED = """
import sys
from symbert.pretrain.run import StopRequest
stop = StopRequest()
assert "torch" not in sys.modules
print("ready", flush=True)
import torch
sys.stdin.readline()
print(stop.signal, flush=True)
"""
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


@pytest.mark.parametrize("number", [signal.SIGUSR1, None])
def test_a_signal_that_comes_while_torch_is_imported_is_remembered_by_its_name(number):
    process = start(TELL_ONCE_ASKED)
    if number:
        process.send_signal(number)
    assert answer(process) == (number.name if number else "None")
    assert process.wait(PATIENCE) == 0


def test_ctrl_c_does_not_stop_a_run_that_was_started_to_ignore_it():
    """As a shell starts what runs in the background of a script; Snakemake and every other job go on there."""
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN){TELL_ONCE_ASKED}"
    process = start(ignoring.replace("import torch\n", ""))
    process.send_signal(signal.SIGINT)
    assert answer(process) == "None" and process.wait(PATIENCE) == 0


def test_the_warning_of_the_time_limit_is_heeded_though_a_workflow_has_its_jobs_ignore_it():
    """As the Snakefile does, for all jobs but trainings."""
    ignoring = f"import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN){TELL_ONCE_ASKED}"
    process = start(ignoring.replace("import torch\n", ""))
    process.send_signal(signal.SIGUSR1)
    assert answer(process) == "SIGUSR1" and process.wait(PATIENCE) == 0


@pytest.mark.parametrize(("way", "reason"), [("plain", "parent process ended"), ("nohup", "None")])
def test_a_process_whose_parent_was_killed_stops_unless_it_was_started_to_go_on(way, reason):
    parent = start(START_A_CHILD, TELL_ONCE_ASKED.replace("import torch\n", ""), way)
    os.kill(parent.pid, signal.SIGKILL)
    assert parent.wait(PATIENCE) == -signal.SIGKILL
    assert answer(parent) == reason
    assert parent.stdout.read() == ""  # the child has ended too: nobody else holds the pipe
