"""The faults that a campaign lets strike, and which of them one trial has."""

import errno
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from campaigns.chaos.preload import SNAKEMAKE, Call

WRITES = ("open", "write", "fsync", "rename", "unlink", "mkdir")
TIME = "time"  # not a call: a share of a process's CPU time, in thousandths
LONG = 2.0  # seconds of CPU time from which on a job meets several faults, one after the other


@dataclass(frozen=True)
class Kind:
    """A kind of fault that strikes a process at a call, or at a random time."""

    name: str
    action: str  # kill | term | stop | kill-group | term-group | fail | stay: what the library does
    of: str  # job | snakemake | any: whose process
    calls: tuple[str, ...] = WRITES
    error: int = 0


JOB_KINDS = (
    Kind("kill -9 of a job", "kill", "job"),
    Kind("SIGTERM of a job", "term", "job"),
    Kind("kill -9 of a job, any time", "kill", "job", (TIME,)),
    Kind("SIGTERM of a job, any time", "term", "job", (TIME,)),
    Kind("disk full (ENOSPC), from a call on", "stay", "job", ("open", "write", "fsync", "mkdir"), errno.ENOSPC),
    Kind("disk error (EIO), once", "fail", "job", ("open", "write", "fsync", "rename", "unlink"), errno.EIO),
    Kind("read-only folders (EROFS), from a call on", "stay", "job", ("open", "rename", "mkdir"), errno.EROFS),
)
START_KINDS = (
    Kind("kill -9 of Snakemake", "kill", "snakemake"),
    Kind("SIGTERM of Snakemake", "term", "snakemake"),
    Kind("kill -9 of Snakemake, any time", "kill", "snakemake", (TIME,)),
    Kind("kill -9 of all", "kill-group", "any"),
    Kind("SIGTERM of all", "term-group", "any"),
    Kind("kill -9 of all, any time", "kill-group", "any", (TIME,)),
    Kind("reboot: what was not synchronised is cut", "kill-group", "any"),
    Kind("disk full (ENOSPC) for Snakemake", "stay", "snakemake", ("open", "write"), errno.ENOSPC),
)
REBOOT = START_KINDS[6].name
STOPPED = Kind("a job stopped, another in its place", "stop", "job")


@dataclass(frozen=True)
class Damage:
    """A kind of fault that changes a file, after a job that reads it was killed with all else."""

    name: str
    reader: str  # a pattern of the log of the job
    after: str  # what is in the name of a file that the job has renamed before, so that there is something to damage
    files: str  # a pattern below the results; the last one by name counts, or a random one
    newest: bool = False


RUN, SCORES = "results/runs/*/log.txt", "results/scores/*.log"
DAMAGES = {
    "corpus": (Damage("token file damaged", "results/corpus/shards-*", "", "corpus/parts-*/*.npy"),),
    "pretrain": (
        Damage("newest checkpoint damaged", RUN, "resume/.step", "runs/*/*/*/state/resume/step-*/*", True),
        Damage("shard damaged", RUN, "", "corpus/shards-*/*-0*.npy"),
        Damage("lock of a dead host", RUN, "", "runs/*/*/*/lock"),
    ),
    "glue": (
        Damage("score record damaged", SCORES, "-seed-", "scores/*/*/*/*/*/state/*-seed-*"),
        Damage("weights of a checkpoint damaged", SCORES, "", "runs/*/*/*/step-*/model.safetensors"),
        Damage("prepared rows damaged", SCORES, "", "tasks/*/*.parquet"),
        Damage("lock of a dead host", SCORES, "", "scores/*/*/*/*/*/state/lock"),
    ),
    "report": (
        Damage("scores damaged", "results/*/report.log", "", "scores/*/*/*/*/*/*.json"),
        Damage("log of a training damaged", "results/*/report.log", "", "runs/*/*/*/metrics.jsonl"),
    ),
}
DELETED, EMPTIED = ".snakemake deleted", ".snakemake emptied"
CLOCK, SECOND, FULL = "the clock jumps", "a second Snakemake at the same time", "a file system fills up"
BETWEEN = (DELETED, EMPTIED, CLOCK, SECOND, FULL)  # of a start, or before it
DAMAGE_NAMES = tuple(dict.fromkeys(kind.name for kinds in DAMAGES.values() for kind in kinds))
NAMES = (*(kind.name for kind in (*JOB_KINDS, *START_KINDS, STOPPED)), *DAMAGE_NAMES, *BETWEEN)


@dataclass(frozen=True)
class Fault:
    """One fault of a trial."""

    number: int  # within the trial
    kind: str
    process: str = ""  # whose call it waits for; nothing where it strikes between two starts
    call: str = ""
    count: int = 0  # the how-manieth call; thousandths of the CPU time
    action: str = ""
    error: int = 0
    seed: int = 0  # of what else is random about it

    @property
    def point(self) -> str:
        """Where it strikes, in words."""
        if self.call == TIME:
            return f"{self.process} after {self.count / 10:.0f} % of its time"
        return f"{self.process} {self.call} {self.count}" if self.call else "between two starts"


@dataclass(frozen=True)
class Undisturbed:
    """What the processes of a stage do when nothing disturbs them."""

    calls: tuple[Call, ...]
    seconds: dict[str, float]  # of CPU time, by process

    def __post_init__(self) -> None:
        counts = Counter((call.process, call.name) for call in self.calls)
        object.__setattr__(self, "counts", counts)

    @property
    def jobs(self) -> list[str]:
        """The logs of the jobs."""
        return sorted({call.process for call in self.calls} - {SNAKEMAKE, "-"})


def draw_trial(stage: str, undisturbed: Undisturbed, draw: random.Random) -> list[Fault]:
    """The faults of one trial: some for every other job, and a few that stop all."""
    faults: list[Fault] = []

    def add(**values: object) -> None:
        faults.append(Fault(len(faults), seed=draw.randrange(1 << 30), **values))

    for job in undisturbed.jobs:
        is_long = undisturbed.seconds.get(job, 0) > LONG
        for _ in range(draw.randint(1, 3) if is_long else draw.random() < 0.7):
            add(**_strike(draw.choice(JOB_KINDS), undisturbed, draw, job))
    for kind in draw.sample(START_KINDS, 3):
        add(**_strike(kind, undisturbed, draw))
    for name in draw.sample(BETWEEN, 2):
        add(kind=name)
    if draw.random() < 0.4:
        add(**_strike(STOPPED, undisturbed, draw))
    for damage in draw.sample(DAMAGES[stage], 1):
        add(**_damaged(damage, undisturbed, draw))
    return faults


def _strike(kind: Kind, undisturbed: Undisturbed, draw: random.Random, job: str = "") -> dict:
    """Where a kind strikes: at a random call of a random process, which calls it at least once."""
    processes = {"job": undisturbed.jobs, "snakemake": [SNAKEMAKE], "any": [SNAKEMAKE, *undisturbed.jobs]}[kind.of]
    process = job or draw.choice(processes)
    calls = [call for call in kind.calls if call == TIME or undisturbed.counts[process, call]]
    call = draw.choice(calls)
    count = draw.randrange(1000) if call == TIME else draw.randint(1, undisturbed.counts[process, call])
    return {
        "kind": kind.name,
        "process": process,
        "call": call,
        "count": count,
        "action": kind.action,
        "error": kind.error,
    }


def _damaged(damage: Damage, undisturbed: Undisturbed, draw: random.Random) -> dict:
    """A call of a reader of the file, at which all is killed: any one, or one after the file was made."""
    reader = draw.choice([job for job in undisturbed.jobs if fnmatch(job, damage.reader)])
    call, count = draw.choice(list(_calls_after(damage.after, reader, undisturbed.calls)))
    return {"kind": damage.name, "process": reader, "call": call, "count": count, "action": "kill-group"}


def _calls_after(name: str, process: str, calls: tuple[Call, ...]) -> Iterator[tuple[str, int]]:
    """The calls of a process, each with its number among those of its name, after a file of this name was renamed."""
    counts: Counter[str] = Counter()
    is_made = not name
    for call in calls:
        if call.process == process and call.name in WRITES:
            counts[call.name] += 1
            if is_made:
                yield call.name, counts[call.name]
            is_made = is_made or (call.name == "rename" and name in call.file)
