"""How the processes that train one model together are started, by words of a shell command of the workflow, and how a
job of Slurm goes back to its queue.

Snakemake fills the braces in from the job. All else are numbers, so nothing needs quoting.
"""

import os
import subprocess
import sys

# Without the first, torchrun dies of SIGUSR1 and leaves its processes; seconds in which these may save.
SIGNALS = "--signals-to-handle SIGTERM,SIGINT,SIGUSR1 --shutdown-timeout 60"
# The rule's shell runs on the first node of the job. Two jobs there, of the few that a node has, differ in their port.
MEETING = "--rdzv-backend c10d --rdzv-id $SLURM_JOB_ID --rdzv-endpoint $(hostname):$((20000 + SLURM_JOB_ID % 10000))"
# Seconds in which the other nodes may save, or notice the loss, once the first node has ended.
SRUN = "srun --nodes {{resources.nodes}} --ntasks {nodes} --cpus-per-task {{threads}} --wait 120"
TIMEOUT = 60  # seconds in which the controller of Slurm answers


def launcher(processes: int, nodes: int) -> str:
    """What comes before a command: `python -m symbert`, or torchrun for several processes, which srun starts on several
    nodes. One log holds what all of them say, the launchers' own words among it."""
    if processes == 1:
        return "python -m symbert --log {log:q}"
    start = SRUN.format(nodes=nodes) + " torchrun" if nodes > 1 else "torchrun"
    log = "python -m symbert.console {log:q}"
    where = f"--nnodes {nodes} {MEETING}" if nodes > 1 else "--standalone"
    return f"{log} {start} {where} --nproc-per-node {processes // nodes} {SIGNALS} -m symbert"


def threads_per_process(processes: int, nodes: int) -> str:
    """The threads of one process: its share of what the job has on its node, and one at least."""
    share = processes // nodes
    return "{threads}" if share == 1 else f"$((({{threads}} + {share - 1}) / {share}))"


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
