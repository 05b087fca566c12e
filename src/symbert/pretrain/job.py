"""What is trained, where it reads and writes, and how it is computed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbert.operators import operator_code
from symbert.sizes import SIZES


@dataclass(frozen=True)
class Run:
    """What identifies a run."""

    size: str
    attention: str
    pretrain_seed: int

    @property
    def model(self) -> dict[str, Any]:
        """What the names of its operator and size stand for: the operator's code, and the shape."""
        return {"operator_code": operator_code(self.attention), **vars(SIZES[self.size])}

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
