"""The committed measures of docs/findings/predictions.md: the correlations of its page follow from them."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

pytestmark = pytest.mark.study


def test_the_page_follows_from_its_measures(root):
    folder = root / "docs/findings"
    medians = pd.read_csv(folder / "predictions/measures.csv", index_col=["attention", "seed"])
    medians = medians.groupby(level="attention").median()
    leaving = medians[medians["plateau exit"] < math.inf]
    assert {*medians.index} - {*leaving.index} == {"shared", "shared-wide", "symmetric-wide"}
    page = (folder / "predictions.md").read_text(encoding="utf-8").replace("−", "-")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 13 and (len(medians), len(leaving)) == (14, 11)
    significant = set()
    for measure, predicts, of_all, holm_p, of_leaving in rows[1:]:
        for measures, correlation in ((medians, of_all.split()[0]), (leaving, of_leaving)):
            pair = measures[[measure, predicts]].replace(np.inf, 1e9)
            assert float(correlation) == pytest.approx(spearmanr(*pair.to_numpy().T).statistic, abs=0.0051)
        if float(holm_p) < 0.05:
            significant.add((measure, predicts))
    assert significant == {("partner", "plateau exit"), ("fuzzy", "plateau exit")}
