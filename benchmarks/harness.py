"""What the benchmarks share: commands as fresh processes, rounds, figures with targets, tables, facts of the machine.

This module imports nothing large: the kernel counts the memory of whoever starts a process towards that process's peak,
and the processes that are measured import this module.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from timeit import timeit
from typing import Any, NamedTuple

MATRIX = 64  # rows and columns; BLAS shares larger matrices among threads
REPEATED = 10_000  # a third of a second
ONE_THREAD = {
    **dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
}
Command = Sequence[str]
Round = dict[str, Any]  # measurements by contestant: Usage of processes, or seconds


class Contestant(NamedTuple):
    """A name, and the commands that are dealt to `workers` at a time."""

    name: str
    commands: list[Command]
    workers: int = 1


class Usage(NamedTuple):
    """What a contestant used in a round."""

    cpu: float  # seconds, user and system, of all its processes, imports included
    wall: float  # seconds
    memory: float  # MB (10^6 bytes) resident at the peak, of its largest process
    printed: dict[str, float]  # the JSON objects that it printed


def interleave(contestants: Sequence[Contestant], rounds: int, prepare: Callable[[], None]) -> list[Round]:
    """Run every contestant once per round, in order, after `prepare`: a disturbance of the machine disturbs all."""
    measured = []
    for number in range(1, rounds + 1):
        prepare()
        measured.append({contestant.name: run(contestant, f"round {number}") for contestant in contestants})
    return measured


def in_turn(names: Iterable[str], number: int) -> Iterator[str]:
    """Names in order; each round begins with another."""
    names = list(names)
    return iter(names[number % len(names) :] + names[: number % len(names)])


def run(contestant: Contestant, place: str) -> Usage:
    """Run a contestant; SystemExit with the end of a command's error output if it fails."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(contestant.workers) as pool:
        usages = list(pool.map(_run_command, contestant.commands))
    wall, printed = (
        time.perf_counter() - begun,
        {key: value for usage in usages for key, value in usage.printed.items()},
    )
    total = Usage(sum(usage.cpu for usage in usages), wall, max(usage.memory for usage in usages), printed)
    progress(f"{place}: {contestant.name}: {total.cpu:.2f} CPU s, {total.memory:.0f} MB")
    return total


def _run_command(command: Command) -> Usage:
    begun = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, env={**os.environ, **ONE_THREAD})
        _, status, resources = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begun
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}:\n{errors.read()[-2000:]}")
        output.seek(0)
        printed = {}
        for line in output:
            if line.startswith("{"):
                printed |= json.loads(line)
    return Usage(resources.ru_utime + resources.ru_stime, wall, resources.ru_maxrss * 1024 / 1e6, printed)


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
        median = statistics.median(values)
        cells, met = "– | |", True
        if self.at_least is not None:
            cells, met = f"≥ {self.at_least:g} {self.unit} | met |", median >= self.at_least
        if self.at_most is not None:
            cells, met = f"≤ {self.at_most:g} {self.unit} | met |", median <= self.at_most
        cells = cells if met else cells.replace("met", "**missed**")
        return f"| {self.name} | {median:.2f} {self.unit} | {min(values):.2f}–{max(values):.2f} | {cells}"


def ratio(first: str, second: str) -> Callable[[Round], float]:
    """How many times the seconds of another contestant one takes."""
    return lambda measured: measured[first] / measured[second]


def figure_table(figures: Sequence[Figure], rounds: Sequence[Round]) -> str:
    rows = [figure.row(rounds) for figure in figures]
    return table("| figure | median | range over the rounds | target | |", "|---|---:|---:|---:|---|", rows)


def usage_table(once: Round, rounds: Sequence[Round]) -> str:
    """Median seconds and highest memory of each contestant; `once` holds what was not repeated."""
    usages = {name: [usage] for name, usage in once.items()}
    usages |= {name: [measured[name] for measured in rounds] for name in rounds[0]}
    rows = []
    for name, runs in usages.items():
        cpu, wall = (statistics.median(getattr(usage, key) for usage in runs) for key in ("cpu", "wall"))
        rows.append(f"| {name} | {len(runs)} | {cpu:.2f} | {wall:.2f} | {max(usage.memory for usage in runs):.0f} |")
    return table("| contestant | runs | CPU s | wall s | peak MB |", "|---|---:|---:|---:|---:|", rows)


def table(head: str, rule: str, rows: Sequence[str]) -> str:
    return "\n".join([head, rule, *rows, ""])


def write_page(output: Path, title: str, conditions: Sequence[str], tables: Sequence[str]) -> None:
    """Write the page to a file, and print it."""
    head = "\n".join([f"# Figures of {title}", "", *(f"* {line}" for line in conditions), ""])
    page = "\n".join([head, *tables])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page)
    print(page)


def options_of(name: str, description: str | None, rounds: int, work: str = "") -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--output", type=Path, default=Path(f"results/{name}.md"))
    if work:
        parser.add_argument("--work", type=Path, default=Path(f"results/{work}"), help="working folder")
    return parser


def progress(line: str) -> None:
    """Say on stderr how far the benchmark is."""
    print(line, file=sys.stderr, flush=True)


def machine() -> str:
    """Processor, memory, load, and the speed of a core, by which figures of different machines compare."""
    import numpy  # here: see the docstring of the module

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    matrix = numpy.full((MATRIX, MATRIX), 1 / MATRIX, dtype=numpy.float32)
    product = timeit(lambda: matrix @ matrix, number=REPEATED) / REPEATED
    loop = timeit("for number in range(1000): total += number", "total = 0", number=REPEATED) / REPEATED
    return (
        f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB; load {os.getloadavg()[0]:.2f} at the start; "
        f"a product of {MATRIX} × {MATRIX} matrices takes {1e6 * product:.1f} µs, "
        f"a Python loop over 1,000 numbers {1e6 * loop:.1f} µs"
    )


def versions(*packages: str) -> str:
    """System, Python, and the packages with their versions."""
    from importlib.metadata import distributions

    present = {each.metadata["Name"].lower(): each.version for each in distributions()}
    found = ", ".join(f"{name} {present.get(name, 'absent')}" for name in packages)
    return f"{platform.system()}, Python {platform.python_version()}; {found}"
