"""Commands as fresh processes: CPU seconds, wall seconds and peak memory of each.

This process imports nothing large: the kernel counts the memory of whoever starts a process towards its peak.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Command = Sequence[str]

ONE_THREAD = {
    **dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True)
class Usage:
    """What a contestant used in one round."""

    cpu: float  # seconds, user and system, of all its processes, imports included
    wall: float  # seconds
    memory: float  # MB (10^6 bytes) resident at the peak, of its largest process
    said: dict[str, float] = field(default_factory=dict)  # the JSON objects that it printed


@dataclass(frozen=True)
class Contestant:
    """What is measured: jobs of one or more commands each, dealt to `workers` processes."""

    name: str
    jobs: list[list[Command]]
    workers: int = 1


Seconds = dict[str, float]
"""One round: seconds by the name of what took them, one after another; only `<size>: peak` is in FLOP/s."""

Usages = dict[str, Usage]
"""One round: usage by the contestant's name, measured one after another."""

Round = TypeVar("Round")  # what a benchmark finds in a round: usages, or seconds alone


@dataclass(frozen=True)
class Figure(Generic[Round]):
    """A number that each round gives, and its target: `at_least` or `at_most`."""

    name: str
    unit: str
    value: Callable[[Round], float]
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str | None:
        """The target in words of a table, if there is one."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return None if self.at_most is None else f"≤ {self.at_most:g}"

    def met(self, value: float) -> bool:
        """Whether a value reaches the target; without one, any does."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


def ratio(first: str, second: str) -> Callable[[Seconds], float]:
    """How many times the second the first is, in one round."""
    return lambda round: round[first] / round[second]


@dataclass(frozen=True)
class Spread:
    """Median and range of one number over the rounds."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Median, smallest and largest."""
    return Spread(statistics.median(values), min(values), max(values))


def interleave(contestants: Sequence[Contestant], rounds: int, prepare: Callable[[], None]) -> list[Usages]:
    """Every contestant once per round, in order, after `prepare`; what disturbs the machine disturbs all alike."""
    results = []
    for number in range(1, rounds + 1):
        prepare()
        results.append({contestant.name: measure(contestant, f"round {number}") for contestant in contestants})
    return results


def measure(contestant: Contestant, place: str) -> Usage:
    """Run a contestant; SystemExit with the end of a command's error output when it fails."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(contestant.workers) as pool:
        usages = list(pool.map(_run_job, contestant.jobs))
    usage = _together(usages, time.perf_counter() - begun)
    print(f"{place}: {contestant.name}: {usage.cpu:.2f} CPU s, {usage.memory:.0f} MB", file=sys.stderr, flush=True)
    return usage


def _run_job(commands: Sequence[Command]) -> Usage:
    begun = time.perf_counter()
    usages = [_run(command) for command in commands]
    return _together(usages, time.perf_counter() - begun)


def _together(usages: Sequence[Usage], wall: float) -> Usage:
    said = {key: value for usage in usages for key, value in usage.said.items()}
    return Usage(sum(usage.cpu for usage in usages), wall, max(usage.memory for usage in usages), said)


def _run(command: Command) -> Usage:
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
        said = {}
        for line in output:
            if line.startswith("{"):
                said |= json.loads(line)
    return Usage(resources.ru_utime + resources.ru_stime, wall, resources.ru_maxrss * 1024 / 1e6, said)
