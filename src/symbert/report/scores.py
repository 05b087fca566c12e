"""Score files to one table in which every cell is there once, current and finite; or an error that lists the rest."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from symbert.errors import DataError, MissingInputError
from symbert.glue.tasks import task_named
from symbert.report.records import (
    CELL,
    NULL,
    Record,
    Types,
    cell_of,
    duplicates,
    is_score,
    name_of,
    rank_of,
    read_records,
    refuse,
    stale,
    unlike_the_rest,
)

FLAGS: Types = {"partial": (bool,), "stand_in": (bool,), "constant_prediction": (bool, NULL)}  # null: nobody knows
REQUIRED: Types = {**CELL, "metrics": (dict,), "majority": (dict, NULL), "settings_hash": (str, NULL), **FLAGS}
REMEDY = "run the finetune rule for these again"
DECIDED = ("precision", "attention_dropout")  # by the device; the second for the recipe fast only
MADE = ("checkpoint_sha256", "data_sha256", *DECIDED)  # of what and how a model was made; imported ones do not say
COLUMNS = (*CELL, *FLAGS, *MADE, "column", "score", "majority")


def read_scores(
    files: list[Path],
    tasks: list[str],
    finetune_seeds: list[int],
    settings_hash: str | None = None,
    allow_missing: bool = False,
    runs: Iterable[Sequence[str | int]] = (),
) -> pd.DataFrame:
    """One row per score column of every record: the cell's key, flags, what made it, `column`, `score` and `majority`.

    Scores are 0 to 1. Rows are sorted by model, step, task and seed, whatever the order of the files; other
    fine-tuning seeds are left out. DataError lists missing, duplicate, stale and impossible cells. Every model of a
    size needs every task and seed at every step of that size, and there are all of `runs` (size, attention,
    pretrain_seed), unless cells may be missing; a cell is stale when its
    settings are not those of `settings_hash` (None, for imported scores: any), its seeds have different ones, or most
    cells have another precision or attention dropout, or most of its task other rows. The majority is NaN where a
    record has none.
    MissingInputError when no record is of these seeds.
    """
    records = [record for file in sorted(files) for record in read_records(file, "score", REQUIRED, REMEDY)]
    records = _of_seeds(records, finetune_seeds)
    problems = [*duplicates(records), *stale(records, settings_hash), *_impossible(records, tasks)]
    problems += [*unlike_the_rest(records, "data_sha256", ("task",))]
    problems += [problem for key in DECIDED for problem in unlike_the_rest(records, key, ())]
    problems += [] if allow_missing else [*_absent(records, runs), *_missing(records, tasks, finetune_seeds)]
    refuse("scores", problems, _remedy(records))
    records.sort(key=lambda record: rank_of(record, tasks))
    return pd.DataFrame([row for record in records for row in _rows(record)], columns=COLUMNS)


def majority_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """The same table with the scores of the majority baseline."""
    return scores.assign(score=scores["majority"])


def majority_of(scores: pd.DataFrame) -> dict[str, float]:
    """The majority baseline of each score column that has one; DataError when models were scored on different rows."""
    baselines = scores.groupby("column", sort=False)["majority"].agg(lambda values: sorted(set(values.dropna())))
    for column, values in baselines.items():
        if len(values) > 1:
            raise DataError(
                f"scores: column {column} has majority baselines {values[0]:.4f} and {values[1]:.4f}; "
                "models were scored on different rows: run the finetune rule again"
            )
    return {str(column): values[0] for column, values in baselines.items() if values}


def _of_seeds(records: list[Record], finetune_seeds: list[int]) -> list[Record]:
    """The records of these seeds; without any, nothing could be missing."""
    wanted = [record for record in records if record["finetune_seed"] in finetune_seeds]
    if not wanted:
        found = sorted({record["finetune_seed"] for record in records})
        raise MissingInputError(f"scores: no record is of fine-tuning seeds {finetune_seeds}; choose among {found}")
    return wanted


def _impossible(records: list[Record], tasks: list[str]) -> Iterator[str]:
    for record in records:
        name, metrics = name_of(cell_of(record)), record["metrics"]
        majority = record["majority"] if record["majority"] is not None else dict.fromkeys(metrics, 0.0)
        if record["task"] not in tasks:
            yield f"unexpected: {name} is not among the experiment's tasks"
            continue
        if set(metrics) != set(_columns(record["task"])) or set(majority) != set(metrics):
            yield f"incomplete: {name} has columns {', '.join(sorted(metrics))}"
        for column, score in (*metrics.items(), *majority.items()):
            if not is_score(score):
                yield f"not a score: {name} {column} is {score}"


def _absent(records: list[Record], runs: Iterable[Sequence[str | int]]) -> Iterator[str]:
    present = {cell_of(record)[:3] for record in records}
    for size, attention, pretrain_seed in runs:
        if (size, attention, pretrain_seed) not in present:
            yield f"missing: {size}-{attention}/seed-{pretrain_seed}, every score"


def _missing(records: list[Record], tasks: list[str], finetune_seeds: list[int]) -> Iterator[str]:
    present = {cell_of(record) for record in records}
    models, steps = defaultdict(set), defaultdict(set)
    for size, attention, pretrain_seed, step, *_ in present:
        models[size].add((attention, pretrain_seed))
        steps[size].add(step)
    for size in sorted(models):
        for model, step, *rest in product(sorted(models[size]), sorted(steps[size]), tasks, sorted(finetune_seeds)):
            cell = (size, *model, step, *rest)
            if cell not in present:
                yield f"missing: {name_of(cell)}"


def _remedy(records: list[Record]) -> str:
    if records and all(record["settings_hash"] is None for record in records):
        return "these scores are imported: import a directory that has each of them once"
    return REMEDY


def _columns(task: str) -> Iterable[str]:
    return task_named(task).scores.values()


def _rows(record: Record) -> Iterator[Record]:
    majority = record["majority"] or {}
    for column in _columns(record["task"]):
        yield {
            **{key: record[key] for key in (*CELL, *FLAGS)},
            **{key: record.get(key) for key in MADE},
            "column": column,
            "score": float(record["metrics"][column]),
            "majority": float(majority.get(column, math.nan)),
        }
