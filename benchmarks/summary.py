"""The table that docs/evidence/README.md begins with: every figure that has a target, from the pages of the benchmarks.

python -m benchmarks.summary [FOLDER]
"""

import argparse
import re
from pathlib import Path

from benchmarks.tables import table
from symbert.files import write_text

PAGES = {  # by the page's name, what its figures are of
    "bench-corpus.md": "corpus",
    "bench-pretrain.md": "pre-training",
    "bench-glue.md": "GLUE",
    "bench-graph.md": "jobs",
    "bench-startup.md": "start",
}
# A row of `figure_table`: name, median, range, target, verdict.
FIGURE = re.compile(r"^\| (.+) \| (.+) \| .+ \| ([≥≤] .+) \| (met|\*\*missed\*\*) \|$", re.MULTILINE)
HEAD, RULE = "| | figure | target | measured | met |", "|---|---|---:|---:|---|"


def summary(folder: Path) -> str:
    """Markdown: a row per figure with a target, those that are missed first."""
    rows = [
        (
            verdict != "met",
            f"| [{words}]({page}) | {name} | {target} | {median} | {'yes' if verdict == 'met' else '**no**'} |",
        )
        for page, words in PAGES.items()
        for name, median, target, verdict in FIGURE.findall((folder / page).read_text(encoding="utf-8"))
    ]
    return table(HEAD, RULE, [row for missed in (True, False) for is_missed, row in rows if is_missed is missed])


def write_summary(folder: Path) -> None:
    """Replace the first table of the folder's README.md."""
    page = folder / "README.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(HEAD)
    write_text(page, before + summary(folder) + rest[rest.index("\n\n") + 1 :])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=Path, default=Path("docs/evidence"))
    write_summary(options.parse_args().folder)
