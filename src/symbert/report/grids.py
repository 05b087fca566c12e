"""The exits of a sweep's runs, point by point, and what the contrasts that were named beforehand show."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.configuration import SWEPT
from symbert.errors import DataError
from symbert.experiment.sweep import Contrast, Grid
from symbert.report.runs import read_run
from symbert.report.statistics import FEWEST, ExitComparison, Exits, compare_exits, exits_of
from symbert.sources import Config


@dataclass(frozen=True)
class Cell:
    """The runs at a point of a grid."""

    point: Config  # values by axis
    losses: pd.DataFrame  # validation losses: a row per pre-training seed, a column per step

    @property
    def exits(self) -> Exits:
        """Where the runs leave the plateau."""
        return exits_of(self.losses)


@dataclass(frozen=True)
class Cells:
    """A grid and its runs, in the order of its points."""

    grid: Grid
    cells: list[Cell]

    @property
    def varied(self) -> list[str]:
        """The axes that have several values."""
        return [axis for axis, values in self.grid.axes.items() if len(values) > 1]

    def place(self, point: Config) -> str:
        """Where a point lies beside its operator, in words."""
        axes = [axis for axis in self.varied if axis != "attention"] or [next(iter(self.grid.axes))]
        return ", ".join(in_words(axis, point[axis]) for axis in axes)


def in_words(axis: str, value: Any) -> str:
    """A value of an axis; a text, a host, a size and an operator say themselves what they are."""
    return f"{axis.replace('_', ' ')} {value}" if axis in SWEPT and axis != "text" else str(value)


def read_grids(grids: list[tuple[Grid, list[Path]]]) -> list[Cells]:
    """Grids from the folders of their runs, point by point and seed by seed.

    DataError names a folder that has another run.
    """
    read = []
    for grid, folders in grids:
        files = iter(folders)
        losses = [{seed: _losses_of(next(files), point, seed) for seed in grid.seeds} for point in grid.points]
        frames = [pd.DataFrame.from_dict(of_seeds, orient="index").sort_index() for of_seeds in losses]
        read.append(Cells(grid, list(map(Cell, grid.points, frames))))
    return read


def _losses_of(folder: Path, point: Config, seed: int) -> dict[int, float]:
    """The validation losses of a run by step."""
    run = read_run(folder / "done.json", folder / "metrics.jsonl")
    for key, value in {**point, "pretrain_seed": seed}.items():
        if run.get(key, value) != value:
            raise DataError(f"{folder}/done.json: '{key}' is {run[key]}, expected {value}; delete it")
    return dict(zip(run["step"], run["loss"], strict=True))


@dataclass(frozen=True)
class Answer:
    """A contrast at one point of the other axes."""

    contrast: Contrast
    place: Config
    first: Cell
    second: Cell
    result: ExitComparison  # corrected over all answers from the same grid


def has_answers(grid: Grid) -> bool:
    """Whether a grid has contrasts, and seeds to answer them."""
    return bool(grid.contrasts) and len(grid.seeds) >= FEWEST


def answers_of(runs: Cells) -> list[Answer]:
    """The contrasts of a grid at every point of its other axes."""
    compared = []
    for contrast in runs.grid.contrasts:
        for first in runs.cells:
            if contrast.first.items() <= first.point.items():
                second = next(cell for cell in runs.cells if cell.point == {**first.point, **contrast.second})
                place = {axis: value for axis, value in first.point.items() if axis not in contrast.first}
                compared.append((contrast, place, first, second))
    results = compare_exits((first.exits, second.exits) for *_, first, second in compared)
    return [Answer(*sides, result) for sides, result in zip(compared, results, strict=True)]
