"""Tables of scores: Table 3 and other suites; means, deviations, refusals."""

import itertools
import statistics

import pytest

from csv_rows import read_shown
from report.written import unchecked, write_exhibit
from symbert.errors import DataError
from symbert.report import published

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]


@pytest.fixture
def tabulate(write_scores, report_settings, outputs):
    """Writes Table 3 of records; returns the rows of its csv, and its Markdown."""

    def write(records, settings=None, steps=1800):
        write_exhibit(
            "table-table3_glue",
            outputs,
            scores=write_scores(records),
            experiment=report_settings(settings, steps=steps),
            sweep={"finetune_seeds": sorted({entry["finetune_seed"] for entry in records})},
        )
        return read_shown(outputs[0]), outputs[1].read_text()

    return write


@pytest.mark.parametrize("changes", [{"glue.source": "mirror"}, {"glue.epochs": 3}])
def test_the_papers_numbers_stand_beside_ours_only_where_models_and_data_are_the_papers(record, tabulate, changes):
    records = [record("base", "pairwise", 200_000, task, 1) for task in TASKS]
    rows, _ = tabulate(records, published.SETTINGS, 200_000)
    assert [row["model"] for row in rows] == ["base-pairwise", "base-pairwise, the paper", "majority baseline"]
    assert (rows[1]["glue_score"], rows[1]["std"], rows[1]["cola"]) == ("79.36", "0.37", "46.91")
    rows, _ = tabulate(records, published.SETTINGS | changes, 200_000)
    assert len(rows) == 2


def test_missing_scores_are_refused_and_of_imported_ones_dashes_with_what_is_missing(record, tabulate):
    """A mean over other tasks than its neighbour's is no GLUE score: only complete seeds count for that."""
    gone = [("original", "rte", 3), ("pairwise", "cola", 1), ("pairwise", "cola", 2), ("pairwise", "cola", 3)]
    kept, operators = [], ["original", "pairwise"]
    for (position, name), (index, task), seed in itertools.product(enumerate(operators), enumerate(TASKS), [1, 2, 3]):
        score = 0.5 + 0.1 * position + 0.01 * index + 0.003 * seed**2
        if (name, task, seed) not in gone:
            kept.append(record("tiny", name, 1800, task, seed, score, partial=task == "rte", stand_in=True))
    with pytest.raises(DataError, match="missing: tiny-original, pretrain_seed 1, step 1800, rte, finetune_seed 3; "):
        tabulate(kept)
    with unchecked():
        (original, pairwise, _), _ = tabulate(kept)
    assert original["rte (stand-in)"] == f"{100 * (0.5 + 0.04 + 0.003 * 5 / 2):.2f}", "over the two that there are"
    weights = [0, 1, 2, 2, 3, 4, 5, 6, 7]
    assert original["glue_score (stand-in)"] == f"{100 * (0.5 + 0.01 * sum(weights) / 9 + 0.003 * 5 / 2):.2f}"
    assert (original["finetune_seeds"], pairwise["finetune_seeds"]) == ("2", "3"), "no seed has all: those that it has"
    assert (pairwise["cola (stand-in)"], pairwise["glue_score (stand-in)"], pairwise["std"]) == ("", "", "")
    assert pairwise["sst2 (stand-in)"] == f"{100 * (0.6 + 0.07 + 0.003 * 14 / 3):.2f}"


def test_a_task_with_training_rows_among_those_scored_has_a_mark_in_the_table(record, tabulate, outputs):
    """Only the page's top told of them: the table, which is what others print, did not."""
    counts = {"cola": {"seen": {"cola": [16, 1043]}}, "rte": {"seen": {"rte": [0, 277]}}}
    counts["mrpc"] = {"seen": {"mrpc": [3, 408]}, "stand_in": True}
    records = [record("tiny", "original", 1800, task, 1, **counts.get(task, {})) for task in TASKS]
    rows, markdown = tabulate(records)
    headings = next(line for line in markdown.splitlines() if line.startswith("| model")).strip("| ").split(" | ")
    assert [heading for heading in headings if "‡" in heading] == ["mrpc (stand-in)‡", "cola‡"]
    assert not any("‡" in column for column in rows[0]), "programs find the column by its name"
    assert outputs[2].read_text().count(r"\ddag{}") == 3, "two headings and the caption"


def test_of_more_than_ten_pretraining_seeds_the_mean_alone_has_a_row(record, tabulate):
    """Table 3 of 50 seeds of four operators was 200 rows on the page's first screen."""
    for count, shown in ((10, 11), (11, 1)):
        seeds = range(1, count + 1)
        cells = itertools.product(TASKS, seeds)
        rows, _ = tabulate(
            [record("tiny", "original", 1800, task, 1, 0.5 + seed / 100, pretrain_seed=seed) for task, seed in cells]
        )
        *_, mean, _ = rows  # the baseline is last
        assert len(rows) == shown + 1 and mean["model"] == f"tiny-original, mean of {count} seeds"
        assert mean["rte"] == mean["glue_score"] == f"{50 + (count + 1) / 2:.2f}"
        assert float(mean["std"]) == pytest.approx(statistics.stdev(seeds), abs=0.0051)
