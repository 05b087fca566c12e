"""The committed measures of docs/findings/predictions: the correlations of its page follow from them."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

OPERATORS, LEAVING = 14, 11


@pytest.fixture
def medians(root):
    """By operator, over seeds."""
    measures = pd.read_csv(root / "docs/findings/predictions/measures.csv", index_col=["attention", "seed"])
    return measures.groupby(level="attention").median()


@pytest.fixture
def tables(root):
    """The rows of the page's two tables: of all operators, and of those that leave the plateau."""
    page = (root / "docs/findings/predictions/README.md").read_text(encoding="utf-8").replace("−", "-")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| tiny")]
    return [[row for row in rows if row[3] == str(count)] for count in (OPERATORS, LEAVING)]


def test_the_correlations_of_the_page_are_scipys_over_medians(tables, medians):
    leaving = medians[medians["plateau exit"] < math.inf]
    assert (len(medians), len(leaving)) == (OPERATORS, LEAVING)
    assert {*medians.index} - {*leaving.index} == {"shared", "shared-wide", "symmetric-wide"}
    for rows, measures in zip(tables, (medians, leaving), strict=True):
        assert len(rows) == 19
        for _, measure, predicts, _, correlation, *_ in rows:
            pair = measures[[measure, predicts]].replace(np.inf, 1e9)
            if correlation == "–":
                assert pair.nunique().min() == 1
            else:
                expected = spearmanr(*pair.to_numpy().T).statistic
                assert float(correlation) == pytest.approx(expected, abs=0.0051)


def test_the_page_concludes_by_holms_correction(tables):
    """Its section "In short" is written by hand; these are the rows that it speaks of."""
    tested = {(row[1], row[2]): float(row[-1]) for row in tables[0] if row[-1] != "–"}
    assert len(tested) == 13
    assert {pair for pair, p in tested.items() if p < 0.05} == {("partner", "plateau exit"), ("fuzzy", "plateau exit")}
    assert {float(row[-1]) for row in tables[1] if row[-1] != "–"} == {1.0}
