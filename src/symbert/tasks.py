"""The tasks by name: those of the suites, and the user's own, which the configuration defines."""

import difflib
import re
from collections import ChainMap
from typing import Any

from symbert.errors import ConfigError, UsageError
from symbert.suites import SUITES, suite_of
from symbert.task import Layout, Suite, Task

METRICS_OF_CLASSES = ("accuracy", "f1", "matthews")
METRICS_OF_GRADES = ("pearson", "spearman")
COLUMNS_OF_TABLES = ("model", "size", "attention", "pretrain_seed", "step", "finetune_seed", "finetune_seeds")
COLUMNS_OF_TABLES += ("task", "column", *(suite.score for suite in SUITES.values()), "std", "mean_of_tasks")

GLUE: dict[str, Task] = SUITES["glue"].tasks
PUBLISHED = ChainMap(*(suite.tasks for suite in reversed(SUITES.values())))  # which names the last map's keys first
OWN: dict[str, Task] = {}
"""The tasks of the user's own."""


def task_named(name: str) -> Task:
    """The row of a task; UsageError suggests the nearest name."""
    known = {**PUBLISHED, **OWN}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(known)}"
    raise UsageError(f"unknown task '{name}'; {remedy}")


def suite_named(task: str) -> Suite:
    """The suite of a task by name; GLUE of one of the user's own."""
    return suite_of(task_named(task))


def tasks_of_sweep(suites: list[str], tasks: list[str]) -> list[str]:
    """The tasks that are fine-tuned: those of `tasks` that are of these suites or the user's own, and every task of a
    suite other than GLUE of which `tasks` names none.

    None where the only suites are those without fine-tuning. ConfigError for a task whose suite is not chosen, but for
    GLUE's, which the default names; and where none is left of suites that have some.
    """
    for name in tasks:
        if name in PUBLISHED and (suite := suite_of(PUBLISHED[name]).name) not in ("glue", *suites):
            raise ConfigError(f"config: 'sweep.tasks' has {name}, but 'sweep.suites' lacks {suite}; add it there")
    others = {name for suite in SUITES.values() if suite.name not in suites for name in suite.tasks}
    chosen = [name for name in tasks if name not in others]
    whole = [SUITES[name].tasks for name in suites if name != "glue" and SUITES[name].tasks.keys().isdisjoint(chosen)]
    fine_tuned = [*chosen, *(name for rows in whole for name in rows)]
    if not fine_tuned and any(SUITES[name].tasks for name in suites):
        raise ConfigError("config: 'sweep.suites' has none of the tasks of 'sweep.tasks'; add their suite")
    return fine_tuned


def tasks_of_suite(suite: str, tasks: list[str]) -> list[str]:
    """Those of `tasks` that are reported with a suite: the user's own with GLUE's."""
    return [name for name in tasks if suite_of(task_named(name)).name == suite]


def define(name: str, definition: dict[str, Any]) -> Task:
    """Make a task of the user's own known to this process: `definition` has the keys of `configuration.OwnTask`.

    ConfigError for a name that tables have already, for labels that are missing or repeated, and for a metric that does
    not fit them.
    """
    key, labels = f"config: 'tasks.{name}'", tuple(map(_label_name, definition["labels"] or ()))
    metrics = [definition["metric"]] if isinstance(definition["metric"], str) else definition["metric"]
    columns = (column for suite in SUITES.values() for column in suite.columns)
    taken = {*SUITES, *PUBLISHED, *columns, *COLUMNS_OF_TABLES}
    if name in taken or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise ConfigError(
            f"config: 'tasks' has '{name}', which is a task or column of this project or has more than letters, "
            "digits, '_' and '-'; choose another name"
        )
    if (definition["kind"] == "regression") == bool(labels):
        raise ConfigError(f"{key} has {'labels and' if labels else 'no labels, but not'} kind: regression; choose one")
    if len(set(labels)) < len(labels):
        raise ConfigError(f"{key}: 'labels' has one twice ({', '.join(labels)}); keep one of them")
    fitting = METRICS_OF_CLASSES if labels else METRICS_OF_GRADES
    for metric in metrics:
        if metric not in fitting or (metric == "f1" and len(labels) != 2):
            raise ConfigError(f"{key}: 'metric' is {metric}, which needs {_needed_by(metric)}; choose another")
    OWN[name] = Task(
        name,
        columns=("sentence",) if len(definition["columns"]) == 1 else ("sentence1", "sentence2"),
        labels=labels,
        head="classes" if labels else "grades",
        metrics=tuple(metrics),
        scores={"validation": name},
        layout=Layout(tuple(definition["columns"]), definition["label"]),
        files={split: definition[split] for split in ("train", "validation")},
    )
    return OWN[name]


def _label_name(label: str | int | bool) -> str:
    """YAML reads the words no and yes as truth values."""
    return ("no", "yes")[label] if isinstance(label, bool) else str(label)


def _needed_by(metric: str) -> str:
    if metric in METRICS_OF_GRADES:
        return "kind: regression"
    return "two labels" if metric == "f1" else "labels"
