"""Table 2, continued: loss, start and speed of each model, read back from its files."""

import statistics

import pytest

from csv_rows import read_shown
from report.written import write_exhibit

FALL = [5.6] * 9 + [4.0, 3.0, 2.6]
SPEED = ("step_milliseconds", "of_original_percent", "tokens_per_second", "mfu_percent")
SINGLE = ["size", "attention", "validation_loss", "logit_std", "attention_entropy", *SPEED]
DECIMALS = dict.fromkeys(("validation_loss", "std", "logit_std", "attention_entropy"), 3) | {"tokens_per_second": 0}


@pytest.fixture
def tabulate(write_run, report_settings, outputs):
    """Writes the table of runs (size, attention, seed, losses) and files of speeds; returns the rows of its csv."""

    def make(*runs, speeds=()):
        folders = []
        for size, attention, seed, losses in runs:
            points = list(zip(range(50, 650, 50), losses, strict=True))
            folders.append(write_run(size, attention, points, seed=seed, initial=([0.3, 0.4], [4.0, 4.1234])))
        given = {"runs": folders, "settings": report_settings(), "speeds": list(speeds)}
        write_exhibit("table-table2_training", outputs, **given)
        return read_shown(outputs[0], **DECIMALS)

    return make


def test_a_model_has_loss_start_and_speed(tabulate, write_speeds, outputs):
    speeds = write_speeds(original=[0.025, 0.024, 0.026], shared=[0.02, 0.024, 0.0234])
    original, shared = tabulate(("tiny", "original", 1, FALL), ("tiny", "shared", 1, FALL), speeds=[speeds])
    assert list(original) == SINGLE
    assert list(original.values()) == [
        "tiny",
        "original",
        "2.600",
        "0.350",
        "4.062",
        "25.00",
        "100.00",
        "81920",
        "20.00",
    ]
    assert (shared["step_milliseconds"], shared["of_original_percent"]) == ("23.40", "90.00"), (
        "median of 80, 100 and 90"
    )
    text = outputs[1].read_text()
    assert "| tiny | shared | 2.600 | 0.350 | 4.062 | 23.40 | 90.00 | 87,521 | 21.37 |" in text
    machine = "tiny on cpu (A chip, AVX2), fp32, 1 thread, 32 sequences at a time"
    assert f"Machines: {machine}." in text and "arXiv 2412.00359 claims about a tenth less time for shared" in text
    assert r"\label{tab:training}" in outputs[2].read_text()


def test_the_speeds_of_runs_that_were_hours_apart_are_not_compared(tabulate, write_run, write_timing, outputs):
    """An operator had 339 % of the step time of original, because a quiet and a loaded hour were compared."""
    runs = [("tiny", "original", 1, FALL), ("tiny", "pairwise", 1, FALL)]
    rows = tabulate(*runs)
    assert {row[column] for row in rows for column in SPEED} == {""}
    assert "step (ms)" not in outputs[1].read_text() and "Speed:" not in outputs[1].read_text()


def test_a_size_that_was_not_measured_has_dashes(tabulate, write_speeds, outputs):
    runs = [("tiny", "original", 1, FALL), ("tiny", "pairwise", 1, FALL), ("small", "original", 1, FALL)]
    rows = tabulate(*runs, speeds=[write_speeds(original=[0.02], pairwise=[0.03])])
    assert [row["of_original_percent"] for row in rows] == ["100.00", "150.00", ""]
    assert "| small | original | 2.600 | 0.350 | 4.062 | – | – | – | – |" in outputs[1].read_text()
    assert "2412.00359" not in outputs[1].read_text(), "of shared alone"


def test_several_seeds_give_means_and_their_spread(tabulate, outputs):
    losses = {1: FALL, 2: [5.6] * 10 + [4.0, 3.0], 3: [*FALL[:-1], 2.2]}
    runs = [("tiny", "original", seed, losses[seed]) for seed in losses]
    original, pairwise = tabulate(*runs, ("tiny", "pairwise", 1, FALL))
    assert original["pretrain_seeds"] == "3" and pairwise["pretrain_seeds"] == "1"
    assert original["validation_loss"] == f"{(2.6 + 3.0 + 2.2) / 3:.3f}"
    assert original["std"] == f"{statistics.stdev([2.6, 3.0, 2.2]):.3f}" and pairwise["std"] == ""
    text = outputs[1].read_text()
    assert "3 pre-training seeds" in text and "may be chance" not in text
    assert "std is the sample standard deviation of their validation losses" in text
