"""The exits of a sweep's runs, and what the contrasts of its grids show."""

import math
from pathlib import Path

import pandas as pd
import pytest

from symbert.errors import DataError
from symbert.experiment.sweep import Contrast, Grid
from symbert.files import write_json
from symbert.report.grids import Cell, Cells, answers_of, has_answers, read_grids
from symbert.report.statistics import holm

STEPS = list(range(50, 1050, 50))
SEEDS = [1, 2, 3]
EXITS = {"original": (600, 650, 700), "pairwise": (300, 350, 400)}  # by operator, of each seed
CONTRAST = Contrast("both-operator", {"attention": "pairwise"}, {"attention": "original"}, "shorter")
AXES = {"host": ["encoder"], "size": ["tiny"], "attention": ["original", "pairwise"], "learning_rate": [1e-3, 2e-3]}
GRID = Grid("both", AXES, SEEDS, [CONTRAST])


def curve(exit_step: float) -> list[float]:
    """A plateau at 3 nats until a step, and a straight fall after it."""
    return [3.0 if step < exit_step else 3.0 - 0.002 * (step - exit_step + 50) for step in STEPS]


def cells(exits: dict[str, tuple[float, ...]] = EXITS) -> Cells:
    """The grid with runs whose exits are known."""
    losses = {name: [curve(step) for step in of_seeds] for name, of_seeds in exits.items()}
    frames = {name: pd.DataFrame(curves, index=SEEDS, columns=STEPS) for name, curves in losses.items()}
    return Cells(GRID, [Cell(point, frames[point["attention"]]) for point in GRID.points])


def test_exits_follow_from_the_curves_by_the_reports_rule():
    for cell in cells().cells:
        assert cell.exits.steps.tolist() == [*EXITS[cell.point["attention"]]] and cell.exits.left.all()
        assert cell.exits.median == EXITS[cell.point["attention"]][1]


def test_an_exit_in_words_has_the_range_over_seeds_and_says_never():
    words = {cell.point["attention"]: cell.exits.in_words for cell in cells().cells}
    assert words == {"original": "650 (600–700)", "pairwise": "350 (300–400)"}
    late = cells({"original": (600, 2000, 2000), "pairwise": (2000, 2000, 2000)})
    assert {cell.exits.in_words for cell in late.cells} == {"never (600–never)", "never"}


def test_contrasts_are_answered_at_every_point_of_their_grid_and_corrected_together():
    answers = answers_of(cells())
    assert [answer.place["learning_rate"] for answer in answers] == [1e-3, 2e-3]
    for answer in answers:
        assert (answer.first.exits.median, answer.second.exits.median) == (350, 650)
        assert answer.result.ratio == pytest.approx(350 / 650)
    assert [answer.result.holm_p_value for answer in answers] == holm([answer.result.p_value for answer in answers])
    assert not any(math.isclose(answer.result.holm_p_value, answer.result.p_value) for answer in answers)


def test_too_few_seeds_answer_nothing():
    assert has_answers(GRID)
    assert not has_answers(Grid("both", AXES, SEEDS[:2], [CONTRAST]))
    assert not has_answers(Grid("both", AXES, SEEDS, []))


def test_a_folder_with_another_run_is_refused(tmp_path):
    folders = [tmp_path / f"{at}" for at in range(len(GRID.points) * len(SEEDS))]
    runs = [(point, seed) for point in GRID.points for seed in SEEDS]
    for folder, (point, seed) in zip(folders, runs, strict=True):
        _write_run(folder, point["attention"], seed)
    (read,) = read_grids([(GRID, folders)])
    assert [cell.losses.index.tolist() for cell in read.cells] == [SEEDS] * 4
    assert read.cells[0].losses.loc[2].tolist() == pytest.approx(curve(EXITS["original"][1]))
    _write_run(folders[0], "shared", 1)
    with pytest.raises(DataError, match=r"0/done\.json: 'attention' is shared, expected original"):
        read_grids([(GRID, folders)])


def _write_run(folder: Path, attention: str, seed: int) -> None:
    run = {"size": "tiny", "attention": attention, "pretrain_seed": seed}
    write_json(folder / "done.json", {**run, "steps": STEPS[-1]})
    losses = zip(STEPS, curve(EXITS.get(attention, (600,) * 3)[seed - 1]), strict=True)
    lines = [f'{{"split": "validation", "step": {step}, "loss": {loss}}}' for step, loss in losses]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
