"""What the benchmarks share: commands as fresh processes, rounds, figures with targets, tables, facts of the machine.

This module imports nothing large: the kernel counts the memory of the process that starts another towards the peak of
the other, and measured processes import this module.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ONE_THREAD = {
    **dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
}
Command = Sequence[str]
Round = dict[str, Any]  # measurements by contestant: Usage of processes, or seconds


class Contestant(NamedTuple):
    """A name, and the commands that are dealt to `workers` at a time; several have a core each, on which they stay."""

    name: str
    commands: list[Command]
    workers: int = 1


class Usage(NamedTuple):
    """What the processes of a contestant used in a round."""

    cpu: float  # seconds, user and system, imports included
    wall: float  # seconds
    memory: float  # MB (10^6 bytes) resident at the peak, of the largest process


def interleave(contestants: Sequence[Contestant], rounds: int, prepare: Callable[[], None]) -> list[Round]:
    """Run every contestant once per round, in order, after `prepare`: a disturbance of the machine disturbs all."""
    measured = []
    for number in range(1, rounds + 1):
        prepare()
        measured.append({contestant.name: run(contestant, f"round {number}") for contestant in contestants})
    return measured


def in_turn(names: Iterable[str], number: int) -> list[str]:
    """Names in order; each round begins with another."""
    names = list(names)
    return names[number % len(names) :] + names[: number % len(names)]


def run(contestant: Contestant, place: str) -> Usage:
    """Run a contestant; SystemExit with the end of a command's error output if it fails."""
    free: SimpleQueue[set[int]] = SimpleQueue()  # what a worker may run on
    cores = os.sched_getaffinity(0)
    for core in sorted(cores)[: contestant.workers]:
        free.put({core} if contestant.workers > 1 else cores)

    def run_one(command: Command) -> tuple[float, float]:
        where = free.get()
        try:
            return _run_command(command, where)
        finally:
            free.put(where)

    begun = time.perf_counter()
    with ThreadPoolExecutor(contestant.workers) as pool:
        seconds, memory = zip(*pool.map(run_one, contestant.commands), strict=True)
    usage = Usage(sum(seconds), time.perf_counter() - begun, max(memory))
    progress(f"{place}: {contestant.name}: {usage.cpu:.2f} CPU s, {usage.memory:.0f} MB")
    return usage


def _run_command(command: Command, cores: set[int]) -> tuple[float, float]:
    """CPU seconds and peak memory (MB) on some cores."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, **ONE_THREAD})
        os.sched_setaffinity(process.pid, cores)
        _, status, resources = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}:\n{errors.read()[-2000:]}")
    return resources.ru_utime + resources.ru_stime, resources.ru_maxrss * 1024 / 1e6


@dataclass(frozen=True)
class Figure:
    """A number that each round gives, and its target."""

    name: str
    unit: str
    value: Callable[[Round], float]
    at_least: float | None = None
    at_most: float | None = None

    def row(self, rounds: Sequence[Round]) -> str:
        """Median, range, and whether the median reaches the target."""
        values = [self.value(measured) for measured in rounds]
        median, target, met = statistics.median(values), "–", ""
        if self.at_least is not None:
            target, met = f"≥ {self.at_least:g} {self.unit}", "met" if median >= self.at_least else "**missed**"
        if self.at_most is not None:
            target, met = f"≤ {self.at_most:g} {self.unit}", "met" if median <= self.at_most else "**missed**"
        return f"| {self.name} | {median:.2f} {self.unit} | {min(values):.2f}–{max(values):.2f} | {target} | {met} |"


def ratio(slower: str, faster: str) -> Callable[[Round], float]:
    """How many times the seconds of `faster` the contestant `slower` takes."""
    return lambda measured: measured[slower] / measured[faster]


def figure_table(figures: Sequence[Figure], rounds: Sequence[Round]) -> str:
    rows = [figure.row(rounds) for figure in figures]
    return table("| figure | median | range over the rounds | target | |", "|---|---:|---:|---:|---|", rows)


def usage_table(rounds: Sequence[Round]) -> str:
    """Median seconds and highest memory of each contestant."""
    rows = []
    for name in rounds[0]:
        runs = [measured[name] for measured in rounds]
        cpu, wall = (statistics.median(getattr(usage, key) for usage in runs) for key in ("cpu", "wall"))
        rows.append(f"| {name} | {cpu:.2f} | {wall:.2f} | {max(usage.memory for usage in runs):.0f} |")
    return table("| contestant | CPU s | wall s | peak MB |", "|---|---:|---:|---:|", rows)


def table(head: str, rule: str, rows: Sequence[str]) -> str:
    return "\n".join([head, rule, *rows, ""])


def write_page(output: Path, title: str, conditions: Sequence[str], tables: Sequence[str]) -> None:
    """Write the page to a file, and print it."""
    page = "\n".join([f"# Figures of {title}", "", *(f"* {line}" for line in conditions), "", *tables])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page)
    print(page)


def options_of(name: str, description: str | None, rounds: int, work: bool = True) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--output", type=Path, default=Path(f"results/{name}.md"))
    if work:
        parser.add_argument("--work", type=Path, default=Path(f"results/{name}"), help="working folder")
    return parser


def progress(line: str) -> None:
    """Say on stderr how far the benchmark is."""
    print(line, file=sys.stderr, flush=True)


def machine() -> str:
    """Processor, memory and load."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB; load {os.getloadavg()[0]:.2f} at the start"


def versions(*packages: str) -> str:
    """System, Python, and the packages with their versions."""
    from importlib.metadata import distributions

    present = {package.metadata["Name"].lower(): package.version for package in distributions()}
    named = ", ".join(f"{name} {present.get(name, 'absent')}" for name in packages)
    return f"{platform.system()}, Python {platform.python_version()}; {named}"
