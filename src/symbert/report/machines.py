"""What runs were computed on, and how long: the records of their sessions.

A run that was interrupted has several sessions. They stand in provenance.json in its working state, which may have been
removed since; timing.json then tells of one of them.
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
SESSIONS_FILE = "state/provenance.json"  # in the folder of a run
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


def read_pretrained(folders: list[Path]) -> list[PretrainedRun]:
    """The runs in these folders, host by host in the report's order.

    DataError for a done.json or timing.json that does not say of which run it is.
    """
    runs = []
    for folder in folders:
        done, timing = (read_json(folder / name, RUN) for name in ("done.json", "timing.json"))
        run, sessions = Run(*(done[key] for key in RUN), done.get("model_host", ENCODER)), folder / SESSIONS_FILE
        kept = read_json(sessions, SESSIONS)["sessions"] if sessions.is_file() else [done | timing]
        runs.append(PretrainedRun(run, done | timing, kept))
    return sorted(runs, key=lambda pretrained: _rank(pretrained.run))


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
