"""Asks Slurm to run a job again whose time limit came before its end."""

import os
import subprocess
import sys

TIMEOUT = 60  # seconds in which the controller answers


def requeue() -> None:
    """Send this job back to its queue, where it waits for another session; a warning when Slurm refuses.

    Of several processes the leading one asks. Outside a job of Slurm it does nothing.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None or os.environ.get("RANK", "0") != "0":
        return
    try:
        done = subprocess.run(["scontrol", "requeue", job], capture_output=True, text=True, timeout=TIMEOUT)
        refusal = done.returncode and (done.stderr.strip() or f"exit code {done.returncode}")
    except (OSError, subprocess.TimeoutExpired) as error:
        refusal = str(error)
    if refusal:
        line = " ".join(refusal.split())
        print(f"warning: job {job} is not requeued ({line}); run the same command to go on", file=sys.stderr)
