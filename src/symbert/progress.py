"""Progress of a long step: rate and remaining time, a line every few seconds."""

import sys
import time


class Progress:
    """Counts towards `total`, if it is known, and says so on stderr at most every `interval` seconds.

    One plain line at a time (never a redrawn bar), because several jobs share one terminal and one
    line is what a log file needs.
    """

    def __init__(self, label: str, total: int | None, unit: str, start: int = 0, interval: float = 5.0) -> None:
        self.label, self.total, self.unit, self.interval = label, total, unit, interval
        self.start = start
        self.begun = self.spoken = time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """Say where the work stands if the last line is old enough, or if it is done."""
        now = time.monotonic()
        if now - self.spoken < self.interval and done != self.total:
            return
        self.spoken = now
        rate = (done - self.start) / max(now - self.begun, 1e-9)
        line = f"{self.label}: {done:,} {self.unit}, {rate:,.1f}/s"
        if self.total is not None:
            remaining = (self.total - done) / rate if rate else float("inf")
            line = f"{self.label}: {done:,}/{self.total:,} {self.unit}, {rate:,.1f}/s, {duration(remaining)} left"
        print(f"{line}, {note}" if note else line, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """A time span for people: '45 s', '12 min', '3.4 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
