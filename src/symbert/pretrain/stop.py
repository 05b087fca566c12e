"""What asks a run to stop: signals, and the end of its parent process. Imports no torch."""

import os
import signal
from types import FrameType

ORPHANED = "parent process ended"
LIMIT = "SIGUSR1"  # the time limit is near: what `sbatch --signal` sends in the profile


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
