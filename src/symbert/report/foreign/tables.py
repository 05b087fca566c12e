"""Plain tables of scores, csv or parquet: a row per score, and what is accepted in their cells."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from symbert.errors import DataError
from symbert.report.foreign.rows import METRIC_ALIASES, Row, frame_of, normal, run_of, task_of, whole_number
from symbert.task import Task

SUFFIXES = (".csv", ".tsv", ".parquet")
REQUIRED = ("task", "finetune_seed", "score")  # and model or operator
OPTIONAL = ("model", "size", "operator", "pretrain_seed", "step", "metric", "rows")
COLUMN_ALIASES = {"seed": "finetune_seed", "attention": "operator"}
NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?", re.IGNORECASE)
SHARES = ("accuracy", "f1")  # metrics of which less than one percent is no model's
NAMED = 5  # rows that a line of notes names


def recognizes(file: Path) -> bool:
    """Whether a file is a table with the columns `task` and `score`."""
    if file.suffix.lower() not in SUFFIXES:
        return False
    try:
        return {"task", "score"} <= set(map(_column, _header(file)))
    except (DataError, ValueError):
        return False


def read(file: Path) -> tuple[list[Row], list[str]]:
    """The rows of a table, and lines on what was left out of it.

    Scores are shares of one, or percentages in a file that has any above 1; with a percent sign they are percentages.
    DataError names the row of what is no score, task, seed or step, and columns that are missing.
    """
    columns = Counter(map(_column, _header(file)))
    for column in (*REQUIRED, *columns):
        if columns[column] != 1:
            raise DataError(f"{file}: {columns[column] or 'no'} columns '{column}', expected one")
    if not {"model", "operator"} & columns.keys():
        raise DataError(f"{file}: no column 'model' or 'operator'; add one")
    rows, marked, empty, unknown = [], [], [], Counter()
    for origin, given in read_cells(file):
        cells = {_column(name): cell for name, cell in given.items()}
        metric = normal(str(cells.get("metric") or ""))
        if cells["score"] == "":
            empty.append(origin.rpartition(":")[2])
        elif metric not in METRIC_ALIASES:
            unknown[metric] += 1
        else:
            value, has_sign = _number(cells["score"], origin)
            task, column = task_of(str(cells["task"]), origin)
            if cells["finetune_seed"] == "":
                raise DataError(f"{origin}: no finetune_seed; number the runs of a model")
            count = cells.get("rows", "")
            rows.append(
                run_of(cells, origin)
                | {"task": task.name, "column": column, "metric": METRIC_ALIASES[metric], "value": value}
                | {"rows": None if count == "" else whole_number(count, "rows", origin), "origin": origin}
            )
            marked.append(has_sign)
    _to_shares(rows, marked)
    notes = [f"{file}: column '{name}'" for name in columns if name not in (*REQUIRED, *OPTIONAL)]
    notes += [f"{file}: metric {name} ({count} rows)" for name, count in sorted(unknown.items())]
    more = f" and {len(empty) - NAMED} more" if len(empty) > NAMED else ""
    notes += [f"{file}: no score in {', '.join(empty[:NAMED])}{more}"] if empty else []
    return rows, notes


def read_cells(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place of each row that is not empty, as 'scores.csv:row 7', and its cells by column.

    Cells of csv are text, those of parquet values; one without a value is ''. The header of csv is row 1.
    """
    if file.suffix.lower() == ".parquet":
        rows, first = pq.read_table(file).to_pylist(), 1
        rows = [{name: "" if cell is None else cell for name, cell in row.items()} for row in rows]
    else:
        frame, first = _texts(file), 2
        names = frame.iloc[0].tolist()
        rows = [dict(zip(names, row, strict=True)) for row in frame.iloc[1:].itertuples(index=False, name=None)]
    for number, row in enumerate(rows, start=first):
        if any(cell != "" for cell in row.values()):
            yield f"{file}:row {number}", row


def write(scores: pd.DataFrame, file: Path) -> str:
    """The text of a csv file that `read` reads as the same scores: those of `symbert.report.foreign.rows.scores_of`."""
    rows = []
    for score in scores.to_dict("records"):
        for metric, value in (score["details"] or {"": score["score"]}).items():
            rows.append(score | {"metric": metric, "value": value, "origin": str(file)})
    names = {"attention": "operator", "value": "score"}
    table = frame_of(rows).drop(columns=["task", "origin"]).rename(columns=names | {"column": "task"})
    return table.to_csv(index=False, lineterminator="\n")


def _column(name: str) -> str:
    """A column's name here."""
    name = normal(str(name))
    return COLUMN_ALIASES.get(name, name)


def _header(file: Path) -> list[str]:
    if file.suffix.lower() != ".parquet":
        return _texts(file, rows=1).iloc[0].tolist()
    try:
        return pq.read_schema(file).names
    except (ValueError, OSError) as error:
        raise DataError(f"{file}: no parquet file ({' '.join(str(error).split())}); write it again") from None


def _texts(file: Path, rows: int | None = None) -> pd.DataFrame:
    """A csv file's cells without white space around them, its header among them."""
    try:
        with open(file, encoding="utf-8-sig") as lines:
            header = lines.readline()
        mark = next((mark for mark in ";\t" if mark in header), ",")
        options = {"dtype": str, "keep_default_na": False, "skip_blank_lines": False, "encoding": "utf-8-sig"}
        frame = pd.read_csv(file, sep=mark, header=None, nrows=rows, **options).fillna("")
    except ValueError as error:  # not UTF-8, empty, or a row with more cells than the header
        raise DataError(f"{file}: {' '.join(str(error).split())}; write it again as csv in UTF-8") from None
    return frame.apply(lambda column: column.str.strip())


def _number(cell: Any, origin: str) -> tuple[float, bool]:
    """A score as it stands, and whether it has a percent sign."""
    if type(cell) in (int, float) and math.isfinite(cell):
        return float(cell), False
    text = str(cell).replace("−", "-").strip()
    plain = text.removesuffix("%").strip()
    if type(cell) is not str or not NUMBER.fullmatch(plain):
        remedy = "leave it empty where there is no score"
        raise DataError(f"{origin}: the score is '{cell}', expected a number; {remedy}")
    return float(plain.replace(",", ".")), text.endswith("%")


def _to_shares(rows: list[Row], marked: list[bool]) -> None:
    """Turn percentages into shares; DataError names a row that is in the other unit, or no score in either."""
    in_percent = any(abs(row["value"]) > 1 for row, has_sign in zip(rows, marked, strict=True) if not has_sign)
    for row, has_sign in zip(rows, marked, strict=True):
        if in_percent and not has_sign and 0 < abs(row["value"]) <= 1 and _is_share(row):
            raise DataError(f"{row['origin']}: the score {row['value']} among percentages; write all in one unit")
        if abs(row["value"]) > 100:
            raise DataError(f"{row['origin']}: the score is {row['value']}, expected at most 100 percent")
        row["value"] = row["value"] / 100 if in_percent or has_sign else row["value"]


def _is_share(row: Row) -> bool:
    task: Task = task_of(row["column"], row["origin"])[0]
    return (row["metric"] or task.metrics[0]) in SHARES
