"""Progress of a long step: rate and remaining time, as a bar on a terminal and as lines in a log."""

import os
import sys
import time
from collections.abc import Sequence

REDRAWN = 0.2  # seconds between two pictures of the bar
CLEAR = "\r\x1b[K"  # back to the start of the line, which is emptied


class Progress:
    """Counts towards `total`, if it is known, and says so on stderr at most every `interval` seconds.

    On a terminal one line with a bar is drawn anew; where stderr is a log, or `total` is unknown, it is one plain
    line at a time. (Snakemake's jobs write to a log: several share one terminal.)
    """

    def __init__(self, label: str, total: int | None, unit: str, start: int = 0, interval: float = 5.0) -> None:
        self.label, self.total, self.unit, self.note = label, total, unit, ""
        self.drawn = bool(total) and sys.stderr.isatty()
        self.interval = min(interval, REDRAWN) if self.drawn else interval
        self.start = start
        self.begun = self.spoken = time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """Say where the work stands if the last line is old enough, or if it is done."""
        self.note = note or self.note
        now = time.monotonic()
        if now - self.spoken < self.interval and done != self.total:
            return
        self.spoken = now
        rate = (done - self.start) / max(now - self.begun, 1e-9)
        if self.drawn:
            self._draw(done, f"{self._place(done, rate)}{self._with(self.note)}")
        else:
            print(f"{self.label}: {self._place(done, rate)}{self._with(note)}", file=sys.stderr, flush=True)

    def _place(self, done: int, rate: float) -> str:
        if self.total is None:
            return f"{done:,} {self.unit}, {rate:,.1f}/s"
        remaining = (self.total - done) / rate if rate else float("inf")
        return f"{done:,}/{self.total:,} {self.unit}, {rate:,.1f}/s, {duration(remaining)} left"

    def _with(self, note: str) -> str:
        return f", {note}" if note else ""

    def _draw(self, done: int, words: str) -> None:
        """The line, cut to the terminal's width; it ends when the work does, or with `end_line`."""
        line = f"{self.label}: {bar(done / self.total)} {words}"
        finished = done == self.total
        print(CLEAR + line[: _columns() - 1], end="\n" if finished else "", file=sys.stderr, flush=True)
        _Line.open = not finished


class _Line:
    """Whether the terminal's line is that of a bar."""

    open = False


def end_line() -> None:
    """End the line of an unfinished bar, so that the next words on stderr begin a line of their own."""
    if _Line.open:
        print(file=sys.stderr, flush=True)
        _Line.open = False


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def bar(part: float, width: int = 20) -> str:
    """How much of the work is done: '[#####...............]'."""
    filled = int(width * min(max(part, 0.0), 1.0))
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def duration(seconds: float) -> str:
    """A time span for people: '45 s', '12 min', '3.4 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


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
