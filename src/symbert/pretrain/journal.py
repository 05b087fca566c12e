"""What a session of a run writes down: metrics, TensorBoard events, and how fast it was."""

from pathlib import Path
from typing import Any

from symbert.pretrain.checkpoint import Position
from symbert.pretrain.events import Events, NoEvents
from symbert.pretrain.metrics import METRICS, MetricsLog
from symbert.pretrain.provenance import close_session
from symbert.pretrain.status import write_running


class Journal:
    """The writing process's journal, below the run's state directory."""

    def __init__(self, state: Path, tensorboard: bool) -> None:
        self.state, self.tensorboard = state, tensorboard

    def resume(self, position: Position) -> None:
        """Open the files as they were at `position`; what was written after it is cut off."""
        self.metrics = MetricsLog(self.state / METRICS, position.metrics_bytes)
        self.events = Events(self.state / "tensorboard", position.step) if self.tensorboard else NoEvents()

    def write(self, split: str, step: int, **values: Any) -> None:
        """One line of metrics.jsonl, and its numbers as events `split/name`."""
        self.metrics.write(split=split, step=step, **values)
        self.events.write(split, step, values)

    def position(self, step: int, scaler: dict[str, Any]) -> Position:
        """Make what was written durable; where the run is, for its checkpoint."""
        self.events.flush()
        return Position(step, self.metrics.flush(), scaler, self.metrics.sha256)

    def measured(self, step: int, pace: dict[str, Any]) -> None:
        """Note how far this session came, and how fast."""
        close_session(self.state / "provenance.json", step=step, **pace)
        write_running(self.state / "status.json", step)

    def last_validation_loss(self) -> float:
        """The validation loss of the last line that has one."""
        return self.metrics.last_validation_loss()


class NoJournal:
    """The journal of a process that leaves writing to another."""

    def resume(self, position: Position) -> None:
        """Nothing."""

    def write(self, split: str, step: int, **values: Any) -> None:
        """Nothing."""

    def measured(self, step: int, pace: dict[str, Any]) -> None:
        """Nothing."""

    def last_validation_loss(self) -> float:
        """Not known here."""
        return float("nan")
