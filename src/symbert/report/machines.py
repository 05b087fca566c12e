"""What jobs and runs were computed on, and how long: Snakemake's benchmark files, and the records of runs' sessions.

Benchmark files are no input of any rule, because a lost one must not run a training again. A run that was interrupted
has several sessions. They stand in provenance.json beside its working state, which may have been removed since;
timing.json then tells of one of them.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from symbert.files import read_json
from symbert.hosts import ENCODER, OTHERS
from symbert.report.order import model_rank

Facts = dict[str, Any]
RUN = {"size": str, "attention": str, "pretrain_seed": int}  # what tells a run of pre-training from others
SESSIONS = {"sessions": [{"started": str, "device": str, "processes": int}]}
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class MeasuredJob:
    """A job that ended well; one that was interrupted and run again is measured from its last start."""

    rule: str
    name: str  # of its benchmark file: what tells it from others of its rule
    wall: float  # hours
    cpu: float  # hours, of all its processes, as sampled: jobs of a few seconds are hardly seen


@dataclass(frozen=True)
class PretrainedRun:
    """One run: its published facts, and its sessions, the first one first."""

    size: str
    attention: str
    pretrain_seed: int
    facts: Facts
    sessions: list[Facts]
    model_host: str = ENCODER  # of `host` its facts tell: a machine

    @property
    def name(self) -> str:
        """As benchmarks call it."""
        host = "" if self.model_host == ENCODER else f"{self.model_host}-"
        return f"{host}{self.size}-{self.attention}-seed-{self.pretrain_seed}"

    def facts_of(self, key: str) -> str | None:
        """The value of `key` in each session, each once, in words; None where no session has it."""
        values = [_words(session[key]) for session in self.sessions if key in session]
        return "; ".join(dict.fromkeys(values)) or None


def read_benchmarks(folder: Path) -> list[MeasuredJob]:
    """The jobs that `folder` has a legible benchmark of: <rule>.tsv, or <rule>/<name>.tsv."""
    jobs = []
    for file in sorted(folder.rglob("*.tsv")):
        with open(file, newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t"))
        wall, cpu = (sum(_seconds(row.get(key)) for row in rows) / SECONDS_PER_HOUR for key in ("s", "cpu_time"))
        if wall:
            rule = file.relative_to(folder).parts[0].removesuffix(".tsv")
            jobs.append(MeasuredJob(rule, file.stem, wall, cpu))
    return jobs


def _seconds(text: str | None) -> float:
    """A number of seconds; Snakemake writes NA for what it had no time to sample."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def read_pretrained(published: list[Path], sessions: list[Path]) -> list[PretrainedRun]:
    """The runs of done.json and timing.json, host by host in the report's order; records of `sessions` may be missing.

    DataError for a published file that does not say of which run it is.
    """
    facts: dict[tuple, Facts] = {}
    for file in published:
        record = read_json(file, RUN, "give done.json or timing.json of a run")
        facts.setdefault((record.get("model_host", ENCODER), *(record[key] for key in RUN)), {}).update(record)
    # By the folders of the run whose state/ holds the record: that of another host, <size>-<attention> and seed-<n>.
    kept = {}
    for file in filter(Path.is_file, sessions):
        host, *run = (file.parents[above].name for above in (3, 2, 1))
        kept[host if host in OTHERS else ENCODER, *run] = read_json(file, SESSIONS)["sessions"]
    runs = []
    for (host, size, attention, seed), known in facts.items():
        last = [known] if "device" in known else []
        of_run = kept.get((host, f"{size}-{attention}", f"seed-{seed}"), last)
        runs.append(PretrainedRun(size, attention, seed, known, of_run, host))
    return sorted(runs, key=_rank)


def _rank(run: PretrainedRun) -> tuple[Any, ...]:
    return [ENCODER, *OTHERS].index(run.model_host), model_rank(run.size, run.attention), run.pretrain_seed


def hours(session: Facts) -> float:
    """How long a session took; one that was killed at once has no end."""
    if "until" not in session:
        return 0.0
    begun, ended = (datetime.fromisoformat(session[key]) for key in ("started", "until"))
    return (ended - begun).total_seconds() / 3600


def hours_of(sessions: Iterable[Facts]) -> tuple[float, float]:
    """The hours that sessions took together, and as much of GPUs."""
    taken = [(hours(session), gpus(session)) for session in sessions]
    return sum(wall for wall, _ in taken), sum(wall * count for wall, count in taken)


def gpus(session: Facts) -> int:
    """The GPUs that a session had: one for each process, or none."""
    return 0 if session["device"] == "cpu" else session["processes"]


def _words(value: Any) -> str:
    return ", ".join(f"{name} {it}" for name, it in value.items()) if isinstance(value, dict) else str(value)
