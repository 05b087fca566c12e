"""The committed measures of docs/evidence/predictions: its page follows from them."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from report.predictions import SIZE, TABLE, leaving, read_measures, tables_of
from symbert.report.tables.predictions import predictions_of

OPERATORS = 14


@pytest.fixture
def measures(root):
    return read_measures(root / "docs/evidence/predictions/measures.csv")


def test_the_tables_of_the_page_come_out_of_the_measures(root, measures):
    page = (root / "docs/evidence/predictions/README.md").read_text(encoding="utf-8")
    assert TABLE.findall(page) == tables_of(measures)


def test_what_the_page_concludes_follows_from_its_tables(measures):
    """Its section "In short" is written by hand; these are the rows that it speaks of."""
    tested = {
        (row["measure"], row["predicts"]): (float(row["holm_p_value"]), row["high"])
        for row in predictions_of(SIZE, measures)
        if row["holm_p_value"]
    }
    assert {pair for pair, (p_value, _) in tested.items() if p_value < 0.05} == {
        ("partner", "plateau exit"),
        ("fuzzy", "plateau exit"),
    }
    assert len(tested) == 13 and tested["partner", "GLUE score"][0] == pytest.approx(0.055, abs=5e-4)
    p_value, high = tested["plateau exit", "GLUE score"]
    assert high < 0 and p_value == pytest.approx(0.157, abs=5e-4)
    stay = {*measures.index.get_level_values(0)} - {*leaving(measures).index.get_level_values(0)}
    assert stay == {"shared", "shared-wide", "symmetric-wide"}
    lowest = measures["GLUE score"].groupby(level=0).mean().nsmallest(3)
    assert {*lowest.index} == stay
    corrected = [row["holm_p_value"] for row in predictions_of(SIZE, leaving(measures)) if row["holm_p_value"]]
    assert {float(p_value) for p_value in corrected} == {1.0}


def test_its_correlations_are_scipys_over_medians(measures):
    medians = measures.groupby(level="attention").median()
    assert len(medians) == OPERATORS
    for row in predictions_of(SIZE, measures):
        pair = medians[[row["measure"], row["predicts"]]].replace(np.inf, 1e9).dropna()
        if row["correlation"] is None:
            assert pair.nunique().min() == 1
        else:
            assert row["correlation"] == pytest.approx(spearmanr(*pair.to_numpy().T).statistic, abs=1e-9)
