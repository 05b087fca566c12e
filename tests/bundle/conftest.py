from pathlib import Path

import pytest

from bundle import small
from symbert.bundle.results import Results


@pytest.fixture
def folder(tmp_path) -> Path:
    """The results of a small experiment."""
    return small.make(tmp_path / "results/small-mirror")


@pytest.fixture
def results(folder) -> Results:
    """The same, read."""
    return Results([folder])
