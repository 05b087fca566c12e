"""Rank correlations of probes with exits and scores, read back from the table's files."""

import math

import pytest
from scipy.stats import spearmanr

from csv_rows import read
from symbert.report.data import write_exhibit

OPERATORS = ("original", "symmetric", "pairwise", "shared")
RECALL = {"original": 60, "symmetric": 90, "pairwise": 40, "shared": None}  # steps; None: never learned
EXITS = {"original": (800, 850), "symmetric": (850, 900), "pairwise": (400, 450), "shared": (None, None)}
SCORES = {"original": 0.6, "symmetric": 0.7, "pairwise": 0.65, "shared": 0.5}


@pytest.fixture
def rows(tmp_path, settings_file, write_run, write_scores, record, falling):
    """The rows of the table, by measure and what it predicts."""
    runs = [
        write_run("tiny", name, falling(leaves), seed=seed)
        for name in OPERATORS
        for seed, leaves in enumerate(EXITS[name], start=1)
    ]
    records = [record("tiny", name, 1800, "rte", 1, SCORES[name]) for name in OPERATORS]
    lines = ["attention,relation,own_position,share,low,high,chance,steps"]
    for name in OPERATORS:
        lines.append(f"{name},chain,yes,1,0.9,1,0.06,3")
        lines.append(f"{name},recall,yes,{0.4 if name == 'shared' else 0.9},0.3,1,0.03,{RECALL[name] or ''}")
    probes = tmp_path / "probes.csv"
    probes.write_text("\n".join(lines) + "\n")
    output = tmp_path / "predictions.csv"
    files = dict(zip(("done", "metrics"), map(list, zip(*runs, strict=True)), strict=True))
    files |= {"scores": write_scores(records), "finetune_seeds": [1], "settings": settings_file(tasks=["rte"])}
    write_exhibit("table-predictions", [output], probes=probes, **files)
    return {(row["measure"], row["predicts"]): row for row in read(output)}


def test_a_probe_is_ranked_by_its_steps_and_never_comes_last(rows):
    row = rows["recall", "plateau exit"]
    assert (row["operators"], float(row["correlation"])) == ("4", 1.0)
    assert float(row["p_value"]) == pytest.approx(2 / 24, abs=5e-5) == float(row["smallest_p_value"])


def test_scores_are_ranked_too(rows):
    expected = spearmanr([60, 90, 40, math.inf], [SCORES[name] for name in OPERATORS]).statistic
    assert float(rows["recall", "GLUE score"]["correlation"]) == pytest.approx(expected)
    assert float(rows["plateau exit", "GLUE score"]["correlation"]) == pytest.approx(expected)


def test_a_probe_that_separates_nothing_has_no_correlation(rows):
    """All operators learn chains."""
    row = rows["chain", "plateau exit"]
    assert row["correlation"] == row["p_value"] == row["holm_p_value"] == ""


def test_holms_correction_is_over_all_rows_of_a_size_that_have_a_p_value(rows):
    tested = sorted(float(row["p_value"]) for row in rows.values() if row["p_value"])
    assert len(rows) == 5 and len(tested) == 3
    assert min(float(row["holm_p_value"]) for row in rows.values() if row["p_value"]) == pytest.approx(
        min(1, 3 * tested[0]), abs=5e-4
    )
