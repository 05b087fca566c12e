"""Collections and exhibits from the data that a test gives."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
from msgspec import structs

from symbert.configuration import Configuration, Curve, ReportSettings
from symbert.experiment.project import PROJECT, read_config
from symbert.glue.tasks import SUITES
from symbert.report.collect import Collection, checked_runs, read_inputs, read_run, runs_of
from symbert.report.exhibits import EXHIBITS
from symbert.report.formats import Table, Words, write_table
from symbert.report.style import write_figure

SWEEP = {
    "architectures": ["encoder"],
    "sizes": [],
    "attention": [],
    "pretrain_seeds": [1],
    "finetuned_pretrain_seeds": None,
}
SWEEP |= {"untrained": False, "finetune_seeds": []}
SWEEP |= {"suites": ["glue"], "tasks": ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]}


def collected(
    experiment: ReportSettings | None = None, suite: str = "glue", sweep: dict[str, Any] | None = None, **given: Any
) -> Collection:
    """A collection from files by the names of inputs, scores and checkpoints those of `suite`, and what the sweep asks
    for. What is no files is a field as it stands: tables, counts. Runs need no timing.json."""
    files = {name: value for name, value in given.items() if _is_of_files(value)}
    fields = {name: value for name, value in given.items() if name not in files}
    if experiment is None:
        return Collection(**fields)
    files |= {name: {suite: files[name]} for name in ("scores", "curve") if name in files}
    files |= {name: [files[name]] for name in ("anatomy",) if name in files}
    with mock.patch("symbert.report.collect.machine_of", dict):
        return replace(read_inputs(experiment, asking_for(**(sweep or {})), files), **fields)


@cache
def _demo() -> Configuration:
    return read_config(PROJECT)


def asking_for(**sweep: Any) -> Configuration:
    """The demo with a sweep that asks for nothing but this."""
    config, curve = _demo(), {"sizes": [], "finetune_seeds": [1], "steps": {}, **sweep.pop("curve", {})}
    changes = {**SWEEP, **sweep, "curve": Curve(**curve)}
    return structs.replace(config, sweep=structs.replace(config.sweep, **changes))


def read_runs(folders: list[Path], steps: int, wanted: Iterable[tuple] = ()) -> pd.DataFrame:
    """The losses of encoders in folders, all of so many steps."""
    wanted = [("encoder", *run) for run in wanted]
    return runs_of(checked_runs([read_run(folder) for folder in folders], {"encoder": steps}, wanted))


def _is_of_files(value: Any) -> bool:
    return isinstance(value, Path) or (isinstance(value, list) and any(isinstance(item, Path) for item in value))


def unchecked() -> Any:
    """Where scores are missing, as those of imports may be: what is made of them is tested with records of ours."""
    return mock.patch("symbert.report.collect.check")


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
            return write_table(made, Words(name, exhibit.caption, ""), output)
        if not isinstance(made, Table) and kind == "figure":
            return write_figure(made, "", output)
    raise KeyError(name)
