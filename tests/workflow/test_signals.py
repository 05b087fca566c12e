"""Whenever a signal comes, Snakemake and its jobs end; what is done stays, and the same command goes on."""

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from symbert.files import sha256_of
from workflow.checkout import HANG, Checkout, check_out, heed_signals
from workflow.interrupted import TOY, Interruption, drawn, interrupted, some_at_once, toy

TERM = signal.SIGTERM
OF_THE_MACHINE = ("logs", "state", "finished", "measured", "report", "lock", "timing.json", "digests.json")
GOES_ON = re.compile(r"symbert [\w-]+: .*the same command (resumes|to go on)")


def test_sigterm_ends_snakemake_while_it_waits_for_a_file(tmp_path):
    """It waited without end for a lock that it held itself."""
    end = interrupted(toy(tmp_path / "toy"), Interruption("waits", (TERM,) * 20, 0.001, False), *TOY)
    assert end.code == 1 and not end.is_locked, end.output


@pytest.mark.campaign
def test_signals_at_any_moment_hang_nothing(tmp_path):
    """Fifty times; where all is done meanwhile, Snakemake ends with 0 or, as it ends, by the signal."""
    draw = random.Random(48)
    interruptions = [drawn(draw, ("runs", "waits", "waits"), 6) for _ in range(50)]
    toys = [toy(tmp_path / str(number)) for number in range(50)]
    pairs = list(zip(toys, interruptions, strict=True))
    ends = some_at_once([partial(interrupted, workflow, interruption, *TOY) for workflow, interruption in pairs])
    for interruption, end in zip(interruptions, ends, strict=True):
        assert end.code in (0, 1, -TERM) and not end.is_locked, (interruption, end)
    assert sum(end.code == 1 for end in ends) > 25


@pytest.mark.campaign
def test_snakemake_by_itself_hangs(tmp_path):
    """Where a newer one does not, `heed_signals` and docs/upstream/snakemake-sigterm.md can go."""
    by_itself = toy(tmp_path / "toy", onstart="pass")
    end = interrupted(by_itself, Interruption("waits", (TERM,), 0, False), *TOY, patience=15)
    assert end.code is None and end.is_locked


@pytest.mark.campaign
def test_a_demo_that_is_interrupted_five_times_goes_on_to_its_end(root, tmp_path):
    draw, demo = random.Random(48), check_out(root, tmp_path / "demo")
    for _ in range(5):
        interruption = drawn(draw, (), 40)
        end = interrupted(demo, interruption, patience=HANG)  # alone, it waits for trainings
        print(interruption, end.code)
        assert end.code == 1 and not end.is_locked and "Traceback" not in end.output, end
    with demo.running() as (process, output):
        assert process.wait(4 * HANG) == 0, output.read_text()
    assert any(demo.directory.glob("results/*/report/report.html"))


def commands_of(copy: Checkout) -> dict[str, str]:
    """A shell command of each rule, as Snakemake starts it."""
    told = copy.tiny("--dry-run", "--printshellcmds", "--forceall", "report", "paper").output
    return dict(re.findall(r"^ *(?:local)?rule (\w+):\n(?: +.*\n)*?Shell command: (.*)$", told, re.M))


def heeds(process: subprocess.Popen) -> bool:
    """Whether a process has a handler of SIGTERM; true when it has ended."""
    told = re.search(r"SigCgt:\t(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    return process.poll() is not None or bool(told and int(told[1], 16) >> (TERM - 1) & 1)


def fingerprints(copy: Checkout) -> dict[str, str]:
    """The SHA-256 of results, but for those of the machine."""
    files = [path for path in (copy.directory / "results").rglob("*") if path.is_file()]
    files = [path for path in files if path.suffix not in (".log", ".txt") and not {*path.parts} & {*OF_THE_MACHINE}]
    return {str(path.relative_to(copy.directory)): sha256_of(path) for path in files}


@pytest.mark.campaign
def test_every_job_that_is_asked_to_stop_says_so_ends_with_75_and_goes_on_to_the_same_bytes(copy):
    """In each a few times, at any moment of its work."""
    draw, before, commands = random.Random(48), fingerprints(copy), commands_of(copy)
    assert len(commands) == 11
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])  # noqa: PTH120 (as the Snakefile)
    environment = {**copy.environment, "PATH": path}
    for rule, command in commands.items():
        log = copy.directory / shlex.split(command)[-1]
        start = {"cwd": copy.directory, "env": environment, "preexec_fn": heed_signals, "executable": "/bin/bash"}

        def ended(seconds: float | None) -> tuple[int, float]:
            """The exit code of the command, asked to stop after seconds of its work, and how long it took."""
            with subprocess.Popen(f"set -euo pipefail; {command}", shell=True, **start) as process:  # noqa: B023
                while not heeds(process):
                    time.sleep(0.002)
                begin = time.monotonic()
                if seconds is not None:
                    time.sleep(seconds)
                    process.send_signal(TERM)
                return process.wait(HANG), time.monotonic() - begin

        code, whole = ended(None)
        assert code == 0, (rule, log.read_text())
        for _ in range(5):
            seconds = draw.uniform(0, whole)
            code, _ = ended(seconds)
            said = [line for line in log.read_text().splitlines() if GOES_ON.fullmatch(line)]
            print(rule, f"{seconds:.2f} of {whole:.2f} s", code, said)
            assert (code, len(said)) in ((75, 1), (0, 0)), (rule, log.read_text())
            assert "Traceback" not in log.read_text()
        assert ended(None)[0] == 0, (rule, log.read_text())
        assert fingerprints(copy) == before, rule
