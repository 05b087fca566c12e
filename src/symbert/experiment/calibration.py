"""How fast this machine is beside the one on which the demo was timed, and how long the demo takes here.

    python -m symbert.experiment.calibration [--cores N] [COMMAND …]

Each core multiplies matrices, and runs a loop of Python, at the same time as all others, as jobs will. The command that
runs the demo is given with its arguments: then the cores are measured once more after it, and its minutes are said.
"""

import argparse
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import mean

SECONDS = 1.5  # of each of the two measurements
MATRIX = 64  # rows and columns; larger ones BLAS shares among threads
MARGIN = 0.1  # of a run that others do not disturb; repeated ones of a longer demo took 10.1, 10.1 and 11.2 minutes


@dataclass(frozen=True)
class Speed:
    """Seconds that a core takes."""

    matmul: float  # for a product of two MATRIX × MATRIX matrices, in float32
    loop: float  # to add up 1,000 numbers in a loop of Python

    def __str__(self) -> str:
        return (
            f"a product of {MATRIX} × {MATRIX} matrices takes {1e6 * self.matmul:.1f} µs, "
            f"a Python loop over 1,000 numbers {1e6 * self.loop:.1f} µs"
        )

    @classmethod
    def between(cls, *speeds: "Speed") -> "Speed":
        """The mean of some."""
        return cls(mean(one.matmul for one in speeds), mean(one.loop for one in speeds))

    def over(self, other: "Speed") -> tuple[float, float]:
        """How many times as long as the other this one takes, for what it does best and worst."""
        low, high = sorted((self.matmul / other.matmul, self.loop / other.loop))
        return low, high


@dataclass(frozen=True)
class Timed:
    """A finished demo: the seconds that its jobs took together, and those of its longest chain of jobs, one by one."""

    jobs: float
    chain: float
    machine: Speed  # on which it ran, alone


# Two cores of a virtual machine (AVX-512): 323 s, the median of three rounds of `make bench-demo`.
DEMO = Timed(jobs=638, chain=75, machine=Speed(matmul=6.3e-6, loop=2.97e-5))


def measure(seconds: float = SECONDS) -> Speed:
    """The speed of the core that this process runs on."""
    import numpy  # not before the processes are started

    matrix = numpy.full((MATRIX, MATRIX), 1 / MATRIX, dtype=numpy.float32)

    def loop() -> None:
        total = 0
        for number in range(1000):
            total += number

    return Speed(_time(lambda: matrix @ matrix, seconds), _time(loop, seconds))


def _time(work: Callable[[], object], seconds: float) -> float:
    """Seconds of a piece of work that is repeated for about so long; others that compute here slow it down, too."""
    count, begun, elapsed = 0, time.perf_counter(), 0.0
    while elapsed < seconds:
        for _ in range(100):
            work()
        count, elapsed = count + 100, time.perf_counter() - begun
    return elapsed / count


def measure_cores(cores: int) -> Speed:
    """The mean speed of so many cores that are all busy."""
    with ProcessPoolExecutor(cores) as processes:
        return Speed.between(*processes.map(measure, [SECONDS] * cores))


def expected_minutes(cores: int, machine: Speed, timed: Timed = DEMO) -> tuple[float, float]:
    """The least and the most that such an experiment takes from the beginning, where nothing else computes.

    However jobs are ordered, they take no less than their sum over the cores or their longest chain, and no more than
    that chain and the rest over the cores (Graham, 1969).
    """
    best, worst = machine.over(timed.machine)
    least = max(timed.jobs / cores, timed.chain)
    most = timed.chain + (timed.jobs - timed.chain) / cores
    return (1 - MARGIN) * best * least / 60, (1 + MARGIN) * worst * most / 60


def expectation(cores: int, machine: Speed) -> str:
    """What is expected of the demo, and why."""
    least, most = expected_minutes(cores, machine)
    return (
        f"symbert: the demo takes about {math.floor(least) or 1} to {math.ceil(most)} minutes from its beginning, with "
        f"{of_this_machine(cores)};\n  measured on all of them at once: {machine}"
    )


def outcome(cores: int, machine: Speed, seconds: float, timed: Timed = DEMO) -> str:
    """What the jobs took, and what they would have taken on the machine on which the demo was timed."""
    best, worst = machine.over(timed.machine)
    minutes = seconds / 60
    return (
        f"symbert: this took {minutes:.1f} minutes with {of_this_machine(cores)}, where {machine};\n"
        f"  at {1e6 * timed.machine.matmul:.1f} and {1e6 * timed.machine.loop:.1f} µs it takes "
        f"{minutes / worst:.1f} to {minutes / best:.1f} minutes"
    )


def of_this_machine(cores: int) -> str:
    """In words."""
    return f"{cores} core{'s' if cores > 1 else ''} of this machine"


def follow(command: list[str]) -> tuple[int, float]:
    """Run a command; its exit code and seconds. Ctrl-C is the command's, which ends when its jobs have."""
    begun = time.monotonic()
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return process.wait(), time.monotonic() - begun


def main() -> int:
    """Say what is expected, and of a command that succeeds what it took; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", default="all", help="as Snakemake has it: a number, or all")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what is timed, with its own options")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if options.cores == "all" else int(options.cores)
    before = measure_cores(cores)
    print(expectation(cores, before), flush=True)
    if not options.command:
        return 0
    code, seconds = follow(options.command)
    if code == 0:
        print(outcome(cores, Speed.between(before, measure_cores(cores)), seconds), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
