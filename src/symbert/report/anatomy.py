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
    table = _read(path, [*MODEL, "head", *MEASURES], "anatomy")
    return table.sort_values([*MODEL, "head"], key=_ranked, kind="stable", ignore_index=True)


def read_probes(path: Path) -> pd.DataFrame:
    """A row per operator, relation, and whether a token may attend to itself; DataError for another file."""
    table = _read(path, PROBES, "probe")
    return table.sort_values("attention", key=_ranked, kind="stable", ignore_index=True)


def _read(path: Path, columns: list[str], command: str) -> pd.DataFrame:
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: no csv ({' '.join(str(error).split())}); run {command} again") from None
    if missing := [column for column in columns if column not in table]:
        raise DataError(f"{path}: no column '{missing[0]}'; run {command} again")
    if table.empty:
        raise DataError(f"{path}: no rows; run {command} again")
    return table


def _ranked(column: pd.Series) -> pd.Series:
    """Sizes and operators as their places in tables."""
    if column.name not in ORDERS:
        return column
    return column.map({name: rank for rank, name in enumerate(ORDERS[column.name](column))})
