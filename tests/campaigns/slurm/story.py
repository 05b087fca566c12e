"""The tiny chain on a real Slurm, with what happens to its jobs, to Slurm and to Snakemake on its way.

Two trainings run side by side; each is held still after a saved step until the next fault of its own:

1. The queue does not answer Snakemake for two minutes. Meanwhile the second training, which Slurm may not requeue, is
   warned and fails; the first comes near its limit and is requeued, onto a node that is drained, while the controller
   restarts; and the undisturbed chain runs, outside of Slurm.
2. A job of higher priority takes the GPUs of both.
3. The first is cancelled.
4. Snakemake is killed, and started again while the job of the first still runs.
"""

import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from campaigns.slurm import cluster
from campaigns.slurm.copies import ON_SLURM, log_of, snakemake, working_copy
from campaigns.slurm.jobs import PATIENCE, Training, ask, job, jobs_of, wait_until
from command_lines import command_lines

SILENCE = 120  # seconds


@dataclass
class Story:
    """What was seen of the chain as it went on; `original` and `pairwise` are its two trainings."""

    directory: Path
    undisturbed: Path  # a working copy in which the same chain ran without Slurm and faults
    token: str = field(default_factory=lambda: f"hf_{secrets.token_hex(16)}")
    original: dict[str, str] = field(default_factory=dict)  # its job, before anything happened
    environment: dict[str, str] = field(default_factory=dict)  # of that training
    records: str = ""  # what Slurm shows of all jobs that ran then, and the script of that one
    kept: dict[Path, int] = field(default_factory=dict)  # files of Slurm with the token, and their modes
    drained: dict[str, str] = field(default_factory=dict)  # the job of original while the node was drained
    questions: int = 0  # that the queue did not answer
    in_silence: list[str] = field(default_factory=list)  # states of the jobs of pairwise at the end of the silence
    not_requeued: str = ""  # the log of pairwise then
    locked: str = ""  # what Snakemake said when it was started again after its kill
    command_lines: set[str] = field(default_factory=set)

    def run(self, attention: str) -> Path:
        """The folder of a training."""
        return Training(self.directory, attention).folder


def tell(root: Path, folder: Path) -> Story:
    """Let all of it happen, in working copies below `folder`."""
    directories = [working_copy(root, folder / name) for name in ("a copy of symbért", "undisturbed")]
    story = Story(*directories)
    os.environ["HF_TOKEN"] = story.token  # of all that starts from here
    with command_lines() as story.command_lines:
        session, attempt = disturb(story)
        start_again(story, session, attempt)
    return story


def disturb(story: Story) -> tuple[Training, Training]:
    """All until Snakemake is killed; gives the two trainings, whose jobs go on and are held."""
    original, pairwise = Training(story.directory, "original"), Training(story.directory, "pairwise")
    with snakemake(story.directory, *ON_SLURM) as process:
        hold([original, pairwise], process)
        look_at_running_jobs(story, original)
        with snakemake(story.undisturbed, "--cores", "2") as undisturbed, silent_queue(story):
            warn_in_vain(pairwise)
            with drained_node():
                come_near_limit(original)
                cluster.restart_controller()
                wait_until(lambda: waits_for_node(original.job), lambda: f"does not wait: {job(original.job)}")
                story.drained = job(original.job)
            original, pairwise = original.next_session(), pairwise.next_session()
            hold([original], process)
            assert undisturbed.wait(PATIENCE) == 0
        hold([pairwise], process)
        preempt(original, pairwise)
        original, pairwise = original.next_session(), pairwise.next_session()
        hold([original, pairwise], process)
        ask("scancel", original.job)
        original = original.next_session()
        hold([original], process)
        process.kill()
    return original, pairwise


def start_again(story: Story, original: Training, pairwise: Training) -> None:
    """The same command, after Snakemake was killed: refused, and then while a job of the one before still runs."""
    with snakemake(story.directory, *ON_SLURM) as process:
        assert process.wait(PATIENCE) != 0
    story.locked = log_of(story.directory).read_text().partition("LockException")[2]
    with snakemake(story.directory, *ON_SLURM, "--unlock") as process:
        assert process.wait(PATIENCE) == 0
    pairwise.go_on()
    wait_until(lambda: job(pairwise.job)["JobState"] == "COMPLETED", lambda: str(job(pairwise.job)))
    with snakemake(story.directory, *ON_SLURM) as process:
        wait_until(lambda: "FAILED" in states_of("original"), lambda: f"jobs of original: {states_of('original')}")
        ask("scancel", original.job)
        assert process.wait(cluster.LIMIT) == 0


def hold(trainings: list[Training], process: subprocess.Popen) -> None:
    """Stop each of them as soon as it has saved a step."""

    def are_held() -> bool:
        assert process.poll() is None, "Snakemake ended before"
        held = [training.hold() for training in trainings]  # each of them, whether or not another one is
        return all(held)

    wait_until(are_held, lambda: f"not held: {[training.attention for training in trainings if not training.process]}")


def look_at_running_jobs(story: Story, training: Training) -> None:
    """What the environment of a job has, what Slurm shows of the jobs, and which of its files have the token."""
    story.original, story.environment = job(training.job), training.environment()
    story.records = ask("scontrol", "show", "job", "-dd") + ask("scontrol", "write", "batch_script", training.job, "-")
    files = [path for path in cluster.HOME.rglob("*") if path.is_file()]
    story.kept = {path: path.stat().st_mode for path in files if story.token.encode() in path.read_bytes()}


@contextmanager
def silent_queue(story: Story) -> Iterator[None]:
    """The queue answers Snakemake again SILENCE seconds after this begins."""
    folder, end = story.directory / "bin", time.monotonic() + SILENCE
    (folder / "silent").touch()
    try:
        yield
        time.sleep(max(end - time.monotonic(), 0))
        story.questions, story.in_silence = len((folder / "asked").read_text()), states_of("pairwise")
        story.not_requeued = (story.run("pairwise") / "log.txt").read_text()
    finally:
        (folder / "silent").unlink()


@contextmanager
def drained_node() -> Iterator[None]:
    """The node takes no new jobs."""
    ask("scontrol", "update", "NodeName=ALL", "State=DRAIN", "Reason=test")
    yield
    ask("scontrol", "update", "NodeName=ALL", "State=RESUME")


def waits_for_node(number: str) -> bool:
    """Whether a job would run if a node took it."""
    told = job(number)
    return told["JobState"] == "PENDING" and told["Reason"] not in ("None", "BeginTime")


def come_near_limit(training: Training) -> None:
    """Cut its job's time, so that Slurm sends its warning (and lets it go on); then give it another session without."""
    minutes = int(job(training.job)["RunTime"].split(":")[1])
    ask("scontrol", "update", f"JobId={training.job}", f"TimeLimit={minutes + 2}")
    wait_until(lambda: job(training.job)["Restarts"] == "1", lambda: f"not requeued: {job(training.job)}")
    ask("scontrol", "update", f"JobId={training.job}", "TimeLimit=60")


def warn_in_vain(training: Training) -> None:
    """The same warning for a job that Slurm is not to requeue."""
    ask("scontrol", "update", f"JobId={training.job}", "Requeue=0")
    training.go_on()
    ask("scancel", "--signal=USR1", training.job)


def preempt(requeued: Training, bound: Training) -> None:
    """Let a job of higher priority take the GPUs of two trainings, of which Slurm is not to requeue the second."""
    ask("scontrol", "update", f"JobId={bound.job}", "Requeue=0")
    ask("sbatch", "--partition=urgent", f"--gres=gpu:{cluster.GPUS}", "--output=/dev/null", "--wrap=true")
    wait_until(lambda: job(requeued.job)["Restarts"] == "2", lambda: f"not requeued: {job(requeued.job)}")
    wait_until(lambda: job(bound.job)["JobState"] == "PREEMPTED", lambda: f"not preempted: {job(bound.job)}")


def states_of(attention: str) -> list[str]:
    """The states of the jobs of a training, in the order in which they were submitted."""
    return [told["JobState"] for told in trainings_of(attention)]


def trainings_of(attention: str) -> list[dict[str, str]]:
    """The jobs of a training, in the order in which they were submitted."""
    return [told for told in jobs_of("rule_pretrain") if attention in told["StdOut"]]
