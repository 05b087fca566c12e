"""Score files to one table in which every cell is there once, current and finite; or an error that lists the rest."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError
from symbert.files import read_json
from symbert.glue.tasks import task_named
from symbert.report.order import model_rank

RUN = ("size", "attention", "pretrain_seed")
CELL = (*RUN, "step", "task", "finetune_seed")
REQUIRED = (*CELL, "metrics", "majority", "settings_hash", "partial", "constant_prediction")
LISTED = 20  # problems that an error names

Record = dict[str, Any]


def read_scores(files: list[Path], tasks: list[str], finetune_seeds: list[int]) -> pd.DataFrame:
    """One row per score column of every record: the cell's key, `column`, `score` and `majority` (0 to 1), flags.

    Rows are sorted by model, step, task and seed, whatever the order of the files; other fine-tuning seeds
    are left out. DataError lists missing, duplicate, stale and impossible cells. Every model of a size needs
    every task and seed at every step of that size; a cell is stale when its seeds have different settings.
    """
    records = [record for file in sorted(files) for record in _records(file)]
    records = [record for record in records if record["finetune_seed"] in finetune_seeds]
    problems = [*_duplicate(records), *_stale(records), *_impossible(records, tasks)]
    problems += _missing(records, tasks, finetune_seeds)
    if problems:
        rest = len(problems) - LISTED
        more = f"; and {rest} more" if rest > 0 else ""
        raise DataError(f"scores: {'; '.join(problems[:LISTED])}{more}; run the finetune rule for these again")
    records.sort(key=lambda record: _order(record, tasks))
    return pd.DataFrame([row for record in records for row in _rows(record)])


def majority_of(scores: pd.DataFrame) -> dict[str, float]:
    """The majority baseline of each score column; DataError when models were scored on different rows."""
    baselines = scores.groupby("column", sort=False)["majority"].agg(lambda values: sorted(set(values)))
    for column, values in baselines.items():
        if len(values) > 1:
            raise DataError(
                f"scores: column {column} has majority baselines {values[0]:.4f} and {values[1]:.4f}; "
                "models were scored on different rows: run the finetune rule again"
            )
    return {str(column): values[0] for column, values in baselines.items()}


def _records(file: Path) -> Iterator[Record]:
    records = read_json(file)
    if not isinstance(records, list):
        raise DataError(f"{file}: expected a list of score records, found {type(records).__name__}")
    for number, record in enumerate(records, start=1):
        for key in REQUIRED:
            if not isinstance(record, dict) or key not in record:
                raise DataError(f"{file}: record {number} has no '{key}'; run the finetune rule again")
        yield record


def _duplicate(records: list[Record]) -> Iterator[str]:
    for cell, count in Counter(_cell(record) for record in records).items():
        if count > 1:
            yield f"duplicate: {_name(cell)} is there {count} times"


def _stale(records: list[Record]) -> Iterator[str]:
    hashes = defaultdict(set)
    for record in records:
        hashes[_cell(record)[:-1]].add(record["settings_hash"])
    for cell, found in hashes.items():
        if len(found) > 1:
            yield f"stale: {_name(cell)} has settings {' and '.join(sorted(found))}"


def _impossible(records: list[Record], tasks: list[str]) -> Iterator[str]:
    for record in records:
        name, metrics = _name(_cell(record)), record["metrics"]
        if record["task"] not in tasks:
            yield f"unexpected: {name} is not among the experiment's tasks"
            continue
        if set(metrics) != set(_columns(record["task"])) or set(record["majority"]) != set(metrics):
            yield f"incomplete: {name} has columns {', '.join(sorted(metrics))}"
        for column, score in metrics.items():
            if not (isinstance(score, int | float) and math.isfinite(score) and -1 <= score <= 1):
                yield f"not a score: {name} {column} is {score}"


def _missing(records: list[Record], tasks: list[str], finetune_seeds: list[int]) -> Iterator[str]:
    present = {_cell(record) for record in records}
    models, steps = defaultdict(set), defaultdict(set)
    for size, attention, pretrain_seed, step, *_ in present:
        models[size].add((attention, pretrain_seed))
        steps[size].add(step)
    for size in sorted(models):
        for model, step, *rest in product(sorted(models[size]), sorted(steps[size]), tasks, sorted(finetune_seeds)):
            cell = (size, *model, step, *rest)
            if cell not in present:
                yield f"missing: {_name(cell)}"


def _cell(record: Record) -> tuple:
    return tuple(record[key] for key in CELL)


def _name(cell: tuple) -> str:
    size, attention, pretrain_seed, step, task, *seeds = cell
    path = f"{size}-{attention}/seed-{pretrain_seed}/step-{step}/{task}"
    return " ".join([path, *(f"finetune_seed {seed}" for seed in seeds)])


def _columns(task: str) -> Iterable[str]:
    return task_named(task).scores.values()


def _order(record: Record, tasks: list[str]) -> tuple:
    model = model_rank(record["size"], record["attention"])
    return *model, record["pretrain_seed"], record["step"], tasks.index(record["task"]), record["finetune_seed"]


def _rows(record: Record) -> Iterator[Record]:
    for column in _columns(record["task"]):
        yield {
            **{key: record[key] for key in (*CELL, "partial", "constant_prediction")},
            "column": column,
            "score": float(record["metrics"][column]),
            "majority": float(record["majority"][column]),
        }
