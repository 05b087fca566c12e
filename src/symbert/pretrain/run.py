"""The command that pre-trains one run (size × attention × seed), and what it is given. Imports no torch.

Everything a run needs to go on lies in its `state` directory, which no rule declares as an output (Snakemake
deletes outputs); the declared files are published when the last step is done.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from symbert.layout import Run

ORPHANED = "parent process ended"
LIMIT = "SIGUSR1"  # the time limit is near: what `sbatch --signal` sends in the profile


def pretrain_model(
    manifest: Path,
    settings: Path,
    size: str,
    attention: str,
    seed: int,
    state: Path,
    done: Path,
    metrics: Path,
    timing: Path,
    threads: int,
    on_settings_change: str,
    micro_batch_size: int | None = None,
    tensorboard: bool = False,
) -> None:
    """Train one model, from its newest checkpoint if it was interrupted, and publish metrics, timing and a summary.

    SIGTERM, SIGINT and SIGUSR1 save at the next step boundary (PreemptedError, exit 75); the same command goes
    on from there with the same bits. SIGUSR1 means that the time limit is near (TimeLimitError): a job of Slurm then
    asks for another session. DivergedError when the loss or the gradient is not finite. Started by `torchrun`, its
    processes share each batch.
    """
    stop = StopRequest()  # before torch is imported, which takes seconds
    from symbert.pretrain.session import hold_session

    paths = RunPaths(manifest, settings, state, done, metrics, timing)
    execution = Execution(threads, micro_batch_size, tensorboard, on_settings_change)
    hold_session(Run(size, attention, seed), paths, execution, stop)


@dataclass(frozen=True)
class RunPaths:
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


class StopRequest:
    """Remembers SIGTERM, SIGINT or SIGUSR1, so that a run can save at the next step boundary and exit with 75.

    SIGUSR1 says that the time limit is near. Any other signal replaces it: cancellation overrides the time limit.
    """

    def __init__(self) -> None:
        self._received: str | None = None
        self._parent = os.getppid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, self._remember)

    @property
    def signal(self) -> str | None:
        """Why to stop, None to go on: the name of a signal, or that the parent process ended.

        A killed workflow or `torchrun` leaves its children alive, and what they go on to compute nobody asked for.
        Whoever starts a run to outlive its parent ignores SIGHUP, as `nohup` does.
        """
        is_orphan = os.getppid() != self._parent and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
        return self._received or (ORPHANED if is_orphan else None)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self._received in (None, LIMIT):
            self._received = signal.Signals(number).name
