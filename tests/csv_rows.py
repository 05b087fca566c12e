"""Rows of a csv file."""

import csv
from pathlib import Path


def read(path: Path) -> list[dict[str, str]]:
    """A dict per row, by the names of columns."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
