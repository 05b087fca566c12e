"""metrics.jsonl: what training measured, and nothing that depends on the machine's speed."""

import json
import os
from pathlib import Path
from typing import Any

from symbert.errors import IntegrityError
from symbert.files import explain_full_disk


class MetricsLog:
    """A line per logged step; cut back to `length` bytes, where the checkpoint was, when a run resumes."""

    def __init__(self, path: Path, length: int) -> None:
        self.path = path
        self.file = open(path, "ab")  # noqa: SIM115 (open as long as the run)
        if self.file.tell() < length:
            raise IntegrityError(
                f"{path}: {self.file.tell()} bytes, the checkpoint was at {length}: the file is damaged; "
                f"delete {path.parent} to start the run over"
            )
        self.file.truncate(length)
        self.file.seek(length)

    def write(self, **values: Any) -> None:
        """Append one line."""
        line = json.dumps(values, allow_nan=False) + "\n"
        with explain_full_disk(self.path):
            self.file.write(line.encode())

    def flush(self) -> int:
        """Make what was written durable; returns the length in bytes."""
        with explain_full_disk(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
        return self.file.tell()

    def last_validation_loss(self) -> float:
        """The validation loss of the last line that has one."""
        self.flush()
        lines = (json.loads(line) for line in self.path.read_text().splitlines())
        return [line["loss"] for line in lines if line["split"] == "validation"][-1]
