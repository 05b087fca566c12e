"""Collections and exhibits from the data that a test gives."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.report.collect import Collection, read_inputs
from symbert.report.exhibits import EXHIBITS
from symbert.report.formats import Table, write_table
from symbert.report.plots import write_plot

FIELDS = {field.name for field in fields(Collection)}
SEEDS = ("finetune_seeds", "curve_seeds")


def collected(settings: ReportSettings | None = None, suite: str = "glue", **given: Any) -> Collection:
    """A collection of files by the names of inputs; scores and checkpoints are those of a suite.

    What is no file stands as it is: tables, counts, seeds.
    """
    if settings is None:
        return Collection(**given)
    inputs = {name: {suite: given.pop(name)} for name in ("scores", "curve") if name in given}
    seeds = {name: given.pop(name) for name in SEEDS if name in given}
    made = {name: given.pop(name) for name in list(given) if isinstance(given[name], (pd.DataFrame, dict))}
    made |= {name: given.pop(name) for name in ("pretrain_seeds", "machines") if name in given}
    data = read_inputs(settings, inputs | given, **seeds)
    return Collection(**{field: getattr(data, field) for field in FIELDS} | made)


def write_exhibit(name: str, output: list[Path], suite: str = "glue", **given: Any) -> None:
    """Write an exhibit by its kind and name, as 'table-corpus'; of one per size, that of the only size."""
    kind, _, name = name.partition("-")
    data = collected(suite=suite, **given)
    for exhibit in (each for exhibits in EXHIBITS.values() for each in exhibits if each.name == name):
        made = exhibit.function(data)
        if isinstance(made, dict):
            (made,) = made.values()
        if isinstance(made, Table) and kind == "table":
            return write_table(made, output)
        if not isinstance(made, Table) and kind == "figure":
            return write_plot(made, exhibit.caption, output)
    raise KeyError(name)
