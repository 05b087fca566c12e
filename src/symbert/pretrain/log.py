"""metrics.jsonl, which holds nothing that depends on the machine's speed, and the same numbers for TensorBoard."""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from symbert.errors import IntegrityError, MissingInputError
from symbert.files import read_json_lines, reading, writing

METRICS = "metrics.jsonl"


class MetricsLog:
    """A line per logged step; cut back to `length` bytes, where the checkpoint was, when a run resumes."""

    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        with writing(path):
            self.file = open(path, "ab")  # noqa: SIM115 (open as long as the run)
        self.hash = _hash_beginning(path, length)
        with writing(path):
            self.file.truncate(length)
            self.file.seek(length)

    def write(self, **values: Any) -> None:
        """Append one line."""
        line = (json.dumps(values, allow_nan=False) + "\n").encode()
        with writing(self.path):
            self.file.write(line)
        self.hash.update(line)

    def flush(self) -> int:
        """Make all lines durable; returns the length in bytes."""
        with writing(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
        return self.file.tell()

    def last_validation(self) -> dict[str, float]:
        """What the last validation measured: the loss, and what else the objective says."""
        verify_metrics(self.path, self.flush(), self.sha256)
        lines = read_json_lines(self.path, "run the same command again")
        *_, last = (line for line in lines if line["split"] == "validation")
        return {name: value for name, value in last.items() if name not in ("split", "step")}

    @property
    def sha256(self) -> str:
        """Of the whole file."""
        return self.hash.hexdigest()


def verify_metrics(path: Path, length: int, sha256: str) -> None:
    """IntegrityError when a log is shorter than `length` bytes, or those have another SHA-256."""
    computed = _hash_beginning(path, length).hexdigest()
    if computed != sha256:
        raise IntegrityError(
            f"{path}: sha256 of its first {length} bytes {computed[:12]}…, expected {sha256[:12]}…: the file is damaged"
        )


def _hash_beginning(path: Path, length: int) -> "hashlib._Hash":
    """The hash of the first `length` bytes of a log, to go on with."""
    with reading(path), open(path, "rb") as file:
        content = file.read(length)
    if len(content) < length:
        raise IntegrityError(
            f"{path}: {len(content)} bytes, the checkpoint was at {length}: the file is damaged; "
            f"delete {path.parent} to start the run over"
        )
    return hashlib.sha256(content)


class EventLog:
    """Event files for TensorBoard, to look at: no run goes on from them.

    Scalars have the tag `split/name` (of a list, `split/name/0` and so on). A resumed run begins a new file that tells
    TensorBoard to forget all scalars after `step`. They are written by this thread: tensorboardX's SummaryWriter has a
    queue, whose content is lost when the run is killed, and for which the process waits for ever when the disk is full.
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

    def write(self, split: str, step: int, **values: Any) -> None:
        """The numbers among `values` at a step; None is left out."""
        tagged = {}
        for name, value in values.items():
            if isinstance(value, list):
                tagged |= {f"{name}/{place}": item for place, item in enumerate(value)}
            elif value is not None:
                tagged[name] = value
        scalars = [self.summary.Value(tag=f"{split}/{tag}", simple_value=value) for tag, value in tagged.items()]
        self._write(step=step, summary=self.summary(value=scalars))

    def flush(self) -> None:
        """Make all scalars durable."""
        with writing(self.directory):
            self.writer.flush()

    def _write(self, **content: Any) -> None:
        with writing(self.directory):
            self.writer.write_event(self.event.Event(wall_time=time.time(), **content))
