"""The runs of a sweep, grid by grid and point by point."""

from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError
from symbert.experiment.sweep import Grid
from symbert.report.runs import read_run


def read_grids(grids: list[tuple[Grid, list[Path]]]) -> list[tuple[Grid, list[pd.DataFrame]]]:
    """Grids with the losses at each of their points, from the folders of their runs, point by point and seed by seed.

    DataError names a folder that has another run.
    """
    read = []
    for grid, folders in grids:
        files = iter(folders)
        losses = [{seed: _losses_of(next(files), point, seed) for seed in grid.seeds} for point in grid.points]
        frames = [pd.DataFrame.from_dict(of_seeds, orient="index").sort_index() for of_seeds in losses]
        read.append((grid, frames))
    return read


def _losses_of(folder: Path, point: dict[str, Any], seed: int) -> dict[int, float]:
    """The validation losses of a run by step."""
    run = read_run(folder / "done.json", folder / "metrics.jsonl")
    for key, value in {**point, "pretrain_seed": seed}.items():
        if run.get(key, value) != value:
            raise DataError(f"{folder}/done.json: '{key}' is {run[key]}, expected {value}; delete it")
    return dict(zip(run["step"], run["loss"], strict=True))
