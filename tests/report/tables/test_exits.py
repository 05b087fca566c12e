"""Exits over pre-training seeds, read back from the table's files."""

import pytest
from scipy.stats import CensoredData, logrank

from csv_rows import read
from report.written import write_exhibit


@pytest.fixture
def tabulate(tmp_path, report_settings, write_run, falling):
    """The rows of the table of runs, whose plateaus end at the given steps, by operator."""

    def write(contrasts=None, **leaving):
        runs = [
            write_run("tiny", name.replace("_", "-"), falling(leaves), seed=seed)
            for name, every in leaving.items()
            for seed, leaves in enumerate(every, start=1)
        ]
        outputs = [tmp_path / f"exits.{suffix}" for suffix in ("csv", "md")]
        seeds = list(range(1, 1 + max(map(len, leaving.values()))))
        settings = report_settings(contrasts=contrasts)
        write_exhibit("table-exits", outputs, settings=settings, pretrain_seeds=seeds, runs=runs)
        return {row["attention"]: row for row in read(outputs[0])}, outputs[1].read_text()

    return write


def test_an_operator_whose_runs_all_leave_at_half_the_steps_is_shorter(tabulate):
    early, late = [400, 450, 500, 400, 450], [850, 900, 800, 850, 900]
    rows, _ = tabulate(pairwise=early, original=late)
    pairwise, original = rows["pairwise"], rows["original"]
    assert (original["reference"], original["verdict"]) == ("", "")
    assert (original["runs"], original["left"], original["median_exit"]) == ("5", "5", "900")
    assert [pairwise[key] for key in ("median_exit", "earliest_exit", "latest_exit")] == ["500", "450", "550"]
    assert pairwise["reference"] == "original" and pairwise["verdict"] == "shorter"
    assert float(pairwise["ratio"]) == pytest.approx(500 / 900, abs=0.005)
    exits = [[step + 50 for step in every] for every in (early, late)]
    expected = logrank(*(CensoredData(uncensored=every) for every in exits)).pvalue
    assert float(pairwise["p_value"]) == pytest.approx(expected, abs=5e-5)
    assert float(pairwise["ratio_high"]) < 1


def test_runs_that_stay_are_counted_and_not_dropped(tabulate):
    """Believed of milestones: that a mean over the runs that leave describes the model."""
    rows, text = tabulate(original=[400, 450, 500], shared=[None, 900, None])
    shared = rows["shared"]
    assert (shared["runs"], shared["left"], shared["earliest_exit"]) == ("3", "1", "950")
    assert shared["median_exit"] == shared["latest_exit"] == shared["ratio"] == ""
    assert "3 pre-training seeds" in text


def test_p_values_are_corrected_for_all_operators_beside_the_first(tabulate):
    rows, _ = tabulate(original=[800, 850, 900, 950], symmetric=[400, 450, 500, 550], pairwise=[500, 1000, 600, 1200])
    small, large = sorted(float(rows[name]["p_value"]) for name in ("symmetric", "pairwise"))
    corrected = {name: float(rows[name]["holm_p_value"]) for name in ("symmetric", "pairwise")}
    assert corrected["symmetric"] == pytest.approx(2 * small, abs=2e-4)
    assert corrected["pairwise"] == pytest.approx(max(large, 2 * small), abs=2e-4)
    assert rows["pairwise"]["verdict"] == "undecided"


def test_comparisons_are_those_that_were_named(tabulate):
    rows, _ = tabulate(
        contrasts=[["pairwise", "symmetric"]], original=[800, 850, 900], symmetric=[700, 750, 800], pairwise=[400] * 3
    )
    assert {name: row["reference"] for name, row in rows.items()} == {
        "original": "",
        "symmetric": "",
        "pairwise": "symmetric",
    }
    assert rows["pairwise"]["p_value"] == rows["pairwise"]["holm_p_value"]


def test_only_what_was_named_is_called_named_beforehand(tabulate):
    """Without `sweep.contrasts` each operator is compared with the first, and the caption said it was named."""
    exits = {"pairwise": [400, 450, 500, 400, 450], "original": [850, 900, 800, 850, 900]}
    _, named = tabulate(contrasts=[["pairwise", "original"]], **exits)
    _, compared = tabulate(**exits)
    assert "operators that were named beforehand" in named
    assert "beforehand" not in compared and "operators with the first of each size" in compared


def test_readers_see_no_comparison_of_three_seeds_which_tests_nothing(tabulate):
    rows, text = tabulate(pairwise=[400, 450, 500], original=[850, 900, 800])
    assert rows["pairwise"]["verdict"] == "undecided" and rows["pairwise"]["ratio"]
    assert "| tiny | pairwise | 3 | 3 | 500 | 450 | 550 |\n" in text
    assert not [word for word in ("verdict", "holm", "ratio", "comparisons") if word in text.lower()]
