"""metrics.jsonl, which holds nothing that depends on the machine's speed."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from symbert.errors import IntegrityError
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
