"""How the processes that train one model together start, by words of a shell command of the workflow, and how a job of
Slurm goes back to its queue.

Snakemake fills the braces in from the job. All else are numbers, so nothing needs quoting.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from symbert.configuration import Pretrain
from symbert.errors import line_of
from symbert.files import write_json
from symbert.pretrain.run import PretrainTogether, StopRequest
from symbert.steps import read_step

# Without the first, torchrun dies of SIGUSR1 and leaves its processes; seconds in which these may save.
SIGNALS = "--signals-to-handle SIGTERM,SIGINT,SIGUSR1 --shutdown-timeout 60"
# The rule's shell runs on the first node of the job. Two jobs there, of the few that a node has, differ in their port.
MEETING = "--rdzv-backend c10d --rdzv-id $SLURM_JOB_ID --rdzv-endpoint $(hostname):$((20000 + SLURM_JOB_ID % 10000))"
# Seconds in which the other nodes may save, or notice the loss, once the first node has ended.
SRUN = "srun --nodes {{resources.nodes}} --ntasks {nodes} --cpus-per-task {{threads}} --wait 120"
TIMEOUT = 60  # seconds in which the controller of Slurm answers


def pretrain(
    folder: Annotated[Path, "folder of the run, with its run.json"],
    /,
    threads: Annotated[int, "threads of each process"],
    micro_batch_size: Annotated[
        int | None, "sequences that a device computes at a time (default: as many as memory takes)"
    ] = None,
    shard_parameters: Annotated[bool, "divide weights, gradients and moments among the processes"] = False,
) -> None:
    """Train the model of `folder`/run.json, from its newest checkpoint if it was interrupted, and publish done.json,
    metrics.jsonl and timing.json there.

    SIGTERM, SIGINT, SIGHUP and SIGUSR1 save at the next step boundary (PreemptedError, exit 75); the same command goes
    on from there with the same bits. SIGUSR1 means that the time limit is near (TimeLimitError): a job of Slurm then
    asks for another session. DivergedError when the loss or the gradient is not finite. Started by `torchrun`, its
    processes share each batch. The checkpoints of a finished run are removed, so that the same command trains it again.
    """
    stop = StopRequest()  # before torch is imported, which takes seconds
    from symbert.pretrain.train import train

    train(folder, stop, threads, micro_batch_size, shard_parameters)


def pretrain_together(
    ended: Annotated[Path, "file for how the runs ended, beside their settings.json"],
    /,
    threads: Annotated[int, "threads of the process"],
    micro_batch_size: Annotated[
        int | None, "sequences of each run that the device computes at a time (default: as many as memory takes)"
    ] = None,
) -> None:
    """Train the runs in the settings beside `ended` that are not done as one model, each from its newest checkpoint and
    with the outputs that `pretrain` has, and write into `ended` how each of them ended.

    An error of one, as when it diverges, stops no other: its own `pretrain` goes on from its last checkpoint and says
    the error again. Requests to stop are answered as by `pretrain`, for all runs.
    """
    stop = StopRequest()
    step: PretrainTogether = read_step(ended.parent, PretrainTogether)
    from symbert.pretrain.together import train_together

    how = train_together([Path(run.folder) for run in step.runs], stop, threads, micro_batch_size)
    write_json(ended, {str(folder): word for folder, word in how.items()})


def launcher(section: Pretrain) -> str:
    """The words before a command, by the section `pretrain`: `python -m symbert`, or torchrun for several processes,
    which srun starts on several nodes."""
    processes, nodes = section.processes, section.nodes
    if processes == 1:
        return "python -m symbert"
    start = SRUN.format(nodes=nodes) + " torchrun" if nodes > 1 else "torchrun"
    where = f"--nnodes {nodes} {MEETING}" if nodes > 1 else "--standalone"
    return f"{start} {where} --nproc-per-node {processes // nodes} {SIGNALS} -m symbert"


def options_of_training(section: Pretrain) -> str:
    """The options of `symbert pretrain` by the section `pretrain`: how a run is computed. They are in no key."""
    share = section.processes // section.nodes  # a process has its share of a node's threads, and at least one
    threads = "{threads}" if share == 1 else f"$((({{threads}} + {share - 1}) / {share}))"
    size = section.micro_batch_size
    flags = ["--shard-parameters"] if section.shard_parameters else []
    return " ".join([f"--threads {threads}", *([f"--micro-batch-size {size}"] if size else []), *flags])


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
        line = line_of(refusal)
        print(f"warning: job {job} is not requeued ({line}); run the same command to go on", file=sys.stderr)
