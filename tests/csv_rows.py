"""Rows of a csv file."""

import csv
from pathlib import Path


def read(path: Path) -> list[dict[str, str]]:
    """A dict per row, by the names of columns."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_shown(path: Path, decimals: int = 2, **others: int) -> list[dict[str, str]]:
    """As `read`, with fractions as readers see them: with so many decimals, in some columns with another number."""

    def shown(column: str, cell: str) -> str:
        try:
            value = float(cell)
        except ValueError:
            return cell
        return cell if cell.lstrip("-").isdigit() else f"{value:.{others.get(column, decimals)}f}"

    return [{column: shown(column, cell) for column, cell in row.items()} for row in read(path)]
