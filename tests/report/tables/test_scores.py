"""The scores of every seed, read back from their files."""

import itertools
import statistics

import pytest

from csv_rows import read_shown
from report.written import write_exhibit


@pytest.fixture
def tabulate(tmp_path, write_scores, report_settings):
    """Writes the table of records; returns the rows of its csv, and its Markdown."""

    def write(records, tasks=("rte", "mnli"), **settings):
        outputs = [tmp_path / "scores.csv", tmp_path / "scores.md"]
        seeds = sorted({entry["finetune_seed"] for entry in records})
        write_exhibit(
            "table-scores",
            outputs,
            scores=write_scores(records),
            settings=report_settings(tasks=list(tasks), **settings),
            finetune_seeds=seeds,
        )
        return read_shown(outputs[0]), outputs[1].read_text().replace("\\", "")

    return write


@pytest.fixture
def records(record):
    """Records of `original` in which a score tells step, seeds and task."""

    def make(steps=(1800,), pretrain_seeds=(1,), seeds=(1, 2), **changes):
        return [
            record("tiny", "original", step, task, seed, score(step, pretrain_seed, task, seed), **changes)
            | {"pretrain_seed": pretrain_seed}
            for step, pretrain_seed, task, seed in itertools.product(steps, pretrain_seeds, ("rte", "mnli"), seeds)
        ]

    return make


def score(step, pretrain_seed, task, seed):
    return 0.4 + 0.1 * (step > 0) + 0.01 * pretrain_seed**2 + 0.001 * seed + 0.2 * (task == "mnli")


def test_each_seed_has_a_row_and_their_mean_and_deviation_follow(tabulate, records):
    rows, _ = tabulate(records(seeds=(1, 2, 3)))
    assert [row["finetune_seed"] for row in rows] == ["1", "2", "3", "mean", "std"]
    assert list(rows[0]) == [
        *("model", "finetune_seed", "glue_score", "mean_of_tasks", "rte", "mnli_matched", "mnli_mismatched")
    ]
    assert [row["rte"] for row in rows] == ["51.10", "51.20", "51.30", "51.20", "0.10"]
    assert [row["glue_score"] for row in rows[:3]] == [f"{51 + seed / 10 + 40 / 3:.2f}" for seed in (1, 2, 3)]
    assert rows[3]["mean_of_tasks"] == "61.20" and {row["model"] for row in rows} == {"tiny-original"}


def test_models_without_pre_training_stand_beside_theirs(tabulate, records):
    rows, text = tabulate(records(steps=(0, 1800), seeds=(1,)))
    found = [(row["model"], row["rte"]) for row in rows]
    assert found == [("tiny-original, no pre-training", "41.10"), ("tiny-original", "51.10")]
    assert "collapsed" not in text.lower()


def test_pre_training_seeds_have_rows_of_their_own_and_then_their_mean(tabulate, records):
    rows, text = tabulate(records(pretrain_seeds=(1, 2, 3)))
    keys = [(row["pretrain_seed"], row["finetune_seed"]) for row in rows]
    own = [(str(seed), name) for seed in (1, 2, 3) for name in ("1", "2", "mean", "std")]
    assert keys == [*own, ("mean", ""), ("std", "")]
    means = [50.15 + seed**2 for seed in (1, 2, 3)]
    assert [row["rte"] for row in rows[2:12:4]] == [f"{mean:.2f}" for mean in means]
    assert [row["rte"] for row in rows[-2:]] == [f"{statistics.mean(means):.2f}", f"{statistics.stdev(means):.2f}"]
    assert "in the column of pre-training seeds, over the means of these" in text
