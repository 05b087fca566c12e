"""An exhibit written from the data that a test gives."""

from pathlib import Path
from typing import Any

from symbert.report import report
from symbert.report.data import Data
from symbert.report.exhibits import EXHIBITS


def write_exhibit(name: str, output: list[Path], **given: Any) -> None:
    """Write an exhibit, by its name on the page; of one that is drawn per size, of runs of one size."""
    report.write_exhibit(EXHIBITS[name], Data(EXHIBITS[name].suite, **given), output)
