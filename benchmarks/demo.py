"""What a demo takes from nothing to its page: `make bench-demo`.

Each round is a whole demo in a fresh copy of the project. A round that has ended is kept in the work folder, and is not
run again.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic

from benchmarks.host import machine, versions
from benchmarks.measure import Figure
from benchmarks.tables import figure_table
from symbert.files import read_json, write_json
from workflow.checkout import check_out

ROOT = Path(__file__).parents[1]
PACKAGES = ("snakemake", "torch", "transformers", "numpy", "pyarrow", "pandas", "matplotlib")
TIMED = "timed.json"  # in the folder of a round that has ended: its seconds
FIGURES = [Figure("demo from nothing: wall time", "s", lambda seconds: seconds, at_most=300)]


def main() -> None:
    """Measure, and write the page to a file and to the output."""
    options = _options()
    cores = f"rounds: {options.rounds}; each in a fresh copy of the project, on {len(os.sched_getaffinity(0))} cores"
    lines = [machine(), versions(PACKAGES), cores]
    rounds = [run(options.work / f"round-{number}") for number in range(1, options.rounds + 1)]
    head = "\n".join(["# Figures of the demo", "", *(f"* {line}" for line in lines), ""])
    page = "\n".join([head, figure_table(FIGURES, rounds)])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page)
    print(page)


def run(folder: Path) -> float:
    """Seconds of the demo of a round, which is run where it has not ended yet."""
    if not (folder / TIMED).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        check_out(ROOT, folder)
        command = [sys.executable, "-m", "snakemake", "--cores", "all", "--directory", str(folder)]
        begun = monotonic()
        subprocess.run([*command, "--snakefile", str(folder / "Snakefile")], check=True)
        write_json(folder / TIMED, {"seconds": monotonic() - begun})
    return read_json(folder / TIMED, {"seconds": float}, "delete its folder")["seconds"]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("results/bench-demo"))
    parser.add_argument("--output", type=Path, default=Path("results/bench-demo.md"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
