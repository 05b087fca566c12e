"""CPU seconds of each command of the workflow beside an empty Python: `make bench-startup`.

Measured are the commands of a finished demo, in a copy of it, where training and fine-tuning find their results kept:
what they take is their start. All others do their work again.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.host import machine, versions
from benchmarks.measure import Contestant, Figure, Usages, interleave, spread
from benchmarks.tables import figure_table, table
from workflow.checkout import Checkout, check_out

ROOT = Path(__file__).parents[1]
DEMO = "results/demo-embedded"
EMPTY = "an empty Python"
PACKAGES = ("torch", "transformers", "numpy", "pandas", "matplotlib", "pyarrow")
COMMAND = re.compile(r"^ *(?:Shell command: )?(.*-m symbert --log \S+ (\S+) +(\S+).*)$", re.M)


def main() -> None:
    """Measure, and write the tables to a file and to the output."""
    options = _options()
    if not (ROOT / DEMO / "report/report.html").is_file():
        raise SystemExit(f"{ROOT / DEMO}: no finished demo; run make reproduce first")
    with tempfile.TemporaryDirectory() as folder:
        checkout = check_out(ROOT, Path(folder) / "symbert")
        shutil.copytree(ROOT / DEMO, checkout.directory / DEMO)
        os.chdir(checkout.directory)
        page = measure(commands(checkout), options.rounds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page)
    print(page)


def commands(checkout: Checkout) -> dict[str, str]:
    """A command of each kind, and each exhibit's, in the order of the jobs."""
    said = checkout.snakemake("--dry-run", "--forceall", "--printshellcmds").output
    found: dict[str, str] = {}
    for words, command, argument in COMMAND.findall(said):
        if command != "filter-part":  # whose part is deleted when it is done; bench-corpus measures it
            found.setdefault(argument if command == "exhibit" else command, words)
    return found


def measure(commands: dict[str, str], rounds: int) -> str:
    """The page of all figures."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ["PYTHONPATH"] = "src"
    lines = [
        machine(),
        versions(PACKAGES),
        f"interleaved rounds: {rounds}; every process fresh, of one thread; on a finished demo, whose training and "
        "fine-tuning are kept",
    ]
    empty = Contestant(EMPTY, [[[sys.executable, "-c", "pass"]]])
    contestants = [empty, *(Contestant(name, [[["bash", "-c", words]]]) for name, words in commands.items())]
    found = interleave(contestants, rounds, lambda: None)
    head = "\n".join(["# Figures of starting", "", *(f"* {line}" for line in lines), ""])
    return "\n".join([head, figure_table(figures(commands), found), seconds_table(found)])


def figures(commands: dict[str, str]) -> list[Figure[Usages]]:
    """What is promised: CPU seconds beside an empty Python, of exhibits those of the slowest."""
    promised = {
        "the slowest table": ([name for name in commands if name.startswith("table-")], 1.0),
        "the slowest figure": ([name for name in commands if name.startswith("figure-")], 1.0),
        "extraction": (["extract-checkpoint"], 1.0),
        "pre-training": (["pretrain-model"], 3.0),
        "fine-tuning": (["finetune"], 3.0),
    }
    return [Figure(name, "s", _slowest(names), at_most=target) for name, (names, target) in promised.items()]


def _slowest(names: list[str]) -> Callable[[Usages], float]:
    return lambda round: max(beside_empty(round, name) for name in names)


def beside_empty(round: Usages, name: str) -> float:
    """CPU seconds of a command more than an empty Python takes."""
    return round[name].cpu - round[EMPTY].cpu


def seconds_table(rounds: list[Usages]) -> str:
    """Median, range and peak memory of each command."""
    rows = []
    for name in rounds[0]:
        found = spread([beside_empty(round, name) if name != EMPTY else round[name].cpu for round in rounds])
        memory = max(round[name].memory for round in rounds)
        rows.append(f"| {name} | {found.median:.2f} | {found.low:.2f}–{found.high:.2f} | {memory:.0f} |")
    head = "| command | CPU s beside an empty Python | range over the rounds | peak MB |"
    return table(head, "|---|---:|---:|---:|", rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "results/bench-startup.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
