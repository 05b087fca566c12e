"""What the heads of checkpoints look like and which relations operators can express, as tables read from csv."""

from pathlib import Path

import pandas as pd

from symbert.errors import DataError
from symbert.report.order import attentions, sizes

MODEL = ["size", "attention", "pretrain_seed", "step", "layer"]
MEASURES = ["symmetry", "directionality", "logit_std", "attention_entropy", "own_share"]
ORDERS = {"size": sizes, "attention": attentions}
PROBES = ["attention", "relation", "own_position", "share", "low", "high", "chance", "steps"]


def read_anatomy(path: Path) -> pd.DataFrame:
    """A row per head, in the order of tables; DataError for another file."""
    table = _read(path, [*MODEL, "head", *MEASURES])
    return table.sort_values([*MODEL, "head"], key=_ranked, kind="stable", ignore_index=True)


def read_probes(path: Path) -> pd.DataFrame:
    """A row per operator, relation, and whether a token may attend to itself; DataError for another file."""
    table = _read(path, PROBES)
    return table.sort_values("attention", key=_ranked, kind="stable", ignore_index=True)


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: no csv ({' '.join(str(error).split())}); delete it and run again") from None
    if missing := [column for column in columns if column not in table]:
        raise DataError(f"{path}: no column '{missing[0]}'; delete it and run again")
    if table.empty:
        raise DataError(f"{path}: no rows; delete it and run again")
    return table


def _ranked(column: pd.Series) -> pd.Series:
    """Sizes and operators as their places in tables."""
    if column.name not in ORDERS:
        return column
    return column.map({name: rank for rank, name in enumerate(ORDERS[column.name](column))})
