"""metrics.jsonl: what training measured, and nothing that depends on the machine's speed."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from symbert.errors import IntegrityError
from symbert.files import read_json_lines, reading, writing

METRICS = "metrics.jsonl"


def verify_metrics(path: Path, length: int, sha256: str) -> None:
    """IntegrityError when the first `length` bytes of a log are not there, or not those of this SHA-256."""
    found = _begin(path, length).hexdigest()
    if found != sha256:
        raise IntegrityError(
            f"{path}: sha256 of its first {length} bytes {found[:12]}…, expected {sha256[:12]}…: the file is damaged"
        )


def _begin(path: Path, length: int) -> "hashlib._Hash":
    """The hash of the first `length` bytes of a log, to go on with."""
    with reading(path), open(path, "rb") as file:
        content = file.read(length)
    if len(content) < length:
        raise IntegrityError(
            f"{path}: {len(content)} bytes, the checkpoint was at {length}: the file is damaged; "
            f"delete {path.parent} to start the run over"
        )
    return hashlib.sha256(content)


class MetricsLog:
    """A line per logged step; cut back to `length` bytes, where the checkpoint was, when a run resumes."""

    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        with writing(path):
            self.file = open(path, "ab")  # noqa: SIM115 (open as long as the run)
        self.hash = _begin(path, length)
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
        """Make what was written durable; returns the length in bytes."""
        with writing(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
        return self.file.tell()

    def last_validation_loss(self) -> float:
        """The validation loss of the last line that has one."""
        verify_metrics(self.path, self.flush(), self.sha256)
        lines = read_json_lines(self.path, "run the same command again")
        return [line["loss"] for line in lines if line["split"] == "validation"][-1]

    @property
    def sha256(self) -> str:
        """Of what was written so far, and what was there before."""
        return self.hash.hexdigest()
