"""The faults that a campaign lets strike, and which of them one trial has."""

import errno
import random
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch

from campaigns.chaos.stages import SNAKEMAKE, Call

WRITES = ("open", "fsync", "rename", "unlink", "mkdir")
TIME = "time"  # not a call: thousandths of the time that the stage takes undisturbed


@dataclass(frozen=True)
class Kind:
    """A kind of fault that strikes a process at a call, or at a random time."""

    name: str
    action: str  # kill | term | kill-group | term-group | fail | stay
    of: str  # job | snakemake | any: whose process
    calls: tuple[str, ...] = WRITES
    error: int = 0


REBOOT = "reboot: what was not synchronised is cut"
JOB_KINDS = (
    Kind("kill -9 of a job", "kill", "job"),
    Kind("SIGTERM of a job", "term", "job"),
    Kind("disk full (ENOSPC), from a call on", "stay", "job", ("open", "fsync", "mkdir"), errno.ENOSPC),
    Kind("disk error (EIO), once", "fail", "job", ("open", "fsync", "rename", "unlink"), errno.EIO),
    Kind("read-only folders (EROFS), from a call on", "stay", "job", ("open", "mkdir"), errno.EROFS),
)
START_KINDS = (
    Kind("kill -9 of Snakemake", "kill", "snakemake"),
    Kind("SIGTERM of Snakemake", "term", "snakemake"),
    Kind("kill -9 of Snakemake, any time", "kill", "snakemake", (TIME,)),
    Kind("disk full (ENOSPC) for Snakemake", "stay", "snakemake", ("open",), errno.ENOSPC),
    Kind("kill -9 of all", "kill-group", "any"),
    Kind("SIGTERM of all", "term-group", "any"),
    Kind("kill -9 of all, any time", "kill-group", "any", (TIME,)),
    Kind(REBOOT, "kill-group", "any"),
)


@dataclass(frozen=True)
class Damage:
    """A kind of fault that changes a file, after a job that reads it was killed with all else."""

    name: str
    reader: str  # a pattern of the log of the job
    files: str  # a pattern below the results, of which a random one is changed


RUN, SCORES, REPORT = "results/runs/*/log.txt", "results/scores/*.log", "results/*/report.log"
DAMAGES = {
    "corpus": (Damage("token file damaged", "results/corpus/shards-*", "corpus/parts-*/*.npy"),),
    "pretrain": (
        Damage("checkpoint damaged", RUN, "runs/*/*/*/state/resume/step-*"),
        Damage("shard damaged", RUN, "corpus/shards-*/*-0*.npy"),
        Damage("lock of a dead host", RUN, "runs/*/*/*/lock"),
    ),
    "glue": (
        Damage("score record damaged", SCORES, "scores/*/*/*/*/*/finetuned/*/seed-*.json"),
        Damage("weights of a checkpoint damaged", SCORES, "runs/*/*/*/step-*/model.safetensors"),
        Damage("prepared rows damaged", SCORES, "tasks/*/*.parquet"),
        Damage("lock of a dead host", SCORES, "scores/*/*/*/*/*/state/lock"),
    ),
    "report": (
        Damage("scores damaged", REPORT, "scores/*/*/*/*/*/*.json"),
        Damage("log of a training damaged", REPORT, "runs/*/*/*/metrics.jsonl"),
    ),
}
DELETED, EMPTIED = ".snakemake deleted", ".snakemake emptied"
CLOCK, FULL = "the clock jumps", "a file system fills up"
BETWEEN = (DELETED, EMPTIED, CLOCK, FULL)  # before a start
DAMAGE_NAMES = tuple(dict.fromkeys(kind.name for kinds in DAMAGES.values() for kind in kinds))
NAMES = (*(kind.name for kind in (*JOB_KINDS, *START_KINDS)), *DAMAGE_NAMES, *BETWEEN)


@dataclass(frozen=True)
class Fault:
    """One fault of a trial."""

    number: int  # within the trial
    kind: str
    process: str = ""  # whose call it waits for; nothing where it strikes between two starts
    call: str = ""
    count: int = 0  # the how-manieth call; thousandths of the time
    action: str = ""
    error: int = 0
    seed: int = 0  # of what else is random about it

    @property
    def point(self) -> str:
        """Where it strikes, in words."""
        return f"{self.process} {self.call} {self.count}" if self.call else "between two starts"


def draw_trial(stage: str, calls: list[Call], draw: random.Random) -> list[Fault]:
    """The faults of one trial: some for most jobs, and a few that stop all; `calls` are the stage's undisturbed."""
    faults: list[Fault] = []
    counts = Counter((call.process, call.name) for call in calls)
    jobs = sorted({call.process for call in calls} - {SNAKEMAKE})

    def strike(kind: Kind, processes: list[str], name: str = "") -> None:
        """A fault at a random call of a random process that makes it."""
        process = draw.choice(processes)
        call = draw.choice([call for call in kind.calls if call == TIME or counts[process, call]])
        count = draw.randrange(1000) if call == TIME else draw.randint(1, counts[process, call])
        place = {"process": process, "call": call, "count": count, "action": kind.action, "error": kind.error}
        faults.append(Fault(len(faults), name or kind.name, seed=draw.randrange(1 << 30), **place))

    for job in jobs:
        for _ in range(draw.randrange(3)):
            strike(draw.choice(JOB_KINDS), [job])
    for kind in draw.sample(START_KINDS, 3):
        strike(kind, [SNAKEMAKE, *(jobs if kind.of == "any" else [])])
    for name in draw.sample(BETWEEN, 2):
        faults.append(Fault(len(faults), name, seed=draw.randrange(1 << 30)))
    damage = draw.choice(DAMAGES[stage])
    readers = [job for job in jobs if fnmatch(job, damage.reader)]
    strike(Kind("", "kill-group", "job"), readers, damage.name)
    return faults
