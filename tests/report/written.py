"""Collections and exhibits from the data that a test gives."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.glue.tasks import SUITES
from symbert.paths import Run
from symbert.report.collect import (
    RUN,
    Collection,
    PretrainedRun,
    checked_runs,
    pretrained,
    read_inputs,
    read_run,
    runs_of,
)
from symbert.report.exhibits import EXHIBITS
from symbert.report.formats import Table, write_table
from symbert.report.style import write_plot

INPUTS = {"hosts": "runs_of_others"}
SEEDS = ("finetune_seeds", "curve_seeds")


def collected(settings: ReportSettings | None = None, suite: str = "glue", **given: Any) -> Collection:
    """A collection from files by the names of inputs, `hosts` being the runs of other hosts; scores and checkpoints are
    those of `suite`. Fields that are no files stand as they are: tables, counts, seeds.

    The machines of runs are read where these have a timing.json.
    """
    given = {name: value for name, value in given.items() if value is not None and not _is_empty(value)}
    fields_given = {name: value for name, value in given.items() if not _is_of_files(value)}
    inputs = {INPUTS.get(name, name): value for name, value in given.items() if name not in fields_given}
    inputs |= {name: {suite: inputs[name]} for name in ("scores", "curve") if name in inputs}
    inputs |= {name: [inputs[name]] for name in ("anatomy", "probes") if name in inputs}
    seeds = {name: fields_given.pop(name, ()) for name in SEEDS}
    runs = [folder for name in ("runs", "runs_of_others") for folder in inputs.get(name, [])]
    if runs and all((folder / "timing.json").exists() for folder in runs):
        fields_given["machines"] = [pretrained(read_run(folder)) for folder in runs]
    if settings is None:
        return Collection(**fields_given)
    with mock.patch("symbert.report.collect.pretrained", _without_sessions):
        data = read_inputs(settings, inputs, **seeds)
    return replace(data, **fields_given)


def _without_sessions(run: dict[str, Any]) -> PretrainedRun:
    return PretrainedRun(Run(*(run[key] for key in RUN), run["host"]), run["done"], [])


def read_runs(folders: list[Path], steps: int, wanted: Iterable[tuple] = ()) -> pd.DataFrame:
    """The losses of encoders in folders, all of so many steps."""
    wanted = [("encoder", *run) for run in wanted]
    return runs_of(checked_runs([read_run(folder) for folder in folders], {"encoder": steps}, wanted))


def _is_empty(value: Any) -> bool:
    return isinstance(value, list) and not value


def _is_of_files(value: Any) -> bool:
    return isinstance(value, Path) or (isinstance(value, list) and any(isinstance(item, Path) for item in value))


def unchecked() -> Any:
    """Where scores are missing, as those of imports may be: what is made of them is tested with records of ours."""
    return mock.patch("symbert.report.collect.refuse")


def write_exhibit(name: str, output: list[Path], **given: Any) -> None:
    """Write an exhibit by its kind and name, as 'table-corpus'; of one per size, that of the only size."""
    kind, _, name = name.partition("-")
    suite = next((suite for suite in SUITES if name.startswith(suite)), "glue")
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
