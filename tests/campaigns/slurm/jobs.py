"""What Slurm says of its jobs, and a training of the workflow that is held still while something happens to it."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 300  # seconds in which what a test waits for happens; cluster.LIMIT is that of the whole


def wait_until(holds: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    """Until it holds; AssertionError with what `otherwise` says when it does not in time."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.05)


def ask(*command: str) -> str:
    """What a command of Slurm prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def job(number: str) -> dict[str, str]:
    """What `scontrol` shows of a job, by name."""
    words = re.split(r"\s+(?=[A-Z][\w:/]*=)", ask("scontrol", "show", "job", "-o", number).strip())
    return dict(word.split("=", 1) for word in words)


def jobs_of(rule: str) -> list[dict[str, str]]:
    """The jobs of a rule, in the order in which they were submitted."""
    told = [line.split("|") for line in ask("squeue", "-h", "--states=all", "-o", "%i|%k").splitlines()]
    return [job(number) for number in sorted((i for i, comment in told if rule in comment), key=int)]


@dataclass
class Training:
    """A pre-training that a job of Slurm computes in a working copy."""

    directory: Path
    attention: str
    job: str = ""  # that computes it
    process: int = 0
    previous: int = 0  # process, of the session before

    @property
    def folder(self) -> Path:
        """The folder of its run, which a start of Snakemake makes."""
        (folder,) = self.directory.glob(f"results/runs/encoder/tiny-{self.attention}-*/seed-1")
        return folder

    def hold(self) -> bool:
        """Stop its process once a step is saved; False while there is none, or not this session's."""
        saved = f"results/runs/encoder/tiny-{self.attention}-*/seed-1/state/resume/step-*.json"
        if not self.process and any(self.directory.glob(saved)):
            with suppress(ValueError):  # the lock is being written
                lease = json.loads((self.folder / "lock").read_text())
                if lease["process"] != self.previous:
                    self._stop(lease)
        return bool(self.process)

    def _stop(self, lease: dict[str, Any]) -> None:
        self.job, self.process = lease["slurm_job"], lease["process"]
        os.kill(self.process, signal.SIGSTOP)
        assert not (self.folder / "done.json").exists(), "the training ended before it was held"

    def next_session(self) -> "Training":
        """The same training, to be held once another process computes it."""
        return Training(self.directory, self.attention, previous=self.process)

    def environment(self) -> dict[str, str]:
        """That of its process."""
        words = Path(f"/proc/{self.process}/environ").read_text().split("\0")
        return dict(word.split("=", 1) for word in words if "=" in word)

    def go_on(self) -> None:
        """Continue its process."""
        os.kill(self.process, signal.SIGCONT)
