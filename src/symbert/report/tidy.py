"""The tidy tables of a report as csv files, report/data/: a row per score, loss, run, set, paradigm and part.

The files of scores and losses are also what `import-scores` reads; docs/report.md has their columns.
"""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import msgspec
import pandas as pd

from symbert.corpus.parts import PartRecord
from symbert.declared import mistake_in, suggestion
from symbert.errors import DataError, UsageError
from symbert.files import reading, write_text
from symbert.glue import tasks
from symbert.glue.metrics import lowest
from symbert.report import names

Record = dict[str, Any]

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+ -]*$")]  # folders are called so
Number = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Count = Annotated[int, msgspec.Meta(ge=1, lt=2**53)]
INITIAL = ("logit_std", "logit_step", "attention_entropy")  # of the untrained model, a number per layer
SHORT = re.compile(r"^(-?)\.(?=\d+$)")  # .5, as Stata writes 0.5


class Score(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The columns of a csv of scores; an empty cell is the default."""

    size: Name = ""
    attention: Name  # an operator here, or any name of a model
    pretrain_seed: Number = 1
    step: Number | None = None  # of a checkpoint, 0 without pre-training; none: the end of pre-training
    task: str  # a score column: of MNLI there are two
    finetune_seed: Number
    metric: str = ""  # one of those whose mean is the score of the task; none: the value is the score
    value: float  # from 0 to 1, of a correlation from −1: percentages are divided by 100
    rows: Count | None = None  # that were scored; none: not known
    majority: float | None = None  # the baseline that predicts the most frequent class, where it is known
    partial: bool = False  # whether other rows were scored than the suite has
    stand_in: bool = False  # whether the task stands in for that of its name
    constant_prediction: bool | None = None  # whether one class is predicted throughout; none: not known


class Loss(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The columns of a csv of validation losses."""

    size: Name
    attention: Name
    pretrain_seed: Number = 1
    step: Count
    loss: Annotated[float, msgspec.Meta(ge=0, lt=1e300)]  # nats per target


def write_csv(file: Path, rows: Iterable[Record]) -> list[Path]:
    """Write rows with the names of their columns; nothing without rows. Numbers are in full precision, yes and no as
    JSON has them, and a cell is empty where nothing is known."""
    cells = [{key: str(cell).lower() if isinstance(cell, bool) else cell for key, cell in row.items()} for row in rows]
    if cells:
        write_text(file, pd.DataFrame(cells, dtype=object).to_csv(index=False, lineterminator="\n"))
    return [file] * bool(cells)


def tables_of(data: Any) -> dict[str, Iterable[Record]]:
    """The rows of the tidy tables of a collection by the names of their files."""
    scores: list[Record] = []
    for suite in data.tables_of_scores:
        final, curve = (
            rows_of_scores(tables[suite]) if suite in tables else () for tables in (data.scores, data.curves)
        )
        # Scores of the comparison have no step, and those over checkpoints have one, be it the last.
        scores += [row | {"step": None} if row["step"] else row for row in final]
        scores += curve
    losses = data.runs[list(Loss.__struct_fields__)].to_dict("records")
    sets = [] if data.robustness is None else data.robustness.drop(columns="metrics").to_dict("records")
    return {
        "scores": scores,
        "losses": losses,
        "runs": data.machines,
        "robustness": sets,
        "pairs": [] if data.blimp is None else data.blimp.to_dict("records"),
        "corpus": map(row_of_part, data.parts),
    }


def rows_of_scores(scores: pd.DataFrame) -> Iterator[Record]:
    """A row per score that was measured, and per metric behind it."""
    for row in scores.dropna(subset="score").to_dict("records"):
        cell = {key: row[key] for key in ("size", "attention", "pretrain_seed", "step")}
        cell |= {"task": row["column"], "finetune_seed": row["finetune_seed"]}
        flags = {key: row[key] for key in ("majority", "partial", "stand_in", "constant_prediction")}
        for metric, value in {"": row["score"], **(row["details"] or {})}.items():
            yield {**cell, "metric": metric, "value": value, **flags}


def row_of_part(part: PartRecord) -> Record:
    """A part of the corpus: documents and characters read, dropped by reason, and kept; words and tokens."""
    counts, tokens = part.counts, part.record
    return {
        **{key: getattr(counts, key) for key in ("part", "read", "bad", "kept", "without_url")},
        **{f"dropped_{reason}": count for reason, count in counts.dropped.items()},
        "characters_read": counts.characters.read,
        "characters_kept": counts.characters.kept,
        **{f"characters_dropped_{reason}": count for reason, count in counts.characters.dropped.items()},
        "words": tokens.words,
        "tokens": tokens.tokens,
    }


def read_scores(file: Path) -> pd.DataFrame:
    """The scores in a csv file as a collection has them, by model, step, task and seed; the step of final ones is NaN.

    DataError names the file and the line of a cell that is no score, of an unknown task, of a metric that does not
    count for it, of a number that its metric cannot be, of the rows of another column, and of a second score of one
    cell; and a score of which a metric is missing.
    """
    known = tasks.PUBLISHED.values()
    columns = {column: task for task in known for column in task.scores.values()}
    cells: dict[tuple, dict[str, tuple[str, Score]]] = {}
    for place, row in read_rows(file, Score):
        if row.task not in columns:
            raise DataError(f"{place}: unknown task '{row.task}'; choose from {', '.join(columns)}")
        cell = (row.size, row.attention, row.pretrain_seed, row.step, row.finetune_seed, row.task)
        _check_range(place, "value", row.value, (row.metric,) if row.metric else columns[row.task].metrics)
        if row.majority is not None:
            _check_range(place, "majority", row.majority, columns[row.task].metrics)
        metrics = cells.setdefault(cell, {})
        if row.metric in metrics:
            first, _ = metrics[row.metric]
            raise DataError(f"{place}: a second score of the cell in {first.rpartition(':')[2]}; keep one of them")
        metrics[row.metric] = (place, row)
    rows = [_score_of(columns[column], metrics) for (*_, column), metrics in cells.items()]
    places = {task.name: place for place, task in enumerate(known)}
    rows.sort(
        key=lambda row: (
            *names.OF_PROJECT.rank(row["size"], row["attention"]),
            row["pretrain_seed"],
            row["step"] if row["step"] == row["step"] else math.inf,
            places[row["task"]],
            row["finetune_seed"],
            list(columns).index(row["column"]),
        )
    )
    return pd.DataFrame(rows)


def _check_range(place: str, key: str, value: float, metrics: Sequence[str]) -> None:
    """DataError for a number that these metrics, or their mean, cannot be."""
    low = lowest(metrics)
    if not low <= value <= 1:
        percent = "; divide percentages by 100" if 1 < abs(value) <= 100 else ""
        raise DataError(f"{place}: '{key}': expected {low:g} to 1 ({' and '.join(metrics)}), found {value:g}{percent}")


def _score_of(task: tasks.Task, metrics: dict[str, tuple[str, Score]]) -> Record:
    """The row of a score column, from its rows by metric."""
    values = {metric: row.value for metric, (_, row) in metrics.items()}
    place, row = next(iter(metrics.values()))
    if "" not in values:
        counted = " and ".join(task.metrics)
        for metric in values:
            if metric not in task.metrics:
                raise DataError(
                    f"{metrics[metric][0]}: {metric} does not count for {row.task}; leave it out, and give {counted}"
                )
        for metric in task.metrics:
            if metric not in values:
                raise DataError(f"{place}: {row.task} lacks {metric}; add it, or leave the column 'metric' empty")
    details = {metric: value for metric, value in values.items() if metric}
    rows = [row for _, row in metrics.values()]
    constant = next((row.constant_prediction for row in rows if row.constant_prediction is not None), None)
    if constant is None and task.metrics == ("matthews",) and "matthews" in details:
        constant = details["matthews"] == 0  # of all metrics only Matthews' tells it
    split = next(split for split, column in task.scores.items() if column == row.task)
    of_rows = {count: task.scores[other] for other, count in task.official_rows.items() if other in task.scores}
    if of_rows.get(row.rows, row.task) != row.task:
        raise DataError(
            f"{place}: {row.rows} rows are those of {of_rows[row.rows]}, not of {row.task}; name that column"
        )
    return {
        **{key: getattr(row, key) for key in ("size", "attention", "pretrain_seed")},
        "step": math.nan if row.step is None else row.step,
        "task": task.name,
        "finetune_seed": row.finetune_seed,
        "partial": any(_is_partial(row, task.official_rows.get(split)) for row in rows),
        "stand_in": any(row.stand_in for row in rows),
        "constant_prediction": constant,
        **dict.fromkeys(("checkpoint_sha256", "data_sha256", "precision", "head", "learning_rate", "tuned")),
        "column": row.task,
        "score": values.get("", fmean(details.values()) if details else 0.0),
        "details": details,
        "majority": next((row.majority for row in rows if row.majority is not None), math.nan),
        "remark": "",
    }


def _is_partial(row: Score, official: int | None) -> bool:
    """Whether other rows were scored than the suite has, as far as both numbers are known."""
    return row.partial or (None not in (row.rows, official) and row.rows != official)


def read_losses(file: Path) -> pd.DataFrame:
    """The validation losses of the encoders in a csv file as a collection has them; DataError names the line of a
    second loss of one step."""
    rows: dict[tuple, Record] = {}
    for place, row in read_rows(file, Loss):
        cell = (*names.OF_PROJECT.rank(row.size, row.attention), row.pretrain_seed, row.step)
        if cell in rows:
            raise DataError(f"{place}: a second loss of step {row.step} of this run; keep one of them")
        rows[cell] = msgspec.structs.asdict(row) | dict.fromkeys(INITIAL, math.nan)
    return pd.DataFrame([rows[cell] for cell in sorted(rows)])


def read_rows(file: Path, cls: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    """The place of each row of a csv file, as 'scores.csv:line 7', and its cells as `cls` declares them."""
    try:
        with reading(file), open(file, encoding="utf-8-sig", newline="") as lines:
            table, place = csv.DictReader(lines, strict=True), None
            columns = table.fieldnames = [column.strip() for column in table.fieldnames or ()]
            if columns:
                _check_columns(file, columns, cls)
            for row in table:
                place = f"{file}:line {table.line_num}"
                if None in row or None in row.values():
                    raise DataError(f"{place}: not {len(columns)} cells, as the header has; write it as csv")
                cells = {column: SHORT.sub(r"\g<1>0.", cell.strip()) for column, cell in row.items() if cell.strip()}
                try:
                    yield place, msgspec.convert(cells, cls, strict=False)
                except msgspec.ValidationError as error:
                    cell = cells.get(str(error).rpartition("$.")[2].strip("`"), "")
                    remedy = f"correct {cell!r:.60}, or leave its row out" if cell else "fill it"
                    raise DataError(f"{place}: {mistake_in(error, remedy=remedy)}") from None
            if place is None:
                raise DataError(f"{file}: no row in it; give one for each number")
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file}: {error}; write it as csv in UTF-8") from None


def _check_columns(file: Path, columns: Sequence[str], cls: type[msgspec.Struct]) -> None:
    """DataError for a header that has a column twice or one that `cls` does not have, or lacks one that it needs."""
    fields = msgspec.structs.fields(cls)
    known = [field.name for field in fields]
    if len(columns) == 1:
        raise DataError(f"{file}: no comma in the first line; write it as csv")
    if len(set(columns)) < len(columns):
        raise DataError(f"{file}: a column is there twice in {', '.join(columns)}; keep one of them")
    if "" in columns:
        raise DataError(f"{file}: a column without a name; leave it out")
    if unknown := [column for column in columns if column not in known]:
        raise DataError(f"{file}: unknown column '{unknown[0]}'{suggestion(unknown[0], known)}")
    if lacking := [field.name for field in fields if field.required and field.name not in columns]:
        raise DataError(f"{file}: no column '{lacking[0]}', found {', '.join(columns)}; add it")


def length_of(steps: Iterable[float], given: int | None = None) -> int | None:
    """The steps of pre-training: those given, or the last one of some; None where there are none."""
    last = int(max((step for step in steps if step == step), default=0))
    if given is not None and given < (last or 1):
        raise UsageError(f"--steps is {given}, expected at least {last or 1}, the last step")
    return given or last or None


END = 1  # stands for a last step that no file names: above 0, at which models are without pre-training


def parted(scores: pd.DataFrame, steps: int | None, place: str = "scores") -> tuple[pd.DataFrame, pd.DataFrame]:
    """The scores of the comparison, at the last step and without pre-training, and those over checkpoints.

    A model without final runs is compared by those of its checkpoint at that step; UsageError when it has none.
    """
    last = END if steps is None else steps
    model = pd.Series(list(zip(scores["size"], scores["attention"], strict=True)), index=scores.index, dtype=object)
    is_final, at_end = scores["step"].isna(), scores["step"] == last
    of_final = is_final | (at_end & ~model.isin(model[is_final]))
    if lacking := [name for name in dict.fromkeys(model) if name not in set(model[of_final])]:
        names = ", ".join(sorted("-".join(filter(None, name)) for name in lacking))
        raise UsageError(
            f"{place}: no run of {names} is at the last step{f', {steps}' if steps else ''}; add it, or leave out the "
            "step of its final runs"
        )
    final = scores[of_final | (scores["step"] == 0)]
    final = final.assign(step=final["step"].where(final["step"] == 0, last))
    curve = scores[~is_final & model.isin(model[scores["step"] > 0])]  # of step 0 alone there is none
    return final.astype({"step": int}), curve.astype({"step": int})
