"""Records, one per cell (a fine-tuning seed of a model on a task): read, named, ordered, and what makes them doubtful.

Score files and robustness files hold such records; each kind has checks of its own beside these.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from symbert.errors import DataError
from symbert.files import flaws, read_json
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
LISTED = 20  # problems that an error names


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
        yield record


def cell_of(record: Record) -> tuple:
    """The key of a record."""
    return tuple(record[key] for key in CELL)


def name_of(cell: tuple) -> str:
    """A cell in words: 'tiny-original/seed-1/step-2400/rte finetune_seed 3'; it may lack the fine-tuning seed."""
    size, attention, pretrain_seed, step, task, *seeds = cell
    path = f"{size}-{attention}/seed-{pretrain_seed}/step-{step}/{task}"
    return " ".join([path, *(f"finetune_seed {seed}" for seed in seeds)])


def rank_of(record: Record, tasks: list[str]) -> tuple:
    """Sort key of a record: by model, step, task in the order of `tasks`, and seed."""
    model = model_rank(record["size"], record["attention"])
    return *model, record["pretrain_seed"], record["step"], tasks.index(record["task"]), record["finetune_seed"]


def duplicates(records: list[Record]) -> Iterator[str]:
    """A line for each cell that several records have."""
    for cell, count in Counter(cell_of(record) for record in records).items():
        if count > 1:
            yield f"duplicate: {name_of(cell)} is there {count} times"


def stale(records: list[Record], expected: str | None) -> Iterator[str]:
    """A line for each cell, whatever its seed, of other settings than expected (None: any) or of different ones."""
    hashes = defaultdict(set)
    for record in records:
        hashes[cell_of(record)[:-1]].add(record["settings_hash"])
    wanted = f", expected {expected}" if expected is not None else ""
    for cell, found in hashes.items():
        if len(found) > 1 or (wanted and expected not in found):
            yield f"stale: {name_of(cell)} has settings {' and '.join(sorted(map(str, found)))}{wanted}"


def unlike_the_rest(records: list[Record], key: str, alike: tuple[str, ...]) -> Iterator[str]:
    """A line for each cell, whatever its seed, in which `key` is not as in most of the records that are `alike`."""
    groups = defaultdict(list)
    for record in records:
        groups[tuple(record[name] for name in alike)].append(record)
    for group in groups.values():
        (usual, _), *others = Counter(str(record.get(key)) for record in group).most_common()
        for found, _ in others:
            cells = dict.fromkeys(cell_of(record)[:-1] for record in group if str(record.get(key)) == found)
            yield from (f"stale: {name_of(cell)} has {key} {found:.8}, most have {usual:.8}" for cell in cells)


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number; Python would count with true as 1."""
    return type(value) in (int, float) and math.isfinite(value)


def is_score(value: Any) -> bool:
    """Whether a value is a number from -1 to 1."""
    return is_number(value) and -1 <= value <= 1


def refuse(what: str, problems: list[str], remedy: str) -> None:
    """DataError that lists the problems and says how many more there are; nothing when there are none."""
    rest = len(problems) - LISTED
    more = f"; and {rest} more" if rest > 0 else ""
    if problems:
        raise DataError(f"{what}: {'; '.join(problems[:LISTED])}{more}; {remedy}")
