"""Validation losses of pre-training, as a dashboard exports them: a csv file with a column for each run."""

from pathlib import Path

import numpy as np
import pandas as pd

from symbert.errors import DataError
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.rows import FIRST_SEED

LOSS = " - eval/loss"  # how a column of losses ends; that of its lowest and highest values ends otherwise
AS_TEXT = {"dtype": str, "keep_default_na": False, "encoding": "utf-8-sig", "encoding_errors": "replace"}


def recognizes(file: Path) -> bool:
    """Whether a file is a csv file with a column of losses."""
    return file.suffix.lower() == ".csv" and bool(_columns(file))


def read_losses(file: Path, steps: int, naming: Naming) -> pd.DataFrame:
    """Size, attention, pretrain_seed, step and loss of the runs in a dashboard's export of validation losses.

    Each has `steps` steps. The column Step is an index of the log, and not the step. Evaluations are evenly spaced, and
    the last of them is at the last step; one more, after the training, follows at a shorter distance and is left out.
    DataError names the file and the column that are not so.
    """
    columns = _columns(file)
    try:
        table = pd.read_csv(file, usecols=["Step", *columns], **AS_TEXT)
    except ValueError as error:
        raise DataError(f"{file}: {' '.join(str(error).split())}; export it again") from error
    return pd.concat([_run(file, table[["Step", column]], column, steps, naming) for column in columns])


def _columns(file: Path) -> list[str]:
    """The columns of losses; a name that stands twice is in it twice."""
    try:
        header = pd.read_csv(file, nrows=1, header=None, **AS_TEXT).iloc[0]
        return [column for column in header if column.endswith(LOSS)]
    except ValueError:  # an empty file, or one that is no table
        return []


def _run(file: Path, table: pd.DataFrame, column: str, steps: int, naming: Naming) -> pd.DataFrame:
    run, task = naming.run_named(column.removesuffix(LOSS), str(file))
    if (run["step"], task, run["finetune_seed"]) != (None, None, FIRST_SEED):
        raise DataError(f"{file}: '{column}' is of a fine-tuning run; expected losses of pre-training only")
    if not run["size"]:
        raise DataError(f"{file}: '{column}' has no size, which Figure 2 needs; give --pattern with {{size}}")
    table = table[~table[column].isin(["", None])]
    numbers = table.apply(pd.to_numeric, errors="coerce").astype(float)
    for at in table.index[~np.isfinite(numbers).all(axis=1)]:
        step, loss = table.loc[at]
        raise DataError(f"{file}: '{column}' is {loss} at Step {step}; expected two numbers")
    distances, losses = np.diff(numbers["Step"]), numbers[column].tolist()
    if len(distances) and distances[-1] < distances[0]:
        distances, losses = distances[:-1], losses[:-1]
    if len(set(distances)) != 1:
        raise DataError(f"{file}: the evaluations in '{column}' are not evenly spaced; export all of them")
    every, rest = divmod(steps, len(losses))
    if rest:
        raise DataError(f"{file}: {len(losses)} evaluations in '{column}' do not share {steps} steps; give --steps")
    evaluated = [every * (at + 1) for at in range(len(losses))]
    model = {key: run[key] for key in ("size", "attention", "pretrain_seed")}
    return pd.DataFrame(model | {"step": evaluated, "loss": losses})
