"""A request to stop, as the scheduler or the user sends it."""

import signal
from types import FrameType


class StopRequest:
    """Remembers SIGTERM, SIGINT or SIGUSR1, so that a run can save at the next step boundary and exit with 75."""

    def __init__(self) -> None:
        self.signal: str | None = None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, self._remember)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.signal = signal.Signals(number).name
