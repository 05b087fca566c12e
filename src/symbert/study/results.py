"""The results of a study: `runs.csv`, a row per run with its curve, and what follows from it by the study's file."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import read_json, write_text
from symbert.report.inference import holm
from symbert.report.statistics import plateau_exit
from symbert.report.survival import ExitComparison, Exits, compare, median_exit
from symbert.study.design import AXES, Cell, Study, cell_of, points_of

CELL = {
    "text": str,
    "cell": dict,
    "curves": [{"seed": int, "steps": [int], "losses": [float], "initial": dict, "machine": dict}],
}
SETTINGS = ("learning_rate", "batch_size", "steps")  # of pre-training, for readers; `cell` stands for all of them
COLUMNS = ("cell", *AXES, *SETTINGS, "seed", "corpus_hash", "commit", "cpu_seconds", "logit_std", "attention_entropy")
COLUMNS += ("processor", "torch", "evaluate_every", "exit", "losses")


def collect_runs(cells: list[Path], output: Path) -> None:
    """Publish a row per run of the files of cells, by cell and seed.

    `logit_std` and `attention_entropy` (nats) are those of the untrained model, means over its layers, and `losses` are
    in nats per masked token, one every `evaluate_every` steps.
    """
    rows = []
    for path in cells:
        record = read_json(path, CELL, "delete it")
        cell = record["cell"]
        for curve in record["curves"]:
            means = {key: f"{sum(layers) / len(layers):.4f}" for key, layers in curve["initial"].items()}
            losses = [f"{loss:.4f}" for loss in curve["losses"]]
            exit_step = plateau_exit(curve["steps"], [float(loss) for loss in losses])  # as read_runs verifies it
            rows.append(
                {
                    "cell": cell_of(record["text"], cell).key,
                    **{"text": record["text"], "size": cell["size"], "attention": cell["attention"]},
                    **{key: cell["pretrain"][key] for key in SETTINGS},
                    **{key: curve[key] for key in ("seed", "corpus_hash", "commit", "cpu_seconds")},
                    **means,
                    "processor": curve["machine"]["processor"],
                    "torch": curve["machine"]["versions"]["torch"],
                    "evaluate_every": cell["pretrain"]["evaluate_every"],
                    "exit": "never" if exit_step is None else exit_step,
                    "losses": " ".join(losses),
                }
            )
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    write_text(output, frame.sort_values([*AXES, *SETTINGS, "seed"]).to_csv(index=False, lineterminator="\n"))


def read_runs(path: Path) -> pd.DataFrame:
    """The rows of runs.csv, with lists of `steps` and `losses`, and NaN for an exit that never comes.

    IntegrityError for an exit that its curve does not have.
    """
    if not Path(path).is_file():
        raise MissingInputError(f"{path}: file not found; run the study")
    frame = pd.read_csv(path, dtype={"exit": str, "losses": str}, keep_default_na=False)
    if missing := [column for column in COLUMNS if column not in frame]:
        raise DataError(f"{path}: no column '{missing[0]}'; run the study again")
    frame["losses"] = [[float(loss) for loss in losses.split()] for losses in frame["losses"]]
    frame["steps_evaluated"] = [
        [every * number for number in range(1, len(losses) + 1)]
        for every, losses in zip(frame["evaluate_every"], frame["losses"], strict=True)
    ]
    exits = [plateau_exit(*curve) for curve in zip(frame["steps_evaluated"], frame["losses"], strict=True)]
    for row, found in enumerate(exits):
        if str(found or "never") != frame["exit"][row]:
            raise IntegrityError(f"{path}:{row + 2}: exit expected {found or 'never'}, found {frame['exit'][row]}")
    return frame.assign(exit=[math.nan if step is None else float(step) for step in exits])


@dataclass(frozen=True)
class Runs:
    """The runs of one cell, by seed."""

    cell: Cell
    frame: pd.DataFrame

    @property
    def exits(self) -> Exits:
        """Where the runs leave the plateau."""
        exits = [None if math.isnan(step) else int(step) for step in self.frame["exit"]]
        every = self.cell.pretrain.evaluate_every
        return Exits.of(exits, [every * len(losses) for losses in self.frame["losses"]])

    @property
    def median(self) -> float:
        """The median exit; infinite where half of the runs or more stay."""
        return float(median_exit(self.exits.steps, self.exits.left))


def runs_of(frame: pd.DataFrame, cell: Cell, seeds: list[int]) -> Runs:
    """The runs of a cell with these seeds; MissingInputError names the first that there is not."""
    chosen = frame[(frame["cell"] == cell.key) & frame["seed"].isin(seeds)].sort_values("seed")
    if absent := sorted(set(seeds) - set(chosen["seed"])):
        raise MissingInputError(f"{cell.name}: no run of seed {absent[0]}; run the study")
    return Runs(cell, chosen)


def complete_grids(study: Study, frame: pd.DataFrame) -> list[str]:
    """The names of the grids all of whose runs there are."""
    trained = set(zip(frame["cell"], frame["seed"], strict=True))
    return [
        name
        for name, grid in study.grids.items()
        if all((cell.key, seed) in trained for _, cell in points_of(study, grid) for seed in grid.seeds)
    ]


@dataclass(frozen=True)
class Answer:
    """What a contrast of the study's file shows at one point of the other axes."""

    name: str
    place: dict[str, Any]
    first: Runs
    second: Runs
    result: ExitComparison
    corrected: float  # p value with Holm's correction over all answers from the same grid

    @property
    def verdict(self) -> str:
        """Whether the first one's time to the exit is shorter, longer, within 25 %, or undecided."""
        return self.result.verdict(self.corrected)


def answers_of(study: Study, frame: pd.DataFrame) -> list[Answer]:
    """All contrasts of complete grids, which were named before the runs, at every point of their grids."""
    answers = []
    for grid_name in complete_grids(study, frame):
        grid, compared = study.grids[grid_name], []
        points = [(point, runs_of(frame, cell, grid.seeds)) for point, cell in points_of(study, grid)]
        for name, asked in study.contrasts.items():
            for point, first in points if asked.grid == grid_name else ():
                if asked.first.items() <= point.items():
                    second = next(runs for other, runs in points if other == {**point, **asked.second})
                    place = {axis: value for axis, value in point.items() if axis not in asked.first}
                    compared.append((name, place, first, second, compare(first.exits, second.exits)))
        corrected = holm([result.p_value for *_, result in compared]) if compared else []
        answers += [Answer(*one, float(p_value)) for one, p_value in zip(compared, corrected, strict=True)]
    return answers
