"""Time and memory of each stage on inputs of growing size: `make bench-scaling`.

`scaled_stages` says what is measured, `scaled` writes the inputs, `growth` fits the record and shows it. Like
`measure`, this module imports nothing large before all is measured.
"""

import argparse
import csv
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.host import machine, versions
from benchmarks.measure import Contestant, Usages, interleave
from benchmarks.scaled_stages import GROWING, STAGES, Stage

ROOT = Path(__file__).parents[1]
PACKAGES = ("numpy", "pyarrow", "marisa-trie", "tokenizers", "tokie", "torch", "pandas", "snakemake")
SIZES = {"1/16": 1, "1": 16, "4": 64, "16": 256}  # in sixteenths; the smallest shows what starting takes
COLUMNS = ("stage", "items", "count", "round", "cpu_seconds", "peak_mb")


def measure(stages: Sequence[Stage], work: Path, rounds: int, record: Path) -> None:
    """Measure one stage after the other, and add what each took to the record when it is done."""
    for stage in stages:
        folder = work / stage.name.replace(" ", "-")
        sizes = {size: stage.count * sixteenths for size, sixteenths in SIZES.items()}
        write_inputs(stage, folder, list(sizes.values()))
        present = [
            Contestant(f"{stage.name}: {size} ×", [[stage.command(folder / str(count))]])
            for size, count in sizes.items()
        ]
        outputs = [folder / str(count) / "output" for count in sizes.values()]
        found = interleave(present, rounds, lambda outputs=outputs: empty(outputs))
        with open(record, "a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows(stage, list(sizes.values()), found))
        shutil.rmtree(folder)


def write_inputs(stage: Stage, folder: Path, counts: list[int]) -> None:
    """The inputs of all sizes, in a process of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    words = [stage.inputs, str(folder), *map(str, counts)]
    subprocess.run([sys.executable, "-m", "benchmarks.scaled", *words], check=True)


def empty(folders: Sequence[Path]) -> None:
    """Nothing of an earlier round is left."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()


def rows(stage: Stage, counts: Sequence[int], rounds: Sequence[Usages]) -> list[tuple]:
    """COLUMNS of each size in each round; the usages of a round are in the order of the sizes."""
    return [
        (stage.name, stage.items, count, number, f"{usage.cpu:.3f}", f"{usage.memory:.1f}")
        for number, usages in enumerate(rounds, start=1)
        for count, usage in zip(counts, usages.values(), strict=True)
    ]


def main() -> None:
    """Measure, and write record, picture and page."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    record = options.output / "scaling.csv"
    chosen = [stage for stage in STAGES if stage.name in options.stages]
    if not options.page_only:
        conditions = [
            machine(),
            versions(PACKAGES),
            f"interleaved rounds of each stage: {options.rounds}; every process fresh, of one thread",
        ]
        record.write_text("".join(f"# {line}\n" for line in conditions) + ",".join(COLUMNS) + "\n")
        measure(chosen, options.work.resolve(), options.rounds, record)
    from benchmarks.growth import write_page

    print(write_page(options.output, GROWING))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [stage.name for stage in STAGES]
    parser.add_argument("--stages", nargs="+", choices=names, default=names, metavar="STAGE", help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page-only", action="store_true", help="make picture and page of the record again")
    parser.add_argument("--work", type=Path, default=ROOT / "results/bench-scaling", help="folder for a while")
    parser.add_argument("--output", type=Path, default=ROOT / "results/scaling")
    return parser.parse_args()


if __name__ == "__main__":
    main()
