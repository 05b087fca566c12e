"""What a demo takes from nothing to its page: `make bench-demo`.

Each round is a whole demo in a fresh copy of the project. A round that has ended is kept in the work folder, and is not
run again.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from pathlib import Path
from time import monotonic

from benchmarks.host import machine, versions
from benchmarks.measure import Figure
from benchmarks.tables import figure_table, table
from symbert.files import read_json, write_json
from workflow.checkout import check_out

ROOT = Path(__file__).parents[1]
PACKAGES = ("snakemake", "torch", "transformers", "numpy", "pyarrow", "pandas", "matplotlib")
TIMED = "timed.json"  # in the folder of a round that has ended: its seconds
TIME = re.compile(r"^\[(\w{3} \w{3} .+ \d{4})\]$", re.MULTILINE)  # before all that Snakemake's log tells
STARTED = re.compile(r"^(?:local)?rule (?P<rule>\w+):$.*?^    jobid: (?P<job>\d+)$", re.MULTILINE | re.DOTALL)
WILDCARDS = re.compile(r"^    wildcards: (.+)$", re.MULTILINE)
ENDED = re.compile(r"^Finished jobid: (\d+) ", re.MULTILINE)


@dataclass(frozen=True)
class Ran:
    """A job of a demo; whole seconds after the first one's start."""

    start: int
    end: int
    rule: str
    wildcards: str  # as in `size=tiny seed=1`


@dataclass(frozen=True)
class Demo:
    """A round."""

    seconds: float  # from the start of Snakemake to its end
    jobs: list[Ran]

    @property
    def core_seconds(self) -> float:
        """Of all jobs together, each on one core."""
        return sum(job.end - job.start for job in self.jobs)


FIGURES: list[Figure[Demo]] = [
    Figure("demo from nothing, two cores: wall time", "s", lambda demo: demo.seconds, at_most=300),
    Figure("seconds of its jobs together", "s", lambda demo: demo.core_seconds),
]


def main() -> None:
    """Measure, and write the page to a file and to the output, and the record of the round of median time."""
    options = _options()
    lines = [machine(), versions(PACKAGES), f"rounds: {options.rounds}; each in a fresh copy of the project"]
    demos = [run(options.work / f"round-{number}") for number in range(1, options.rounds + 1)]
    middle = sorted(demos, key=lambda demo: demo.seconds)[len(demos) // 2]
    head = "\n".join(["# Figures of the demo", "", *(f"* {line}" for line in lines), ""])
    rules = table("| rule, in the round of median time | jobs | seconds together |", "|---|---:|---:|", by_rule(middle))
    page = "\n".join([head, figure_table(FIGURES, demos), rules])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page)
    write_record(middle, options.record)
    print(page)


def run(folder: Path) -> Demo:
    """The demo of a round, which is run where it has not ended yet."""
    if not (folder / TIMED).is_file():
        cores = len(os.sched_getaffinity(0))
        shutil.rmtree(folder, ignore_errors=True)
        check_out(ROOT, folder)
        command = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--directory", str(folder)]
        begun = monotonic()
        subprocess.run([*command, "--snakefile", str(folder / "Snakefile")], check=True)
        write_json(folder / TIMED, {"seconds": monotonic() - begun})
    seconds = read_json(folder / TIMED, {"seconds": float}, "delete its folder")["seconds"]
    (log,) = (folder / ".snakemake/log").glob("*.log")
    return Demo(seconds, jobs_of(log.read_text(encoding="utf-8")))


def jobs_of(log: str) -> list[Ran]:
    """The jobs that ended by a log of Snakemake's, but for `all`, in the order of start and end."""
    begun, jobs = {}, []
    _, *told = TIME.split(log)
    first, *_ = times = [datetime.strptime(time, "%a %b %d %H:%M:%S %Y") for time in told[::2]]
    for time, block in zip(times, told[1::2], strict=True):
        second = int((time - first).total_seconds())
        if start := STARTED.search(block):
            wildcards = WILDCARDS.search(block)
            begun[start["job"]] = second, start["rule"], wildcards[1].replace(", ", " ") if wildcards else ""
        elif end := ENDED.search(block):
            started, *names = begun[end[1]]
            jobs.append(Ran(started, second, *names))
    return sorted((job for job in jobs if job.rule != "all"), key=astuple)


def by_rule(demo: Demo) -> list[str]:
    """Rows of a table: of each rule how many jobs it has and the seconds that they took together, most first.

    Rules that took less than a hundredth of all seconds share the last row.
    """
    count = Counter(job.rule for job in demo.jobs)
    seconds = Counter({rule: sum(job.end - job.start for job in demo.jobs if job.rule == rule) for rule in count})
    large = [rule for rule, taken in seconds.most_common() if 100 * taken >= demo.core_seconds]
    small = count.keys() - large
    rows = [f"| {rule} | {count[rule]} | {seconds[rule]} |" for rule in large]
    rest = (sum(each[rule] for rule in small) for each in (count, seconds))
    return [*rows, "| {} others | {} | {} |".format(len(small), *rest)]


def write_record(demo: Demo, path: Path) -> None:
    """A row per job of a demo."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([[field.name for field in fields(Ran)], *map(astuple, demo.jobs)])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("results/bench-demo"))
    parser.add_argument("--output", type=Path, default=Path("results/bench-demo.md"))
    parser.add_argument("--record", type=Path, default=Path("results/bench-demo.csv"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
