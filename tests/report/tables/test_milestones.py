"""Plateau exits and crossings, read back from their files."""

import pytest

from csv_rows import read_shown
from report.written import write_exhibit

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
DECIMALS = {"validation_loss": 3, "plateau_exit": 0, "crossing": 0}
PUBLISHED = ("paper_plateau_exit", "authors_plateau_exit", "authors_before", "authors_after", "authors_crossing")
CROSSINGS = ("target_score", "before", "after", "crossing")


@pytest.fixture
def tabulate(tmp_path, report_settings, write_scores):
    """Writes the table of runs and records of checkpoints; returns the rows of its csv, and its Markdown."""

    def write(runs=None, records=None, tasks=("rte",), **settings):
        outputs = [tmp_path / f"milestones.{suffix}" for suffix in ("csv", "md", "tex")]
        files = {"runs": runs or []}
        if records:
            seeds = sorted({entry["finetune_seed"] for entry in records})
            files |= {"curve": write_scores(records), "curve_seeds": seeds}
        write_exhibit("table-milestones", outputs, settings=report_settings(tasks=list(tasks), **settings), **files)
        return read_shown(outputs[0], **DECIMALS), outputs[1].read_text().replace("\\", "")

    return write


@pytest.fixture
def curve(record):
    """Records of a task at checkpoints 300, 600, … with the given scores in percent."""

    def make(attention, percents, size="tiny", **changes):
        return [
            record(size, attention, 300 * number, "rte", 1, percent / 100, **changes)
            for number, percent in enumerate(percents, start=1)
        ]

    return make


def test_losses_and_scores_meet_in_the_row_of_their_model(tabulate, write_run, curve, falling):
    runs = [write_run("tiny", "pairwise", falling(400)), write_run("tiny", "original", falling(800))]
    records = [*curve("original", [50, 60, 70, 75, 79, 80]), *curve("pairwise", [50, 72, 77, 74, 78, 79])]
    rows, text = tabulate(runs, records)
    original, pairwise = rows
    assert (original["attention"], original["plateau_exit"], original["validation_loss"]) == (
        "original",
        "850",
        "4.800",
    )
    assert (pairwise["attention"], pairwise["plateau_exit"]) == ("pairwise", "450")
    assert [original[key] for key in CROSSINGS] == ["76.00", "1200", "1500", "1275"]
    assert [pairwise[key] for key in CROSSINGS] == ["76.00", "600", "900", "840"]
    assert all(row[key] == "" for row in rows for key in PUBLISHED)
    assert "paper plateau exit" not in text, "nobody published tiny models"
    assert "earliest exit" not in text, "one run has no range"
    assert "95 % of the highest score at the last checkpoint" in text and "by more than 2 % of it" in text


def test_exits_of_several_seeds_are_their_median_and_range_as_in_the_table_of_exits(tabulate, write_run, falling):
    """It was their mean, and a dash where one of three stayed, beside the median and the earliest of other tables."""
    leaves = {1: 400, 2: 800, 3: 600}
    runs = [write_run("tiny", "original", falling(at), seed=seed) for seed, at in leaves.items()]
    flat = [(step, 5.6) for step, _ in falling(400)]
    runs += [
        write_run("tiny", "pairwise", flat if at == 800 else falling(at), seed=seed) for seed, at in leaves.items()
    ]
    rows, text = tabulate(runs)
    exits = [[row[key] for key in ("plateau_exit", "earliest_exit", "latest_exit")] for row in rows]
    assert exits == [["650", "450", "850"], ["650", "450", ""]]
    assert "earliest exit | latest exit" in text and "plateau exits are medians" in text


def test_a_model_that_does_not_leave_the_plateau_has_no_exit_and_the_table_says_so(tabulate, write_run, falling):
    flat = write_run("tiny", "original", [(step, 5.6) for step, _ in falling(400)])
    rows, text = tabulate([flat])
    assert rows[0]["plateau_exit"] == "" and "No model leaves the plateau." in text
    _, text = tabulate([flat, write_run("tiny", "pairwise", falling(400))])
    assert "| tiny | original | 5.600 | – |" in text and "No model leaves" not in text


def test_a_curve_above_the_line_from_the_start_has_no_checkpoint_before_and_one_below_it_has_none(tabulate, curve):
    rows, text = tabulate(None, [*curve("original", [78, 70, 80]), *curve("pairwise", [50, 60, 70])], steps=900)
    assert [rows[0][key] for key in CROSSINGS] == ["76.00", "", "300", "300"]
    assert [rows[1][key] for key in CROSSINGS] == ["76.00", "", "", ""]
    assert "No validation losses were given." in text and "validation loss |" not in text


def test_the_authors_files_give_their_milestones_beside_the_papers_words(
    tabulate, write_run, authors_losses, authors_curve
):
    steps = range(250, 200_001, 250)
    runs = [
        write_run(*model, list(zip(steps, losses, strict=True)), steps=200_000)
        for model, losses in authors_losses.items()
    ]
    rows, _ = tabulate(runs, authors_curve, TASKS, steps=200_000)
    columns = ("validation_loss", "plateau_exit", *PUBLISHED[:2])
    assert {(row["size"], row["attention"]): [row[key] for key in columns] for row in rows} == {
        ("small", "original"): ["2.198", "12000", "12000", "12000"],
        ("small", "symmetric"): ["2.352", "11500", "", "11500"],
        ("small", "pairwise"): ["2.223", "9500", "", "9500"],
        ("base", "original"): ["1.683", "26750", "25000", "26750"],
        ("base", "symmetric"): ["1.788", "14250", "13500", "14250"],
        ("base", "pairwise"): ["1.681", "11750", "12000", "11750"],
    }
    of_base = [row for row in rows if row["size"] == "base"]
    crossings = {row["attention"]: [row[key] for key in (*CROSSINGS, *PUBLISHED[2:])] for row in of_base}
    assert crossings == {
        "original": ["75.10", "50000", "75000", "65515", "50000", "75000", "65515"],
        "symmetric": [""] * 7,
        "pairwise": ["75.10", "30000", "35000", "32799", "30000", "35000", "32799"],
    }
