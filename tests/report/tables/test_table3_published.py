"""Table 3 as the paper prints it."""

from csv_rows import read_shown
from report.written import write_exhibit
from symbert.report import published


def test_the_published_table_is_the_papers_and_says_so(outputs):
    write_exhibit("table-table3_published", outputs)
    rows = read_shown(outputs[0])
    assert [float(value) for value in list(rows[-1].values())[1:]] == list(published.SCORES["base", "pairwise"])
    for path in outputs[1:]:
        assert "The paper's own numbers, not this experiment's" in path.read_text()
    assert "**79.36**" in outputs[1].read_text() and r"\textbf{73.38}" in outputs[2].read_text()
