"""The table of differences and the sentences beneath it, read back from their files."""

import itertools
import random
import re

import pytest

from csv_rows import read_shown
from report.written import write_exhibit
from symbert.errors import DataError, MissingInputError

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
PAPER = {"scale": "paper", "corpus_source": "hub", "glue_source": "hub", "steps": 200_000, "batch_size": 256}
NOISE_ONLY = "With one pre-training seed all this speaks of the noise of fine-tuning only"


@pytest.fixture
def tabulate(tmp_path, write_scores, report_settings):
    """Writes the table of records; returns the rows of its csv, and the lines of its Markdown."""

    def write(records, tasks=("rte", "sst2"), **settings):
        outputs = [tmp_path / f"statistics.{suffix}" for suffix in ("csv", "md", "tex")]
        seeds = sorted({entry["finetune_seed"] for entry in records})
        write_exhibit(
            "table-statistics",
            outputs,
            scores=write_scores(records),
            settings=report_settings(tasks=list(tasks), **settings),
            finetune_seeds=seeds,
        )
        text = outputs[1].read_text().replace("\\", "")
        return read_shown(outputs[0]), text.replace("\n\n", " ", 1).splitlines()  # caption and explanation are one line

    return write


@pytest.fixture
def records(record):
    """Records of operators that are better than `original` by so many points in every column, give or take little."""

    def make(better, seeds, steps=(1800,), pretrain_seeds=(1,), tasks=("rte", "sst2"), **changes):
        source = random.Random(1)
        cells = itertools.product({"original": 0.0} | better, steps, pretrain_seeds, tasks, seeds)
        return [
            record("tiny", name, step, task, seed, 0.51 + source.gauss(0, 0.002) + gain(better, name, step), **changes)
            | {"pretrain_seed": pretrain_seed}
            for name, step, pretrain_seed, task, seed in cells
        ]

    def gain(better, name, step):
        return (0.1 + better.get(name, 0.0) / 100) if step else 0.0

    return make


def test_a_row_has_the_numbers_of_a_comparison_and_readers_see_intervals(tabulate, record):
    scores = {1: (0.60, 0.62), 2: (0.61, 0.62), 3: (0.59, 0.62)}
    records = [
        record("tiny", name, 1800, "rte", seed, pair[at])
        for seed, pair in scores.items()
        for at, name in enumerate(("original", "pairwise"))
    ]
    rows, lines = tabulate(records, ["rte"])
    assert [row["score"] for row in rows] == ["glue_score", "mean_of_tasks", "rte"]
    described = {
        **{"size": "tiny", "model": "pairwise", "reference": "original", "unit": "fine-tuning seed", "n": "3"},
        **{"difference": "2.00", "std": "1.00", "welch_low": "0.40", "welch_high": "3.60"},  # 2 ± 2.776/√3
    }
    described |= {"welch_low": "-0.48", "welch_high": "4.48"}
    tested = {"p": "0.10", "holm_p": "0.10", "smallest_p": "0.10"}
    assert rows[2] == described | {"score": "rte"} | dict.fromkeys(tested, "")
    assert rows[0] == described | {"score": "glue_score"} | tested
    cells = "3 | 2.00 | [−0.48, 4.48] |"
    assert f"| tiny | pairwise | original | rte | {cells} – | – | – |" in lines
    assert f"| tiny | pairwise | original | GLUE score | {cells} 0.1000 | 0.1000 | 0.1000 |" in lines


def test_with_five_seeds_a_difference_can_be_shown(tabulate, records):
    _, lines = tabulate(records({"pairwise": 1.0}, range(1, 6)))
    assert lines[-1].startswith(
        "With 5 fine-tuning seeds of each model the smallest p that the test can give is 0.0079."
    )
    verdict = r"BERT-tiny, GLUE score: pairwise − original \((\S+) points\): a difference is shown \(p (\S+) with"
    found = re.search(verdict, lines[-1])
    assert float(found[1]) == pytest.approx(1, abs=0.2) and found[2] == "0.0079"
    assert "Welch's interval [" in lines[-1] and NOISE_ONLY in lines[-1]


@pytest.mark.parametrize(("seeds", "units"), [([1], "one fine-tuning seed"), ([1, 2], "2 fine-tuning seeds")])
def test_of_fewer_than_three_seeds_nothing_is_inferred(tabulate, records, seeds, units):
    """Of two, p values of 0.5 and intervals that reach 12.7 standard errors stood there, and "supported"."""
    rows, lines = tabulate(records({"pairwise": 1.0, "symmetric": -30.0}, seeds, steps=(0, 1800)))
    few = "the differences are descriptive only: so few have neither an interval nor a p value."
    assert lines[-1].startswith(f"With {units} {few}")
    assert "Descriptive only: fewer than 3 units have neither intervals nor p values." in lines[0]
    assert "resampled" not in lines[0], "intervals that are all dashes are not described"
    told = ("significant", "shown", "permutation", "95 %", "(p ", "cover fine-tuning")
    assert not [word for word in told if word in lines[0] + lines[-1]]
    inferred = [key for key in rows[0] if key.endswith(("_low", "_high", "p"))]
    assert len(inferred) == 5 and {row[key] for row in rows for key in inferred} == {""}
    assert all(float(row["difference"]) and (row["std"] == "") == (len(seeds) == 1) for row in rows)
    cells = [line.split(" | ") for line in lines if line.startswith("| tiny |")]
    assert all(len(row) == 6 for row in cells) and cells, "no column of dashes alone"


def test_scores_that_do_not_reach_the_last_step_or_are_stale_are_refused(tabulate, records):
    with pytest.raises(MissingInputError, match="the last step is 900, expected 1800"):
        tabulate(records({}, [1], steps=(900,)))
    with pytest.raises(DataError, match="has bbbb, expected aaaa"):
        tabulate(records({}, [1], settings_hash="bbbb"))


def test_the_authors_scores_decide_small_and_leave_base_open(tabulate, authors_models):
    rows, lines = tabulate(authors_models, TASKS, **PAPER)
    assert len(rows) == 2 * 2 * 11
    symmetric = next(line for line in lines if line.startswith("| base | symmetric | original | GLUE score |"))
    assert "| 0.0079 | 0.0159 | 0.0079 |" in symmetric
    base = (
        "BERT-base, GLUE score: pairwise − original (0.63 points): no difference is shown (p 0.0873 with "
        "Holm's correction, Welch's interval [−0.16, 1.41])."
    )
    small = "BERT-small, GLUE score: pairwise − original (0.66 points): a difference is shown (p 0.0159 with"
    assert base in lines[-1] and small in lines[-1] and NOISE_ONLY in lines[-1]
    assert lines[-1].count("symmetric − original (−") == lines[-1].count("points): a difference is shown") - 1 == 2
