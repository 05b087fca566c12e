"""Rows of a csv file."""

import csv
from pathlib import Path


def read(path: Path) -> list[dict[str, str]]:
    """A dict per row, by the names of columns."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_shown(path: Path) -> list[dict[str, str]]:
    """As `read`, with fractions as readers see them: with two decimals."""
    return [{column: _shown(cell) for column, cell in row.items()} for row in read(path)]


def _shown(cell: str) -> str:
    try:
        return cell if cell.lstrip("-").isdigit() else f"{float(cell):.2f}"
    except ValueError:
        return cell
