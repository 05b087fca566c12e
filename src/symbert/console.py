"""Lines on standard error, and numbers in words."""

import sys
import time
from collections.abc import Sequence
from datetime import timedelta


class Progress:
    """Counts towards `total`, if it is known, and says so on stderr at most every `interval` seconds."""

    def __init__(self, label: str, total: int | None, unit: str, start: int = 0, interval: float = 5.0) -> None:
        self.label, self.total, self.unit, self.start, self.interval = label, total, unit, start, interval
        self.begun = self.spoken = time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """Say where the work stands if the last line is old enough, or if it is done."""
        now = time.monotonic()
        if now - self.spoken < self.interval and done != self.total:
            return
        self.spoken = now
        rate = (done - self.start) / max(now - self.begun, 1e-9)
        place = f"{done:,} {self.unit}, {rate:,.1f}/s"
        if self.total is not None and rate:
            left = timedelta(seconds=round((self.total - done) / rate))
            place = f"{done:,}/{self.total:,} {self.unit}, {rate:,.1f}/s, {left} left"
        print(f"{self.label}: {place}{note and f', {note}'}", file=sys.stderr, flush=True)


def data_size(count: float) -> str:
    """Bytes for people: '0 B', '77.8 MB', '1.25 TB'."""
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= 0.9995 * factor:
            return f"{count / factor:.3g} {unit}" if count < 999.5 * factor else f"{count / factor:,.0f} {unit}"
    return f"{count:.0f} B"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of equal length as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
