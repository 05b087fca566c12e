"""What Snakemake needs to know all jobs of an experiment, beside smaller ones: `make bench-graph`.

Measured is a whole dry run in a fresh process: imports, the configuration, the rules, the graph of all jobs, and a
message about each, which is written nowhere.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import Contestant, Figure
from workflow.checkout import check_out

PAPER, MANY = "paper", "paper, 10,000 parts"
HUB = ("scale=paper", "source=hub")
EXPERIMENTS = {  # what each changes in the configuration
    "demo": ["scale=demo"],
    PAPER: [*HUB],
    MANY: [*HUB, "corpus={parts: 10000}"],
}
FIGURES = [
    Figure(f"{PAPER}: wall time", "s", lambda measured: measured[PAPER].wall, at_most=15),
    Figure(f"{PAPER}: CPU time", "s", lambda measured: measured[PAPER].cpu),
    Figure(f"{PAPER}: peak memory", "MB", lambda measured: measured[PAPER].memory, at_most=400),
    Figure(f"{MANY}: wall time", "s", lambda measured: measured[MANY].wall, at_most=60),
]


def main() -> None:
    """Measure in a copy of the project without results, and write the page."""
    options = harness.options_of("bench-graph", __doc__, rounds=3, work=False).parse_args()
    conditions = [
        harness.machine(),
        harness.versions("snakemake"),
        f"interleaved rounds: {options.rounds}; every process fresh; dry runs in a copy of the project without results",
    ]
    with tempfile.TemporaryDirectory() as folder:
        directory = check_out(Path(__file__).parents[1], Path(folder) / "symbert").directory
        rounds = harness.interleave(contestants(directory), options.rounds, lambda: None)
    tables = [harness.figure_table(FIGURES, rounds), harness.usage_table(rounds)]
    harness.write_page(options.output, "the graph of jobs", conditions, tables)


def contestants(directory: Path) -> list[Contestant]:
    """A dry run of each experiment."""
    words = ["--cores", "2", "--dry-run", "--quiet", "all", "--snakefile", str(directory / "Snakefile")]
    command = [sys.executable, "-m", "snakemake", *words, "--directory", str(directory), "--config"]
    return [Contestant(name, [[*command, *changes]]) for name, changes in EXPERIMENTS.items()]


if __name__ == "__main__":
    main()
