"""What a demo takes from nothing to its page, in a fresh copy of the project each round: `make bench-demo`.

A round that has ended is kept in the work folder, and is not run again.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import monotonic

from benchmarks import harness
from benchmarks.harness import Figure
from workflow.checkout import check_out

PACKAGES = ("snakemake", "torch", "transformers", "numpy", "pyarrow", "pandas", "matplotlib")
FIGURE = Figure("demo from nothing: wall time", "s", lambda measured: measured["demo"], at_most=180)


def main() -> None:
    """Measure, and write the page."""
    options = harness.options_of("bench-demo", __doc__, rounds=3).parse_args()
    cores = f"rounds: {options.rounds}; each in a fresh copy of the project, on {len(os.sched_getaffinity(0))} cores"
    conditions = [harness.machine(), harness.versions(*PACKAGES), cores]
    folders = [options.work / f"round-{number}" for number in range(1, options.rounds + 1)]
    rounds = [{"demo": seconds_of(folder)} for folder in folders]
    tables = [harness.figure_table([FIGURE], rounds), rule_table(folders[-1])]
    harness.write_page(options.output, "the demo", conditions, tables)


def seconds_of(folder: Path) -> float:
    """Seconds of a demo, which is run where it has not ended yet."""
    timed = folder / "seconds"
    if not timed.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        check_out(Path(__file__).parents[1], folder)
        command = [sys.executable, "-m", "snakemake", "--cores", "all", "--directory", str(folder)]
        begun = monotonic()
        subprocess.run([*command, "--snakefile", str(folder / "Snakefile")], check=True)
        timed.write_text(str(monotonic() - begun))
    return float(timed.read_text())


def rule_table(folder: Path) -> str:
    """Jobs and seconds of each rule in a round, from Snakemake's record of each output."""
    jobs: dict[tuple[str, ...], float] = {}  # the longest time of a job's outputs, by rule and log
    for file in (file for file in (folder / ".snakemake/metadata").rglob("*") if file.is_file()):
        record = json.loads(file.read_text())
        job = (record["rule"], *record["log"])
        jobs[job] = max(jobs.get(job, 0), record["endtime"] - record["starttime"])
    counts, seconds = Counter(rule for rule, *_ in jobs), Counter()
    for (rule, *_), taken in jobs.items():
        seconds[rule] += taken
    rows = [f"| {rule} | {counts[rule]} | {taken:.0f} |" for rule, taken in seconds.most_common()]
    return harness.table("| rule, in the last round | jobs | seconds together |", "|---|---:|---:|", rows)


if __name__ == "__main__":
    main()
