"""Robustness records to one table, checked as scores are."""

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pandas as pd

from symbert.configuration import NoiseKind
from symbert.errors import MissingInputError
from symbert.files import flaws
from symbert.report.published import COLUMNS
from symbert.report.scores import (
    CELL,
    NULL,
    OF_CELLS,
    PROVENANCE_KEYS,
    REMEDY,
    Record,
    Types,
    cell_name,
    cell_of,
    duplicates,
    is_score,
    rank_of,
    read_records,
    refuse,
    stale,
)

NOISE, DOMAIN = "noise", "out-of-domain"  # kinds of sets
KINDS = get_args(NoiseKind)  # names of noise
REQUIRED: Types = {
    **CELL,
    "clean": (dict,),
    "sets": (dict,),
    "stand_in": (bool,),
    "settings_hash": (str, NULL),
}
FACTS: Types = {  # which a set has for every model of its task
    "kind": (str,),
    "name": (str,),
    "share": (int, float, NULL),
    "column": (str, NULL),
    "metrics": (list,),
    "rows": (int,),
    "official_rows": (int, NULL),
    "partial": (bool,),
}
MEASURED: Types = {"constant_prediction": (bool, NULL)}
SCORES = ("score", "majority")
SAME = 1e-9  # clean scores that differ by more are of two models


def read_robustness(files: list[Path], clean: pd.DataFrame, settings_hash: str | None) -> pd.DataFrame:
    """One row per set of every record: its cell, the set's facts, `score` and `majority` (0 to 1), flags.

    `label` is the column of tables that a row counts for: 'hans', or 'mixed_20' for 20 % of mixed noise. The score of
    the same model without noise is `clean` (NaN where the set has no column); the model `differs` where it was
    fine-tuned again and does not score as the table `clean` says.
    Rows are sorted as those of that table, which needs a record for each cell of a task that has any; other
    fine-tuning seeds are left out. DataError lists missing, unexpected, duplicate, stale, unknown and impossible ones;
    every model of a task needs the same sets with the same facts, and every share of noise the same columns. Noise on
    a column outside the GLUE score (wnli) is left out.
    """
    seeds, tasks = set(clean["finetune_seed"]), list(dict.fromkeys(clean["task"]))
    records = [record for file in sorted(files) for record in read_records(file, "robustness", REQUIRED, REMEDY)]
    records = [record for record in records if record["finetune_seed"] in seeds]
    known: dict[tuple, dict[str, float]] = defaultdict(dict)  # clean scores by cell and column
    for *cell, column, score in clean[[*CELL, "column", "score"]].itertuples(index=False):
        known[tuple(cell)][column] = score
    problems = [*duplicates(records), *stale(records, settings_hash), *_unlike_clean(records, clean)]
    problems += [*_impossible(records, set(clean["column"])), *_unscored(records, known)]
    refuse("robustness", problems, OF_CELLS)
    records.sort(key=lambda record: rank_of(record, tasks))
    sets = pd.DataFrame([row for record in records for row in _rows(record, known[cell_of(record)])])
    if len(sets):
        refuse("robustness", [*_repeated(sets), *_unlike(records), *_incomplete(sets)], OF_CELLS)
        sets = sets[(sets["kind"] == DOMAIN) | sets["column"].isin(COLUMNS)]
    if not len(sets):
        raise MissingInputError(
            "robustness: no record has a set that counts; choose other glue.robustness.noise or sets"
        )
    return sets.reset_index(drop=True)


def level_name(kind: str, share: float) -> str:
    """The label of a share of noise: 'mixed_20' for 20 %."""
    return f"{kind}_{100 * share:g}"


def _unlike_clean(records: list[Record], clean: pd.DataFrame) -> Iterator[str]:
    """Cells that only one of the two has, and those of another checkpoint, rows, precision or dropout.

    A task without any record needs none.
    """
    measured = {cell_of(record): [record.get(key) for key in PROVENANCE_KEYS] for record in records}
    of_tasks = clean[clean["task"].isin({record["task"] for record in records})]
    rows = of_tasks[[*CELL, *PROVENANCE_KEYS]].itertuples(index=False, name=None)
    wanted = {row[: len(CELL)]: row[len(CELL) :] for row in rows}
    yield from (f"missing: {cell_name(cell)}" for cell in sorted(wanted.keys() - measured))
    yield from (f"unexpected: {cell_name(cell)} has no clean score" for cell in sorted(measured.keys() - wanted))
    for cell in (cell for cell in measured if cell in wanted):
        for key, value, expected in zip(PROVENANCE_KEYS, measured[cell], wanted[cell], strict=True):
            if value != expected:
                yield f"stale: {cell_name(cell)} has {key} {value!s:.8}, its clean score {expected!s:.8}"


def _unscored(records: list[Record], known: dict[tuple, dict[str, float]]) -> Iterator[str]:
    """Clean scores that a model with sets lacks, or that are none."""
    for record in records:
        name, scores = cell_name(cell_of(record)), record["clean"]
        if (record["sets"] or scores) and scores.keys() != known.get(cell_of(record), scores).keys():
            yield f"incomplete: {name} has clean scores of {', '.join(sorted(scores)) or 'nothing'}"
        yield from (f"not a score: {name} {key} is {score}" for key, score in scores.items() if not is_score(score))


def _impossible(records: list[Record], columns: set[str]) -> Iterator[str]:
    for record in records:
        for name, facts in record["sets"].items():
            where = f"{cell_name(cell_of(record))} {name}"
            flawed = list(flaws(facts, {**FACTS, **MEASURED}))
            if flawed:
                yield f"malformed: {where} {' and '.join(flawed)}"
                continue
            is_known = facts["kind"] == DOMAIN
            if facts["kind"] == NOISE:
                is_known = facts["name"] in KINDS and facts["column"] in columns and 0 < (facts["share"] or 0) <= 1
            if not is_known:
                yield f"unknown: {where} is {facts['kind']} {facts['name']} of column {facts['column']}"
            for key in SCORES:
                if not is_score(facts.get(key)):
                    yield f"not a score: {where} has the {key} {facts.get(key)}"


def _repeated(sets: pd.DataFrame) -> Iterator[str]:
    """Sets that a record has under two names."""
    counts = sets.fillna({"column": "None"}).groupby([*CELL, "label", "column"], sort=False).size()
    for (*cell, label, column), count in counts[counts > 1].items():
        yield f"duplicate: {cell_name(tuple(cell))} has {label} of column {column} {count} times"


def _unlike(records: list[Record]) -> Iterator[str]:
    """Models of a task that were scored on different sets, or on sets that differ."""
    first: dict[str, Record] = {}
    for record in records:
        other = first.setdefault(record["task"], record)
        mine, theirs = (
            {name: [facts[key] for key in (*FACTS, "majority")] for name, facts in each["sets"].items()}
            for each in (record, other)
        )
        different = [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]
        if different:
            yield f"unlike: {cell_name(cell_of(record))} and {cell_name(cell_of(other))} in {', '.join(different)}"


def _incomplete(sets: pd.DataFrame) -> Iterator[str]:
    """Noise that one score column has and another lacks, and out-of-domain sets that several tasks have."""
    noise, domains = (sets[sets["kind"] == kind] for kind in (NOISE, DOMAIN))
    for label, columns in noise.groupby("label", sort=False)["column"]:
        yield from (f"missing: {label} of {column}" for column in sorted(set(noise["column"]) - set(columns)))
    for name, tasks in domains.groupby("name", sort=False)["task"]:
        if tasks.nunique() > 1:
            yield f"duplicate: set {name} is there for {' and '.join(sorted(set(tasks)))}"


def _rows(record: Record, known: dict[str, float]) -> Iterator[Record]:
    """A row per set of a record; `known` are the scores of the same model in Table 3."""
    clean = record["clean"]
    differs = any(abs(score - known[column]) > SAME for column, score in clean.items())
    for facts in record["sets"].values():
        yield {
            **{key: record[key] for key in (*CELL, "stand_in")},
            "differs": differs,
            "label": level_name(facts["name"], facts["share"]) if facts["kind"] == NOISE else facts["name"],
            "clean": clean.get(facts["column"], math.nan),
            **{key: facts[key] for key in (*FACTS, *MEASURED, *SCORES)},
        }
