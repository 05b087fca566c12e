"""What a demo takes from nothing to its page, in a fresh copy of the project each round: `make bench-demo`.

A round that has ended is kept in the work folder, and is not run again.
"""

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from time import monotonic

from benchmarks import harness
from benchmarks.harness import Figure, Round
from workflow.checkout import check_out

PACKAGES = ("snakemake", "torch", "transformers", "numpy", "pyarrow", "pandas", "matplotlib")
WALL = "demo from nothing: wall time"
FIGURES = [
    Figure(WALL, "s", lambda measured: measured[WALL], at_most=180),
    Figure("CPU seconds of all its processes", "s", lambda measured: sum(map(sum, measured["commands"].values()))),
]
# Python runs it at the start of each process of the round: a line with its CPU seconds and its command, at its end.
NOTE = """import atexit, os, sys, time
def note():
    package = os.path.basename(os.path.dirname(sys.argv[0]))
    words = [word for word in sys.argv[1:] if not word.startswith("-") and "/" not in word]
    with open({file!r}, "a") as file:
        print(time.process_time(), words[0] if package == "symbert" else package, file=file)
atexit.register(note)
"""


def main() -> None:
    """Measure, and write the page."""
    options = harness.options_of("bench-demo", __doc__, rounds=3).parse_args()
    cores = f"rounds: {options.rounds}; each in a fresh copy of the project, on {len(os.sched_getaffinity(0))} cores"
    conditions = [harness.machine(), harness.versions(*PACKAGES), cores]
    rounds = [measure(options.work / f"round-{number}") for number in range(1, options.rounds + 1)]
    tables = [harness.figure_table(FIGURES, rounds), command_table(rounds)]
    harness.write_page(options.output, "the demo", conditions, tables)


def measure(folder: Path) -> Round:
    """Wall seconds of a demo, run where it has not ended yet, and the CPU seconds of its processes by command."""
    timed, noted = folder / "seconds", folder / "commands"
    if not timed.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        check_out(Path(__file__).parents[1], folder)
        (folder / "note").mkdir()
        (folder / "note/sitecustomize.py").write_text(NOTE.format(file=str(noted.resolve())))
        environment = {**os.environ, "PYTHONPATH": str((folder / "note").resolve())}
        command = [sys.executable, "-m", "snakemake", "--cores", "all", "--directory", str(folder)]
        begun = monotonic()
        subprocess.run([*command, "--snakefile", str(folder / "Snakefile")], check=True, env=environment)
        timed.write_text(str(monotonic() - begun))
    commands = defaultdict(list)
    for line in noted.read_text().splitlines():
        seconds, name = line.split()
        commands[name].append(float(seconds))
    return {WALL: float(timed.read_text()), "commands": commands}


def command_table(rounds: list[Round]) -> str:
    """CPU seconds by command of symbert, and of Snakemake itself: medians over the rounds."""
    counts = {name: len(seconds) for measured in rounds for name, seconds in measured["commands"].items()}
    sums = {name: median(sum(measured["commands"].get(name, [])) for measured in rounds) for name in counts}
    slowest = sorted(sums, key=sums.__getitem__, reverse=True)
    rows = [f"| {name} | {counts[name]} | {sums[name]:.1f} |" for name in slowest]
    return harness.table("| command | processes | CPU s |", "|---|---:|---:|", rows)


if __name__ == "__main__":
    main()
