"""Snakemake with the Slurm profile, asked to end at any moment. `make test-slurm`."""

import random
import signal
import time
from functools import partial

from campaigns.slurm.copies import HASTE, ON_SLURM, log_of, snakemake, working_copy
from campaigns.slurm.jobs import PATIENCE, ask
from workflow.interrupted import BEGINS, WAITS, Interruption, drawn, interrupted, some_at_once, toy

# The job's own Snakemake sees the file, the one that submitted it does not yet: as on a file system that lags.
LAGS = "touch {output}; (sleep 4; mv {output} {output}.x; sleep 60; mv {output}.x {output}) > /dev/null 2>&1 &"


def test_signals_end_snakemake_while_jobs_of_slurm_run_and_while_it_waits_for_their_files(root, tmp_path):
    interruptions = [
        Interruption("runs", (signal.SIGTERM,), 0, False),
        Interruption("waits", (signal.SIGTERM,) * 2, 0.001, False),
        Interruption("waits", (signal.SIGTERM,) * 20, 0, False),
        Interruption("waits", (signal.SIGHUP, signal.SIGTERM), 0.05, False),
        Interruption("runs", (signal.SIGINT,), 0, False),
    ]
    words = ("--profile", str(root / "profiles/slurm"), *HASTE, "--jobs", "1", "--scheduler", "greedy")
    toys = [toy(tmp_path / str(number), shell=LAGS) for number in range(len(interruptions))]
    pairs = list(zip(toys, interruptions, strict=True))
    ends = some_at_once([partial(interrupted, workflow, interruption, *words) for workflow, interruption in pairs], 5)
    for interruption, end in zip(interruptions, ends, strict=True):
        assert end.code == 1 and not end.is_locked, end.output
        assert interruption.moment == "runs" or WAITS in end.output, end.output
    assert ask("squeue", "-h", "--states=PENDING,RUNNING") == ""


def test_a_chain_whose_snakemake_is_asked_to_end_five_times_goes_on_to_its_end(root, tmp_path):
    draw, directory = random.Random(48), working_copy(root, tmp_path / "a chain of symbért")
    for number in range(5):
        by = drawn(draw, (), 20)
        with snakemake(directory, *ON_SLURM) as process:
            while log_of(directory).read_text().count(f"{BEGINS}x: scale") <= number and process.poll() is None:
                time.sleep(0.05)
            time.sleep(by.moment)
            for signal_ in by.numbers:
                process.send_signal(signal_)
                time.sleep(by.pause)
            assert process.wait(PATIENCE) == 1
        assert not any(directory.glob(".snakemake/locks/*"))
    with snakemake(directory, *ON_SLURM) as process:
        assert process.wait(PATIENCE) == 0
    assert (directory / "results/x/report/report.html").is_file()
