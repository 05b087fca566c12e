"""A request to stop, as the scheduler or the user sends it. Imports nothing that takes time: it is made first."""

import os
import signal
from types import FrameType

ORPHANED = "parent process ended"
LIMIT = "SIGUSR1"  # the time limit is near: what `sbatch --signal` sends in the profile


class StopRequest:
    """Remembers SIGTERM, SIGINT or SIGUSR1, so that a run can save at the next step boundary and exit with 75.

    SIGUSR1 says that the time limit is near. Any other signal outlasts it: who cancels a job wants no more of it.
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
        return self._received or (ORPHANED if self._is_orphan() else None)

    def _is_orphan(self) -> bool:
        return os.getppid() != self._parent and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self._received in (None, LIMIT):
            self._received = signal.Signals(number).name
