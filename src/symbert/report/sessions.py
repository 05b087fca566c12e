"""What each run of pre-training was computed on, and how long: done.json, timing.json, and its sessions' records.

A run that was interrupted has several sessions. They stand in provenance.json beside its working state, which may have
been removed since; timing.json then tells of one of them.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from symbert.files import read_json
from symbert.report.order import model_rank

Facts = dict[str, Any]
RUN = {"size": str, "attention": str, "pretrain_seed": int}
SESSIONS = {"sessions": [{"started": str, "device": str, "processes": int}]}


@dataclass(frozen=True)
class PretrainedRun:
    """One run: its published facts, and its sessions, the first one first."""

    size: str
    attention: str
    pretrain_seed: int
    facts: Facts
    sessions: list[Facts]

    @property
    def name(self) -> str:
        """As logs and benchmarks call it."""
        return f"{self.size}-{self.attention}-seed-{self.pretrain_seed}"

    def told(self, key: str) -> str | None:
        """What the sessions say of `key`, each value once, in words; None where they say nothing."""
        values = [_words(session[key]) for session in self.sessions if key in session]
        return "; ".join(dict.fromkeys(values)) or None


def read_pretrained(published: list[Path], sessions: list[Path]) -> list[PretrainedRun]:
    """The runs of done.json and timing.json, in the report's order; of `sessions`, only what is still there is read.

    DataError for a published file that does not say of which run it is.
    """
    facts: dict[tuple, Facts] = {}
    for file in published:
        record = read_json(file, RUN, "give done.json or timing.json of a run")
        facts.setdefault(tuple(record[key] for key in RUN), {}).update(record)
    kept = {_place(file): read_json(file, SESSIONS)["sessions"] for file in sessions if file.is_file()}
    found = [_run(run, facts[run], kept) for run in facts]
    return sorted(found, key=lambda run: (model_rank(run.size, run.attention), run.pretrain_seed))


def hours(session: Facts) -> float:
    """How long a session took; one that was killed at once has told nothing."""
    if "until" not in session:
        return 0.0
    begun, ended = (datetime.fromisoformat(session[key]) for key in ("started", "until"))
    return (ended - begun).total_seconds() / 3600


def gpus(session: Facts) -> int:
    """The GPUs that a session had: one for each process, or none."""
    return 0 if session["device"] == "cpu" else session["processes"]


def _run(run: tuple, facts: Facts, kept: dict[tuple[str, str], list[Facts]]) -> PretrainedRun:
    size, attention, seed = run
    told = [facts] if "device" in facts else []
    return PretrainedRun(*run, facts, kept.get((f"{size}-{attention}", f"seed-{seed}"), told))


def _place(file: Path) -> tuple[str, str]:
    """The folders of the run whose `state/` holds this file: <size>-<attention> and seed-<n>."""
    return file.parents[2].name, file.parents[1].name


def _words(value: Any) -> str:
    return ", ".join(f"{name} {it}" for name, it in value.items()) if isinstance(value, dict) else str(value)
