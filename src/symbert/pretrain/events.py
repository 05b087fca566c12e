"""What metrics.jsonl holds, as event files for TensorBoard. It is only to look at: no run goes on from it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symbert.errors import MissingInputError
from symbert.files import writing


class Events:
    """Scalars by tag `split/name` (of a list, `split/name/0` and so on), below one directory.

    A resumed run begins a new file there, in which TensorBoard reads that all after `step` is no longer valid.
    Written at once and by this thread: tensorboardX's own writer loses what waits in its queue when it is killed,
    and waits for ever when the disk is full.
    """

    def __init__(self, directory: Path, step: int) -> None:
        try:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto import event_pb2, summary_pb2
        except ImportError:
            raise MissingInputError(
                "tensorboardX: package not found; pip install tensorboardX, or set 'pretrain.tensorboard: false'"
            ) from None
        self.directory, self.event, self.summary = directory, event_pb2, summary_pb2.Summary
        directory.mkdir(parents=True, exist_ok=True)
        with writing(directory):
            self.writer = EventsWriter(str(directory / "events"), f".step-{step:08d}")
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(step=step + 1 if step else 0, session_log=start)

    def write(self, split: str, step: int, values: dict[str, Any]) -> None:
        """The numbers among `values` at a step; None is left out."""
        scalars = [
            self.summary.Value(tag=f"{split}/{tag}", simple_value=value)
            for name, given in values.items()
            for tag, value in _tagged(name, given)
        ]
        self._write(step=step, summary=self.summary(value=scalars))

    def flush(self) -> None:
        """Make what was written durable."""
        with writing(self.directory):
            self.writer.flush()

    def _write(self, **content: Any) -> None:
        with writing(self.directory):
            self.writer.write_event(self.event.Event(wall_time=time.time(), **content))


class NoEvents:
    """No event files."""

    def write(self, split: str, step: int, values: dict[str, Any]) -> None:
        """Nothing."""

    def flush(self) -> None:
        """Nothing."""


def _tagged(name: str, given: Any) -> Iterator[tuple[str, float]]:
    if isinstance(given, list):
        yield from ((f"{name}/{place}", value) for place, value in enumerate(given))
    elif given is not None:
        yield name, given
