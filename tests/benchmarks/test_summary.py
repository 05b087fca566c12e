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
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text("# Figures\n")
    (tmp_path / "bench-graph.md").write_text(f"# Figures\n\n{figure_table(figures, [3.0, 2.5, 4.0])}\nwords\n")
    return tmp_path


def test_figures_with_targets_are_listed_and_what_is_missed_first(pages):
    assert summary(pages).splitlines()[2:] == [
        "| [jobs](bench-graph.md) | memory | ≤ 250 MB | 300.00 MB | **no** |",
        "| [jobs](bench-graph.md) | speed | ≥ 2 × | 3.00 × | yes |",
    ]


def alike(low, middle, high, target=2.0, name="small: tokens/s, {}, faithful"):
    """Three figures with names that differ in one word."""
    values = {"original": low, "symmetric": middle, "pairwise": high}
    return [
        Figure(name.format(word), "×", lambda _, value=value: value, at_least=target) for word, value in values.items()
    ]


def rows_of(pages, figures) -> list[list[str]]:
    """Name, target and measured of each row of the summary."""
    (pages / "bench-graph.md").write_text(f"# Figures\n\n{figure_table(figures, [0])}\n")
    return [[cell.strip() for cell in row.split("|")[2:5]] for row in summary(pages).splitlines()[2:]]


def test_figures_that_are_met_and_differ_in_one_word_share_a_row_with_their_range(pages):
    together = ["small: tokens/s, original · symmetric · pairwise, faithful", "≥ 2 ×", "2.50–10.00 ×"]
    assert rows_of(pages, alike(10, 2.5, 3)) == [together]
    other = alike(4, 4, 4, target=3)
    assert rows_of(pages, [*alike(10, 2.5, 3), *other]) == [
        together,
        ["small: tokens/s, original · symmetric · pairwise, faithful", "≥ 3 ×", "4.00 ×"],
    ]


def test_a_missed_figure_has_a_row_of_its_own(pages):
    assert rows_of(pages, alike(1, 3, 1.5)) == [
        ["small: tokens/s, original, faithful", "≥ 2 ×", "1.00 ×"],
        ["small: tokens/s, pairwise, faithful", "≥ 2 ×", "1.50 ×"],
        ["small: tokens/s, symmetric, faithful", "≥ 2 ×", "3.00 ×"],
    ]


def test_figures_that_differ_in_two_words_are_not_one_row(pages):
    two = [*alike(3, 4, 5)[:2], *alike(6, 7, 8, name="base: tokens/s, {}, faithful")[2:]]
    names = ["small: tokens/s, original · symmetric, faithful", "base: tokens/s, pairwise, faithful"]
    assert [row[0] for row in rows_of(pages, two)] == names


def test_only_the_table_of_the_page_is_replaced(pages):
    (pages / "README.md").write_text(f"# Evidence\n\nwords\n\n{summary(pages).replace('300.00', '1.00')}\nmore words\n")
    write_summary(pages)
    assert (pages / "README.md").read_text() == f"# Evidence\n\nwords\n\n{summary(pages)}\nmore words\n"


def test_the_committed_page_has_the_figures_of_the_committed_pages():
    page = (EVIDENCE / "README.md").read_text(encoding="utf-8")
    assert summary(EVIDENCE) in page, "run python -m benchmarks.summary"
    assert len(page.splitlines()) <= LONGEST
    assert {file.name for file in EVIDENCE.glob("bench-*.md")} == {page for page in PAGES if page.startswith("bench-")}
