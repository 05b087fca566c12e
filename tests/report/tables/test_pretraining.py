"""Tables of pre-training, read back from their files: exits and points of a sweep."""

import math
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import CensoredData, logrank

from csv_rows import read
from report.written import write_exhibit
from symbert.errors import DataError
from symbert.experiment.sweep import Contrast, Grid
from symbert.files import write_json
from symbert.report.collect import Collection, grids_of_runs, read_run
from symbert.report.statistics import holm
from symbert.report.tables.pretraining import contrasts_table, grid_exits_table


@pytest.fixture
def tabulate_exits(tmp_path, report_facts, write_run, falling):
    """The rows of the table of runs, whose plateaus end at the given steps, by operator."""

    def write(contrasts=None, **leaving):
        runs = [
            write_run("tiny", name.replace("_", "-"), falling(leaves), seed=seed)
            for name, every in leaving.items()
            for seed, leaves in enumerate(every, start=1)
        ]
        outputs = [tmp_path / f"exits.{suffix}" for suffix in ("csv", "md")]
        facts = report_facts(contrasts=contrasts)
        write_exhibit("table-exits", outputs, facts=facts, runs=runs)
        return {row["attention"]: row for row in read(outputs[0])}, outputs[1].read_text()

    return write


def test_an_operator_whose_runs_all_leave_at_half_the_steps_is_shorter(tabulate_exits):
    early, late = [400, 450, 500, 400, 450], [850, 900, 800, 850, 900]
    rows, _ = tabulate_exits(pairwise=early, original=late)
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


def test_comparisons_are_those_that_were_named(tabulate_exits):
    rows, _ = tabulate_exits(
        contrasts=[["pairwise", "symmetric"]], original=[800, 850, 900], symmetric=[700, 750, 800], pairwise=[400] * 3
    )
    assert {name: row["reference"] for name, row in rows.items()} == {
        "original": "",
        "symmetric": "",
        "pairwise": "symmetric",
    }
    assert rows["pairwise"]["p_value"] == rows["pairwise"]["holm_p_value"]


STEPS = list(range(50, 1050, 50))
SEEDS = [1, 2, 3]
EXITS = {"original": (600, 650, 700), "pairwise": (300, 350, 400)}  # by operator, of each seed
CONTRAST = Contrast("both-operator", {"attention": "pairwise"}, {"attention": "original"}, "shorter")
AXES = {"host": ["encoder"], "size": ["tiny"], "attention": ["original", "pairwise"], "learning_rate": [1e-3, 2e-3]}
GRID = Grid("both", AXES, SEEDS, [CONTRAST])


def plateau_until(exit_step: float) -> list[float]:
    """A plateau at 3 nats until a step, and a straight fall after it."""
    return [3.0 if step < exit_step else 3.0 - 0.002 * (step - exit_step + 50) for step in STEPS]


@pytest.fixture
def swept(report_facts):
    """A collection of the grid with runs whose exits are known, by operator and seed."""

    def make(exits=EXITS, grid=GRID):
        losses = {name: [plateau_until(step) for step in of_seeds] for name, of_seeds in exits.items()}
        frames = {name: pd.DataFrame(losses_of_seeds, columns=STEPS) for name, losses_of_seeds in losses.items()}
        return Collection(report_facts(), grids=[(grid, [frames[point["attention"]] for point in grid.points])])

    return make


def test_exits_at_each_point_follow_from_the_losses_of_seeds_by_the_reports_rule(swept):
    for row in grid_exits_table(swept()).frame.to_dict("records"):
        earliest, median, latest = EXITS[row["attention"]]
        assert [row[key] for key in ("earliest_exit", "median_exit", "latest_exit")] == [earliest, median, latest]
        assert row["learning_rate"] in ("0.001", "0.002")
    late = grid_exits_table(swept({"original": (600, 2000, 2000), "pairwise": (2000, 2000, 2000)})).frame
    assert late[["median_exit", "earliest_exit"]].drop_duplicates().values.tolist() == [[None, 600], [None, None]]


def test_contrasts_are_answered_at_every_point_of_their_grid_and_corrected_together(swept):
    rows = contrasts_table(swept()).frame.to_dict("records")
    assert [row["learning_rate"] for row in rows] == ["0.001", "0.002"]
    for row in rows:
        assert (row["first_median_exit"], row["second_median_exit"]) == (350, 650)
        assert row["ratio"] == pytest.approx(350 / 650)
    p_values, corrected = ([float(row[key]) for row in rows] for key in ("p_value", "holm_p_value"))
    assert corrected == holm(p_values) and not any(map(math.isclose, corrected, p_values))


def test_a_folder_with_another_run_is_refused(tmp_path):
    folders = [tmp_path / f"{at}" for at in range(len(GRID.points) * len(SEEDS))]
    runs = [(point, seed) for point in GRID.points for seed in SEEDS]
    for folder, (point, seed) in zip(folders, runs, strict=True):
        _write_run(folder, point["attention"], seed)
    ((grid, read),) = grids_of_runs([(GRID, folders)], {folder: read_run(folder) for folder in folders})
    assert grid == GRID and [losses.index.tolist() for losses in read] == [SEEDS] * 4
    assert read[0].loc[2].tolist() == pytest.approx(plateau_until(EXITS["original"][1]))
    _write_run(folders[0], "shared", 1)
    with pytest.raises(DataError, match=r"0/done\.json: 'attention' is shared, expected original"):
        grids_of_runs([(GRID, folders)], {folder: read_run(folder) for folder in folders})


def _write_run(folder: Path, attention: str, seed: int) -> None:
    run = {"size": "tiny", "attention": attention, "pretrain_seed": seed}
    write_json(folder / "done.json", {**run, "steps": STEPS[-1]})
    losses = zip(STEPS, plateau_until(EXITS.get(attention, (600,) * 3)[seed - 1]), strict=True)
    lines = [f'{{"split": "validation", "step": {step}, "loss": {loss}}}' for step, loss in losses]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
