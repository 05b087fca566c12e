"""The page of runs together, with the CPU in the place of a GPU and in a tiny shape."""

import itertools
import sys

import pytest

from benchmarks import pretrain, together


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Makes the page of two runs."""
    monkeypatch.setattr(pretrain, "VALIDATION_ROWS", 8)
    for name, value in {"ROWS": 32, "UNTIMED": 1, "SETTINGS": (together.Setting("tiny", 16, 300, 4, 10),)}.items():
        monkeypatch.setattr(together, name, value)
    words = ["together", "--sizes", "tiny", "--runs", "2", "--rounds", "1", "--steps", "1", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", [*words, "--output", str(tmp_path / "page.md")])

    def make() -> str:
        together.main()
        return (tmp_path / "page.md").read_text()

    return make


def test_the_page_has_the_ratio_of_the_times_that_it_shows(page):
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page().splitlines() if line[0:1] == "|"]
    times = {row[0]: float(row[1]) for row in rows if row[0].startswith("tiny, 2 runs: ")}
    (ratio,) = (float(row[1].removesuffix(" ×")) for row in rows if row[0].startswith("tiny: 2 runs, "))
    assert ratio == pytest.approx(
        times["tiny, 2 runs: one after the other"] / times["tiny, 2 runs: together"], rel=0.02
    )


def test_runs_that_learn_something_else_together_are_not_timed(page, monkeypatch):
    learned = itertools.count(1)  # no two steps have one rate
    monkeypatch.setattr(together.Trainer, "learning_rate", lambda trainer, step: 1e-3 * next(learned))
    with pytest.raises(SystemExit, match="losses of 2 runs differ"):
        page()
