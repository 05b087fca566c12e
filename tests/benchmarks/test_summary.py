"""The table of all figures: it is that of the pages, and what is missed comes first."""

from pathlib import Path

import pytest

from benchmarks.measure import Figure
from benchmarks.summary import PAGES, summary, write_summary
from benchmarks.tables import figure_table

EVIDENCE = Path(__file__).parents[2] / "docs/evidence"
LONGEST = 60  # lines of a page that is read at one look


@pytest.fixture
def pages(tmp_path) -> Path:
    """Pages of one benchmark with three figures, of which the second is missed and the third has no target."""
    figures = [
        Figure("speed", "×", lambda round: round, at_least=2),
        Figure("memory", "MB", lambda round: 100 * round, at_most=250),
        Figure("rest", "s", lambda round: round),
    ]
    for page in PAGES:
        (tmp_path / page).write_text("# Figures\n")
    (tmp_path / "bench-graph.md").write_text(f"# Figures\n\n{figure_table(figures, [3.0, 2.5, 4.0])}\nwords\n")
    return tmp_path


def test_figures_with_targets_are_listed_and_what_is_missed_first(pages):
    assert summary(pages).splitlines()[2:] == [
        "| [jobs](bench-graph.md) | memory | ≤ 250 MB | 300.00 MB | **no** |",
        "| [jobs](bench-graph.md) | speed | ≥ 2 × | 3.00 × | yes |",
    ]


def test_only_the_table_of_the_page_is_replaced(pages):
    (pages / "README.md").write_text(f"# Evidence\n\nwords\n\n{summary(pages).replace('300.00', '1.00')}\nmore words\n")
    write_summary(pages)
    assert (pages / "README.md").read_text() == f"# Evidence\n\nwords\n\n{summary(pages)}\nmore words\n"


def test_the_committed_page_has_the_figures_of_the_committed_pages():
    page = (EVIDENCE / "README.md").read_text(encoding="utf-8")
    assert summary(EVIDENCE) in page, "run python -m benchmarks.summary"
    assert len(page.splitlines()) <= LONGEST
    assert {file.name for file in EVIDENCE.glob("bench-*.md")} == {*PAGES}
