"""What Snakemake shows while jobs run: one bar for all of them, what runs with its rate, what warns and what fails.

Without a terminal it is a line for every few per cent. All else is in Snakemake's own log and in those of the jobs.
"""

import logging
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console as Terminal
from rich.console import Group
from rich.live import Live
from rich.text import Text
from snakemake_interface_logger_plugins.common import LogEvent

from symbert.progress import bar, duration, last_error, last_lines, last_place, warnings_of
from symbert.snakemake_internals import Job

WIDTH = 160  # characters of a line of progress in a log
STEP = 0.05  # part of the work after which a log has another line,
SILENCE = 1800  # and so do these seconds
SHOWN = 8  # running jobs below the bar
HEADER = (LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.RUN_INFO)  # the announcement is shorter


class Running(NamedTuple):
    """A job that was started: its logs, and when."""

    name: str
    logs: list[str]
    since: float

    def place(self) -> tuple[str, float]:
        """Where its log says that it stands, and how much of it is done: nothing where its log does not tell."""
        if self.logs and not Path(self.logs[0]).exists():
            return "not started yet", 0.0  # it waits in a cluster's queue
        elapsed = time.time() - self.since
        said, left = last_place(Path(self.logs[0]), self.since) if self.logs else ("", None)
        return said or duration(elapsed), 0.0 if left is None else elapsed / max(elapsed + left, 1e-9)


class Console(logging.Handler):
    """In the place of the handler by which Snakemake writes to the terminal, from the first job to `stop`."""

    def __init__(self, snakemake: logging.Handler) -> None:
        super().__init__()
        self.snakemake = snakemake
        self.terminal = Terminal(stderr=True, force_terminal=sys.stderr.isatty(), soft_wrap=True)
        self.is_drawn = self.terminal.is_terminal and not self.terminal.is_dumb_terminal
        self.running: dict[int, Running] = {}
        self.said = 0.0  # the part of the work that was said last
        self.jobs = self.finished = 0
        self.begun = self.spoken = 0.0
        self.warned: set[str] = set()  # lines that several jobs may write
        self.ended = threading.Event()
        self.live: Live | None = None

    def emit(self, record: logging.LogRecord) -> None:
        event, of = getattr(record, "event", None), vars(record)
        if event == LogEvent.RUN_INFO:
            self.jobs = of["stats"]["total"]
        if event == LogEvent.JOB_STARTED and not self.begun:
            self._begin()
        if not self.begun or self.ended.is_set():
            if event not in HEADER:
                self.snakemake.handle(record)
        elif event == LogEvent.JOB_INFO:
            name = Job(of["rule_name"], of["wildcards"]).name
            self.running[of["jobid"]] = Running(name, of["log"], time.time())
        elif event == LogEvent.JOB_FINISHED and of["job_id"] in self.running:
            job = self.running.pop(of["job_id"])
            self.finished += 1
            self._say_warnings(job)
        elif event == LogEvent.GROUP_ERROR:
            jobs = of["job_error_info"]
            for job in [job for job in jobs if last_error(job["log"])] or jobs[:1]:
                self._say_failure(job, of["aux_logs"])
        elif event == LogEvent.JOB_ERROR and not of["indent"]:  # indented is one of a group, which was said
            self._say_failure(of)
        elif record.levelno >= logging.WARNING and "CalledProcessError" not in record.getMessage():
            self._say(record.getMessage(), "red" if record.levelno >= logging.ERROR else "yellow")

    def stop(self) -> None:
        """Clear the bar; from now on Snakemake speaks for itself."""
        self.ended.set()
        if self.live:
            self.live.stop()

    def close(self) -> None:
        self.stop()
        super().close()

    def _begin(self) -> None:
        self.begun = self.spoken = time.time()
        if self.is_drawn:
            self.live = Live(console=self.terminal, get_renderable=self._picture, refresh_per_second=1, transient=True)
            self.live.start()
        else:
            threading.Thread(target=self._write_lines, daemon=True).start()

    def _picture(self) -> Group:
        """The bar, and below it the running jobs."""
        part, places = self.look()
        self.said = max(self.said, part)
        more = [f"… and {len(places) - SHOWN} more"] if len(places) > SHOWN else []
        lines = [f"{bar(self.said, 30)} {self._summary()}", *(f"  {line}" for line in [*places[:SHOWN], *more])]
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))

    def _write_lines(self) -> None:
        while not self.ended.wait(1):
            part, places = self.look()
            if part >= self.said + STEP or time.time() > self.spoken + SILENCE:
                self.said, self.spoken = part, time.time()
                self._say(textwrap.shorten("; ".join([f"symbert: {self._summary()}", *places]), WIDTH))

    def look(self) -> tuple[float, list[str]]:
        """How much of the work is done, all jobs taken for equal, and where each running job stands."""
        running = [(job, *job.place()) for job in list(self.running.values())]
        under_way = sum(part for _, _, part in running)
        return min((self.finished + under_way) / max(self.jobs, 1), 0.99), [
            f"{job.name}: {said}" for job, said, _ in running
        ]

    def _summary(self) -> str:
        elapsed = time.time() - self.begun
        left = f", about {duration(elapsed / self.said - elapsed)} left" if elapsed > 20 and self.said > 0.02 else ""
        return f"{self.said:.0%}, {self.finished} of {self.jobs} jobs in {duration(elapsed)}{left}"

    def _say_warnings(self, job: Running) -> None:
        """What a job said that ended well, and that its results do not tell; the same words of many jobs once."""
        for line in warnings_of(job.logs):
            if line not in self.warned:
                self.warned.add(line)
                self._say(f"{line} ({job.name})", "yellow")

    def _say_failure(self, error: dict[str, Any], others: Sequence[str] = ()) -> None:
        """The job, the line that matters, and the files that have the rest."""
        job, logs = self.running.pop(error["jobid"], None), [*error["log"], *others]
        last = [line for log in logs for line in last_lines(Path(log))][-1:]
        message = last_error(logs) or error["rule_msg"] or "".join(last) or "it ended without a word"
        name = job.name if job else error["rule_name"]
        self._say(f"failed: {name}\n  {message}\n  log: {', '.join(logs) or 'none'}", "red")

    def _say(self, words: str, style: str = "") -> None:
        for line in words.splitlines():  # whole: a path that is cut in two is no path
            self.terminal.print(Text(line, style))
