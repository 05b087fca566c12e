"""What Snakemake needs to know all jobs of an experiment, beside smaller ones: `make bench-graph`.

Measured is a whole dry run in a fresh process: imports, reading the configuration and the rules, the graph of all jobs,
and a message about each, which is written nowhere.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.host import machine, versions
from benchmarks.measure import Contestant, Figure, Usages, interleave
from benchmarks.tables import figure_table, table, usage_table
from symbert.operators import OPERATORS
from workflow.checkout import Checkout, check_out

ROOT = Path(__file__).parents[1]
PAPER, EMPTY, MANY = "paper", "an empty Snakefile", "paper, 10,000 parts"
EXPERIMENTS = {  # what each changes in the configuration
    "demo": ["scale=demo"],
    PAPER: ["scale=paper", "source=hub"],
    "paper, all operators, 3 pre-training seeds": [
        *("scale=paper", "source=hub"),
        f"sweep={{attention: [{', '.join(OPERATORS)}], pretrain_seeds: [1, 2, 3]}}",
    ],
    "paper, 1,000 parts": ["scale=paper", "source=hub", "corpus={parts: 1000}"],
    MANY: ["scale=paper", "source=hub", "corpus={parts: 10000}"],
}
FIGURES: list[Figure[Usages]] = [
    Figure(f"{PAPER}: wall time", "s", lambda round: round[PAPER].wall, at_most=15),
    Figure(f"{PAPER}: CPU time", "s", lambda round: round[PAPER].cpu),
    Figure(f"{PAPER}: CPU time beside {EMPTY}", "s", lambda round: round[PAPER].cpu - round[EMPTY].cpu),
    Figure(f"{PAPER}: peak memory", "MB", lambda round: round[PAPER].memory, at_most=400),
    Figure(f"{MANY}: wall time", "s", lambda round: round[MANY].wall, at_most=60),
]


def main() -> None:
    """Measure, and write the tables to a file and to the output."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        page = measure(check_out(ROOT, Path(folder) / "symbert"), options.rounds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page)
    print(page)


def measure(checkout: Checkout, rounds: int) -> str:
    """The page of all figures, of dry runs in a checkout without results."""
    lines = [
        machine(),
        versions(["snakemake"]),
        f"interleaved rounds: {rounds}; every process fresh; dry runs in a copy of the project without results",
    ]
    jobs = count_jobs(checkout)
    found = interleave(contestants(checkout.directory), rounds, lambda: None)
    head = "\n".join(["# Figures of the graph of jobs", "", *(f"* {line}" for line in lines), ""])
    return "\n".join([head, figure_table(FIGURES, found), usage_table({}, found), jobs])


def contestants(directory: Path) -> list[Contestant]:
    """A dry run of each experiment, and of no rules at all."""
    empty = directory / "empty/Snakefile"
    empty.parent.mkdir(exist_ok=True)
    empty.touch()
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--dry-run", "--quiet", "all", "--snakefile"]
    none = Contestant(EMPTY, [[[*command, str(empty), "--directory", str(empty.parent)]]])
    ours = [*command, str(directory / "Snakefile"), "--directory", str(directory), "--config"]
    return [none, *(Contestant(name, [[[*ours, *changes]]]) for name, changes in EXPERIMENTS.items())]


def count_jobs(checkout: Checkout) -> str:
    """How many jobs each experiment has, the most frequent rules with theirs."""
    rows = []
    for name, changes in EXPERIMENTS.items():
        jobs = checkout.snakemake("--dry-run", "--quiet", "rules", "--config", *changes).jobs
        most = sorted(jobs.items(), key=lambda job: -job[1])[:5]
        rows.append(f"| {name} | {sum(jobs.values()):,} | {', '.join(f'{rule} {count:,}' for rule, count in most)} |")
    return table("| experiment | jobs | most |", "|---|---:|---|", rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("results/bench-graph.md"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
