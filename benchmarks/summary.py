"""The table that docs/evidence/README.md begins with: every figure that has a target, from the pages of the benchmarks.

Figures of a page that are met, have one target and names that differ in one word share a row, with their range.

python -m benchmarks.summary [FOLDER]
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables import table
from symbert.files import write_text

PAGES = {  # by the page's name, what its figures are of
    "bench-corpus.md": "corpus",
    "bench-pretrain.md": "pre-training",
    "bench-glue.md": "GLUE",
    "bench-graph.md": "jobs",
    "bench-demo.md": "demo",
    "bench-startup.md": "start",
    "scaling/README.md": "growth",
}
# A row of `figure_table`: name, median, range, target, verdict.
FIGURE = re.compile(r"^\| (.+) \| (.+) \| .+ \| ([≥≤] .+) \| (met|\*\*missed\*\*) \|$", re.MULTILINE)
HEAD, RULE = "| | figure | target | measured | met |", "|---|---|---:|---:|---|"
WORD = re.compile(r"(, |: )")  # between the words of a name


@dataclass
class Row:
    """Figures of a page with one target and verdict, whose names differ in one word at most."""

    page: str
    target: str
    met: bool
    names: list[list[str]]  # each in words
    measured: list[str]

    def takes(self, other: "Row") -> bool:
        """Whether a figure shares this row."""
        if (self.page, self.target, self.met) != (other.page, other.target, other.met) or not self.met:
            return False
        together = [*self.names, *other.names]
        return len({*map(len, together)}) == 1 and sum(len({*words}) > 1 for words in zip(*together, strict=True)) == 1

    def __str__(self) -> str:
        name = "".join(" · ".join(dict.fromkeys(words)) for words in zip(*self.names, strict=True))
        low, high = (choose(self.measured, key=number_in) for choose in (min, max))
        measured = low if low == high else f"{low.split()[0]}–{high}"
        verdict = "yes" if self.met else "**no**"
        return f"| [{PAGES[self.page]}]({self.page}) | {name} | {self.target} | {measured} | {verdict} |"


def number_in(measured: str) -> float:
    """The number of a figure, which a unit may follow."""
    return float(measured.split()[0].replace(",", ""))


def summary(folder: Path) -> str:
    """Markdown: a row per figure with a target, or per several alike that are met; those that are missed first."""
    rows: list[Row] = []
    for page in PAGES:
        for name, median, target, verdict in FIGURE.findall((folder / page).read_text(encoding="utf-8")):
            figure = Row(page, target, verdict == "met", [WORD.split(name)], [median])
            if row := next((row for row in rows if row.takes(figure)), None):
                row.names += figure.names
                row.measured += figure.measured
            else:
                rows.append(figure)
    return table(HEAD, RULE, [*map(str, sorted(rows, key=lambda row: row.met))])


def write_summary(folder: Path) -> None:
    """Replace the first table of the folder's README.md."""
    page = folder / "README.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(HEAD)
    write_text(page, before + summary(folder) + rest[rest.index("\n\n") + 1 :])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=Path, default=Path("docs/evidence"))
    write_summary(options.parse_args().folder)
