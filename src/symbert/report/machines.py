"""What runs were computed on, and how long: the records of their sessions.

A run that was interrupted has several sessions. They stand in provenance.json beside its working state, which may have
been removed since; timing.json then tells of one of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from symbert.files import read_json
from symbert.hosts import ENCODER, OTHERS
from symbert.paths import Run
from symbert.report.order import model_rank

Facts = dict[str, Any]
RUN = {"size": str, "attention": str, "pretrain_seed": int}  # what tells a run of pre-training from others
SESSIONS = {"sessions": [{"started": str, "device": str, "processes": int}]}


@dataclass(frozen=True)
class PretrainedRun:
    """One run: its published facts, and its sessions, the first one first."""

    run: Run
    facts: Facts
    sessions: list[Facts]

    def facts_of(self, key: str) -> str | None:
        """The value of `key` in each session, each once, in words; None where no session has it."""
        values = [_words(session[key]) for session in self.sessions if key in session]
        return "; ".join(dict.fromkeys(values)) or None


def read_pretrained(published: list[Path], sessions: list[Path]) -> list[PretrainedRun]:
    """The runs of done.json and timing.json, host by host in the report's order; records of `sessions` may be missing.

    DataError for a published file that does not say of which run it is.
    """
    facts: dict[Run, Facts] = {}
    for file in published:
        record = read_json(file, RUN, "give done.json or timing.json of a run")
        run = Run(*(record[key] for key in RUN), record.get("model_host", ENCODER))
        facts.setdefault(run, {}).update(record)
    # By the folders of the run whose state/ holds the record: that of another host, <size>-<attention> and seed-<n>.
    kept = {}
    for file in filter(Path.is_file, sessions):
        host, *folders = (file.parents[above].name for above in (3, 2, 1))
        kept[host if host in OTHERS else ENCODER, *folders] = read_json(file, SESSIONS)["sessions"]
    runs = []
    for run in sorted(facts, key=_rank):
        folders = f"{run.size}-{run.attention}", f"seed-{run.pretrain_seed}"
        last = [facts[run]] if "device" in facts[run] else []
        runs.append(PretrainedRun(run, facts[run], kept.get((run.host, *folders), last)))
    return runs


def _rank(run: Run) -> tuple[Any, ...]:
    return [ENCODER, *OTHERS].index(run.host), model_rank(run.size, run.attention), run.pretrain_seed


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
