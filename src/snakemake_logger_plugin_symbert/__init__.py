"""`logger: symbert` of a profile: one bar, the time left, the running jobs; of a failed job the line that matters.

With --quiet, --verbose, --printshellcmds, --debug-dag or --dry-run Snakemake shows its own output instead.
Snakemake imports this before it reads the Snakefile, which decides whose copy of symbert runs: import none of it here.
"""

import re
from collections import Counter
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
RATE, LEFT = re.compile(r"\d/s\b"), re.compile(r"([\d.]+) (s|min|h) left")  # as symbert.console writes them
ERROR = re.compile(r"symbert(?: [\w-]+)?: .+")  # as symbert.cli writes it
NOISE = re.compile("Select jobs to execute|.*CalledProcessError", re.S)  # the latter: the command of a failed job


class LogHandler(LogHandlerBase):
    has_filter = has_formatter = needs_rulegraph = writes_to_file = False  # Snakemake adds its filter and formatter
    writes_to_stream = True  # instead of Snakemake's own output

    def __post_init__(self) -> None:
        Handler.__init__(self)  # which the interface of Snakemake 9.0 leaves out
        options = ("dryrun", "quiet", "verbose", "printshellcmds", "debug_dag")
        self.writes_to_stream = not any(getattr(self.common_settings, option) for option in options)
        self.console = Console(stderr=True, soft_wrap=True, no_color=self.common_settings.nocolor or None)
        self.jobs, self.done, self.seconds = Counter(), Counter(), Counter()  # all, finished, and their time, by rule
        self.running, self.warnings = {}, set()  # rule, name, logs and start of jobs by number; lines that were shown
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
            self.jobs = Counter(facts["stats"]) - Counter(total=facts["stats"]["total"])
            self._say(f"{self.jobs.total()} jobs: " + ", ".join(f"{rule} {self.jobs[rule]}" for rule in self.jobs))
            self.thread.start()
        elif event == LogEvent.JOB_INFO:
            name = " ".join([facts["rule_name"], *facts["wildcards"].values()])
            self.running[facts["jobid"]] = facts["rule_name"], name, facts["log"], record.created
        elif event == LogEvent.JOB_FINISHED and facts["job_id"] in self.running:
            rule, name, logs, start = self.running.pop(facts["job_id"])
            self.done[rule] += 1
            self.seconds[rule] += record.created - start
            for line in sorted({line for line in lines_of(logs) if line.startswith("warning: ")} - self.warnings):
                self.warnings.add(line)
                self._say(f"{line} ({name})", "yellow")
        elif event == LogEvent.JOB_ERROR and facts["jobid"] in self.running:
            _, name, *_ = self.running.pop(facts["jobid"])
            lines = lines_of(facts["log"]) or ["no message"]
            errors = [line for line in lines if ERROR.match(line)]
            if errors or not facts.get("indent"):  # Snakemake calls every job of a group failed, and indents it
                message = errors[-1] if errors else facts["rule_msg"] or lines[-1]
                self._say(f"failed: {name}\n  {message}\n  log: {', '.join(facts['log'])}", "red")
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
                    bar = f"[{'#' * (20 * self.done.total() // self.jobs.total()):.<20}]"
                    text = "\n  ".join([f"{bar} {summary}", *places])
                    live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
                else:
                    self._say("; ".join([f"symbert: {summary}", *places])[:WIDTH])

    def look(self) -> list[str]:
        """Jobs done and the time left; then the running jobs, each with the last line of progress in its log."""
        elapsed, spent, places = int(time() - self.start), self.seconds.total(), []
        count, seconds = Counter(self.done), Counter(self.seconds)  # also of running jobs, as far as their logs tell
        for rule, name, logs, start in list(self.running.values()):
            age = time() - start
            if all(Path(log).exists() and Path(log).stat().st_mtime >= start for log in logs[:1]):
                line = next(filter(RATE.search, reversed(lines_of(logs[:1]))), "")
                places.append(f"{name}: {line.partition(': ')[2] or timedelta(0, int(age))}")
                for number, unit in LEFT.findall(line):
                    seconds[rule] += float(number) * {"s": 1, "min": 60, "h": 3600}[unit]
            count[rule], seconds[rule], spent = count[rule] + 1, seconds[rule] + age, spent + age
        wait = len(self.running) - len(places)
        summary = f"{self.done.total()} of {self.jobs.total()} jobs in {timedelta(0, elapsed)}"
        summary += f", {len(places)} run, {wait} wait" if wait else f", {len(places)} run"
        if self.done:  # a job takes the mean of its rule or, without one, of all
            mean = seconds.total() / count.total()
            work = sum(self.jobs[rule] * (seconds[rule] / count[rule] if count[rule] else mean) for rule in self.jobs)
            summary += f", about {timedelta(0, max(int(elapsed * (work / spent - 1)), 0))} left"
        return [summary, *places[:SHOWN]]


def lines_of(logs: list[str]) -> list[str]:
    return [line.strip() for log in logs for line in _text_of(log).splitlines() if line.strip()]


def _text_of(log: str) -> str:
    """Nothing where the log is absent: Snakemake may delete it at any moment."""
    try:
        return Path(log).read_text(errors="replace")
    except FileNotFoundError:
        return ""
