"""What is trained, where it reads and writes, and how it is computed."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """What identifies a run."""

    size: str
    attention: str
    pretrain_seed: int

    def __str__(self) -> str:
        return f"{self.size}-{self.attention} seed {self.pretrain_seed}"


@dataclass(frozen=True)
class Places:
    """Where a run reads and writes."""

    manifest: Path
    settings: Path
    state: Path
    done: Path
    metrics: Path
    timing: Path


@dataclass(frozen=True)
class Execution:
    """How a run is computed, whatever its result: free to differ from session to session."""

    threads: int
    micro_batch_size: int | None  # sequences that one device computes at a time; None: its whole share
    tensorboard: bool
    on_settings_change: str  # refuse | supersede
