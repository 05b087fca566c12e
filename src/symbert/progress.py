"""Progress of a long step: rate and remaining time as lines, which are read back from logs."""

import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

# A line of a log, as `Progress` writes it: label, place, unit of what is counted, and the time that is left.
PLACE = re.compile(r"(.+): ([\d,]+(?:/[\d,]+)? ([\w ]+), [\d,.]+/s(?:, (?:([\d.]+) (s|min|h)|inf h) left)?)")
SECONDS = {"s": 1, "min": 60, "h": 3600}  # in the units of `duration`
ERROR = re.compile(r"symbert(?: [\w-]+)?: .+")  # as `cli` writes it
WARNING = "warning: "  # what a line begins with that its command goes on after, and that somebody should read
END = 1 << 14  # bytes of a log that are read for its last lines


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
        if self.total is not None:
            remaining = (self.total - done) / rate if rate else float("inf")
            place = f"{done:,}/{self.total:,} {self.unit}, {rate:,.1f}/s, {duration(remaining)} left"
        print(f"{self.label}: {place}{note and f', {note}'}", file=sys.stderr, flush=True)


def last_place(log: Path, since: float = 0.0) -> tuple[str, float | None]:
    """Where the command that writes `log` said last that it stands: '858/1,600 steps, 42.7/s, 17 s left'.

    And the seconds that are left of its work, which only the steps of a training tell; None for others. What was
    written before `since`, seconds of the clock, is of an earlier command.
    """
    match = next(filter(None, map(PLACE.match, reversed(last_lines(log, since)))), None)
    if match is None:
        return "", None
    label, place, unit, left, of_time = match.groups()
    _, *task = label.split(": ")  # 'finetune small-original: mrpc seed 1' is one of several
    is_whole = left and unit == "steps" and not task
    return ": ".join([*task, place]), float(left) * SECONDS[of_time] if is_whole else None


def last_error(logs: Sequence[str]) -> str:
    """The last line in which a command of ours said, in any of these logs, why it failed; '' where none did."""
    return next((line for log in reversed(logs) for line in reversed(last_lines(Path(log))) if ERROR.match(line)), "")


def warnings_of(logs: Sequence[str]) -> list[str]:
    """The lines in which commands of ours warned, in the order of these logs; none of a log that is missing."""
    warnings = []
    for log in logs:
        with suppress(OSError), open(log, encoding="utf-8", errors="replace") as lines:
            warnings += [line.strip() for line in lines if line.startswith(WARNING)]
    return warnings


def last_lines(log: Path, since: float = 0.0) -> list[str]:
    """The lines at the end of a log, empty ones left out; none of a log that is missing or older than `since`."""
    try:
        with open(log, "rb") as file:
            if os.fstat(file.fileno()).st_mtime < since:
                return []
            file.seek(max(os.fstat(file.fileno()).st_size - END, 0))
            return [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []


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
