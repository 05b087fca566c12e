"""Score files to one table in which every cell is there once, current and finite; or an error that lists the rest.

A cell is a fine-tuning seed of a model on a task. Score files and robustness files hold records of cells, which are
read and checked alike.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError, MissingInputError
from symbert.files import flaws, read_json
from symbert.glue.metrics import checked
from symbert.glue.tasks import task_named
from symbert.report.order import model_rank

Record = dict[str, Any]
Types = Mapping[str, tuple[type, ...]]  # what a JSON value may be, by key

NULL = type(None)
CELL: Types = {
    "size": (str,),
    "attention": (str,),
    "pretrain_seed": (int,),
    "step": (int,),
    "task": (str,),
    "finetune_seed": (int,),
}
FLAGS: Types = {"partial": (bool,), "stand_in": (bool,), "constant_prediction": (bool, NULL)}  # null: nobody knows
REQUIRED: Types = {**CELL, "metrics": (dict,), "majority": (dict, NULL), "settings_hash": (str, NULL), **FLAGS}
BY_DEVICE = ("precision", "attention_dropout")  # that the device decides; the second for the recipe fast only
PROVENANCE_KEYS = ("checkpoint_sha256", "data_sha256", *BY_DEVICE)  # which imported scores do not have
COLUMNS = (*CELL, *FLAGS, *PROVENANCE_KEYS, "column", "score", "details", "majority")
REMEDY = "delete it and run again"  # of a file
OF_CELLS = "delete their files and run again"
LISTED = 20  # problems that an error names


def read_scores(
    files: list[Path],
    tasks: list[str],
    finetune_seeds: list[int],
    settings_hash: str | None = None,
    allow_missing: bool = False,
    runs: Iterable[Sequence[str | int]] = (),
) -> pd.DataFrame:
    """One row per score column of every record: its cell, flags, provenance, `column`, `score`, `details`, `majority`.

    Scores are 0 to 1; `details` are metrics by name; the majority is NaN where a record has none. Rows are sorted by
    model, step, task and seed, whatever the order of the files; other fine-tuning seeds are left out.
    DataError lists missing, duplicate, stale and impossible cells. Every model of a size needs every task and seed at
    every step of that size, and all of `runs` (size, attention, pretrain_seed) are needed, unless cells may be missing,
    as those of imported scores, which have no settings.
    A cell is stale when its settings are not those of `settings_hash` (None, for imported scores: any), its seeds have
    different ones, or most cells have another precision or attention dropout, or most of its task other rows.
    MissingInputError when no record is of these seeds.
    """
    every = [record for file in sorted(files) for record in read_records(file, "score", REQUIRED, REMEDY)]
    records = [record for record in every if record["finetune_seed"] in finetune_seeds]
    if not records:
        others = sorted({record["finetune_seed"] for record in every})
        raise MissingInputError(f"scores: no record is of fine-tuning seeds {finetune_seeds}; choose among {others}")
    problems = [*duplicates(records), *stale(records, settings_hash), *_impossible(records, tasks)]
    problems += _outliers(records, "data_sha256", ("task",))
    problems += [problem for key in BY_DEVICE for problem in _outliers(records, key, ())]
    imported = all(record["settings_hash"] is None for record in records)
    problems += [] if allow_missing or imported else _missing(records, tasks, finetune_seeds, runs)
    if imported:
        refuse("scores", problems, "these scores are imported: import a directory that has each of them once")
    refuse("scores", problems, OF_CELLS)
    records.sort(key=lambda record: rank_of(record, tasks))
    return table_of(records)


def table_of(records: list[Record]) -> pd.DataFrame:
    """A row per score column of every record."""
    rows = [
        {key: record.get(key) for key in (*CELL, *FLAGS, *PROVENANCE_KEYS)}
        | {"column": column, "score": float(record["metrics"][column])}
        | {"details": (record.get("details") or {}).get(column)}
        | {"majority": float((record["majority"] or {}).get(column, math.nan))}
        for record in records
        for column in task_named(record["task"]).scores.values()
        if column in record["metrics"]
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def majority_of(scores: pd.DataFrame) -> dict[str, float]:
    """The majority baseline of each score column that has one; DataError when models were scored on different rows."""
    baselines = scores.groupby("column", sort=False)["majority"].agg(lambda values: sorted(set(values.dropna())))
    for column, values in baselines.items():
        if len(values) > 1:
            raise DataError(
                f"scores: column {column} has majority baselines {values[0]:.4f} and {values[1]:.4f}; "
                "models were scored on different rows; delete their scores and run again"
            )
    return {str(column): values[0] for column, values in baselines.items() if values}


def read_records(file: Path, what: str, types: Types, remedy: str) -> Iterator[Record]:
    """The records of a file, each with these keys and values of their types; DataError names the file."""
    records = read_json(file, remedy=remedy)
    if not isinstance(records, list):
        raise DataError(f"{file}: expected a list of {what} records, found {type(records).__name__}; {remedy}")
    if not records:
        raise DataError(f"{file}: no {what} record in it; {remedy}")
    for number, record in enumerate(records, start=1):
        for flaw in flaws(record, types):
            raise DataError(f"{file}: {what} record {number} {flaw}; {remedy}")
        yield checked(record, f"{file}: {what} record {number}", remedy)


def task_in(file: Path) -> str:
    """The task that a file of scores is of."""
    return next(read_records(file, "score", REQUIRED, REMEDY))["task"]


def cell_of(record: Record) -> tuple:
    """The key of a record."""
    return tuple(record[key] for key in CELL)


def cell_name(cell: tuple) -> str:
    """A cell in words: 'tiny-original/seed-1/step-1600/rte finetune_seed 3'; it may lack the fine-tuning seed."""
    size, attention, pretrain_seed, step, task, *seeds = cell
    path = f"{size}-{attention}/seed-{pretrain_seed}/step-{step}/{task}"
    return " ".join([path, *(f"finetune_seed {seed}" for seed in seeds)])


def rank_of(record: Record, tasks: list[str]) -> tuple:
    """Sort key of a record: by model, step, task in the order of `tasks`, and seed."""
    model = model_rank(record["size"], record["attention"])
    return *model, record["pretrain_seed"], record["step"], tasks.index(record["task"]), record["finetune_seed"]


def duplicates(records: list[Record]) -> Iterator[str]:
    """A line for each cell that several records have."""
    for cell, count in Counter(map(cell_of, records)).items():
        if count > 1:
            yield f"duplicate: {cell_name(cell)} is there {count} times"


def stale(records: list[Record], expected: str | None) -> Iterator[str]:
    """A line for each cell, whatever its seed, of other settings than expected (None: any) or of different ones."""
    hashes = defaultdict(set)
    for record in records:
        hashes[cell_of(record)[:-1]].add(record["settings_hash"])
    wanted = f", expected {expected}" if expected is not None else ""
    for cell, known in hashes.items():
        if len(known) > 1 or (wanted and expected not in known):
            yield f"stale: {cell_name(cell)} has settings {' and '.join(sorted(map(str, known)))}{wanted}"


def refuse(what: str, problems: list[str], remedy: str) -> None:
    """DataError that lists the first problems and counts the others; nothing without problems."""
    more = f"; and {len(problems) - LISTED} more" if len(problems) > LISTED else ""
    if problems:
        raise DataError(f"{what}: {'; '.join(problems[:LISTED])}{more}; {remedy}")


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number; Python would count with true as 1."""
    return type(value) in (int, float) and math.isfinite(value)


def is_score(value: Any) -> bool:
    """Whether a value is a number from -1 to 1."""
    return is_number(value) and -1 <= value <= 1


def _outliers(records: list[Record], key: str, alike: tuple[str, ...]) -> Iterator[str]:
    """A line for each cell, whatever its seed, in which `key` is not as in most of the records that are `alike`."""
    groups = defaultdict(list)
    for record in records:
        groups[tuple(record[name] for name in alike)].append(record)
    for group in groups.values():
        (usual, _), *others = Counter(str(record.get(key)) for record in group).most_common()
        for other, _ in others:
            cells = dict.fromkeys(cell_of(record)[:-1] for record in group if str(record.get(key)) == other)
            yield from (f"stale: {cell_name(cell)} has {key} {other:.8}, most have {usual:.8}" for cell in cells)


def _impossible(records: list[Record], tasks: list[str]) -> Iterator[str]:
    for record in records:
        name, metrics = cell_name(cell_of(record)), record["metrics"]
        majority = record["majority"] if record["majority"] is not None else dict.fromkeys(metrics, 0.0)
        if record["task"] not in tasks:
            yield f"unexpected: {name} is not among the experiment's tasks"
            continue
        columns, is_imported = set(task_named(record["task"]).scores.values()), record["settings_hash"] is None
        some_are_enough = is_imported and metrics and set(metrics) < columns
        if (set(metrics) != columns and not some_are_enough) or set(majority) != set(metrics):
            yield f"incomplete: {name} has columns {', '.join(sorted(metrics))}"
        for column, score in (*metrics.items(), *majority.items()):
            if not is_score(score):
                yield f"not a score: {name} {column} is {score}"


def _missing(
    records: list[Record], tasks: list[str], finetune_seeds: list[int], runs: Iterable[Sequence[str | int]]
) -> Iterator[str]:
    present = set(map(cell_of, records))
    for size, attention, pretrain_seed in runs:
        if (size, attention, pretrain_seed) not in {cell[:3] for cell in present}:
            yield f"missing: {size}-{attention}/seed-{pretrain_seed}, every score"
    models, steps = defaultdict(set), defaultdict(set)
    for size, attention, pretrain_seed, step, *_ in present:
        models[size].add((attention, pretrain_seed))
        steps[size].add(step)
    for size in sorted(models):
        for model, step, *rest in product(sorted(models[size]), sorted(steps[size]), tasks, sorted(finetune_seeds)):
            if (cell := (size, *model, step, *rest)) not in present:
                yield f"missing: {cell_name(cell)}"
