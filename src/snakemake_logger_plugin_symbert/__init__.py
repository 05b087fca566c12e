"""`logger: symbert` of a profile: one bar and the running jobs; of a failed job the line that matters.

With --quiet, --verbose, --printshellcmds, --debug-dag or --dry-run Snakemake shows its own output instead.
Snakemake imports this before it reads the Snakefile, which decides whose copy of symbert runs: import none of it here.
"""

import re
from datetime import timedelta
from logging import INFO, Handler, LogRecord
from pathlib import Path
from threading import Event, Thread
from time import time

from rich.console import Console
from rich.live import Live
from rich.text import Text
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

SHOWN, PAUSE, WIDTH = 8, 60, 160  # running jobs; without a terminal seconds between lines, and their characters
RATE = re.compile(r"\d/s\b")  # as symbert.console writes it
ERROR = re.compile(r"symbert(?: [\w-]+)?: .+")  # as symbert.cli writes it
STOPPED = re.compile("the same command (resumes|to go on)$")  # of a job that was asked to stop, and can go on
NOISE = re.compile("Select jobs to execute|.*CalledProcessError", re.S)  # the latter: the command of a failed job


class LogHandler(LogHandlerBase):
    has_filter = has_formatter = needs_rulegraph = writes_to_file = False  # Snakemake adds its filter and formatter
    writes_to_stream = True  # instead of Snakemake's own output

    def __post_init__(self) -> None:
        Handler.__init__(self)  # which the interface of Snakemake 9.0 leaves out
        options = ("dryrun", "quiet", "verbose", "printshellcmds", "debug_dag")
        self.writes_to_stream = not any(getattr(self.common_settings, option) for option in options)
        self.console = Console(stderr=True, soft_wrap=True, no_color=self.common_settings.nocolor or None)
        self.total = self.done = 0  # jobs
        self.running, self.warnings = {}, set()  # name, logs and start of jobs by number; lines that were shown
        self.start, self.end, self.thread = time(), Event(), Thread(target=self._follow, daemon=True)

    def emit(self, record: LogRecord) -> None:
        try:
            if self.writes_to_stream and not NOISE.match(record.getMessage()):
                self._show(record, getattr(record, "event", None), vars(record))
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        self.end.set()
        if self.thread.is_alive():
            self.thread.join()
        super().close()

    def _show(self, record: LogRecord, event: LogEvent | None, facts: dict) -> None:
        if event == LogEvent.RUN_INFO:
            rules = {rule: count for rule, count in facts["stats"].items() if rule != "total"}
            self.total = sum(rules.values())
            self._say(f"{self.total} jobs: " + ", ".join(f"{rule} {count}" for rule, count in rules.items()))
            self.thread.start()
        elif event == LogEvent.PROGRESS:
            self.total = facts["total"]  # more after a checkpoint
        elif event == LogEvent.JOB_INFO:
            name = " ".join([facts["rule_name"], *facts["wildcards"].values()])
            self.running[facts["jobid"]] = name, facts["log"], record.created
        elif event == LogEvent.JOB_FINISHED and facts["job_id"] in self.running:
            name, logs, _ = self.running.pop(facts["job_id"])
            self.done += 1
            for line in sorted({line for line in lines_of(logs) if line.startswith("warning: ")} - self.warnings):
                self.warnings.add(line)
                self._say(f"{line} ({name})", "yellow")
        elif event == LogEvent.JOB_ERROR and facts["jobid"] in self.running:
            name, *_ = self.running.pop(facts["jobid"])
            lines = lines_of(facts["log"]) or ["no message"]
            errors = [line for line in lines if ERROR.match(line)]
            if errors or not facts.get("indent"):  # Snakemake calls every job of a group failed, and indents it
                message = errors[-1] if errors else facts["rule_msg"] or lines[-1]
                word, style = ("stopped", "yellow") if STOPPED.search(message) else ("failed", "red")
                self._say(f"{word}: {name}\n  {message}\n  log: {', '.join(facts['log'])}", style)
        elif event == LogEvent.GROUP_ERROR:
            self._say(f"failed: group {facts['groupid']}\n  log: {', '.join(facts['aux_logs'])}", "red")
        elif event in (None, LogEvent.ERROR) and (record.levelno > INFO or not self.running):
            self._say(self.format(record), {"ERROR": "red", "WARNING": "yellow"}.get(record.levelname, ""))

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style))

    def _follow(self) -> None:
        """Draw the bar each second; without a terminal write a line each minute."""
        has_bar = self.console.file.isatty() and not self.console.is_dumb_terminal
        with Live(console=self.console, auto_refresh=False, transient=True) as live:
            while not self.end.wait(1 if has_bar else PAUSE):
                summary, *places = self.look()
                if has_bar:
                    bar = f"[{'#' * (20 * self.done // self.total):.<20}]"
                    text = "\n  ".join([f"{bar} {summary}", *places])
                    live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
                else:
                    self._say("; ".join([f"symbert: {summary}", *places])[:WIDTH])

    def look(self) -> list[str]:
        """How many jobs are done; then the running jobs, each with the last line of progress in its log."""
        places = []
        for name, logs, start in list(self.running.values()):
            if all(_changed(log) >= start for log in logs[:1]):
                line = next(filter(RATE.search, reversed(lines_of(logs[:1]))), "")
                places.append(f"{name}: {line.partition(': ')[2] or timedelta(0, int(time() - start))}")
        summary = f"{self.done} of {self.total} jobs in {timedelta(0, int(time() - self.start))}, {len(places)} run"
        return [summary, *places[:SHOWN]]


def _changed(log: str) -> float:
    """When it was written last; 0 where it is absent: Snakemake may delete it at any moment."""
    try:
        return Path(log).stat().st_mtime
    except FileNotFoundError:
        return 0


def lines_of(logs: list[str]) -> list[str]:
    return [line.strip() for log in logs for line in _text_of(log).splitlines() if line.strip()]


def _text_of(log: str) -> str:
    try:
        return Path(log).read_text(errors="replace")
    except FileNotFoundError:
        return ""
