"""The rows that every reader of others' scores gives: one for each metric of a run in a score column."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import pandas as pd

from symbert.declared import suggestion
from symbert.errors import DataError
from symbert.report.scores import is_score
from symbert.sizes import SIZES
from symbert.task import Task
from symbert.tasks import GLUE, OWN, task_named

Row = dict[str, Any]

RUN = ("size", "attention", "pretrain_seed", "step", "finetune_seed")  # of a fine-tuning; step None: the final one
CELL = (*RUN, "task", "column")
COLUMNS: dict[str, str] = {  # of the rows, with their types
    **{"size": "str", "attention": "str", "pretrain_seed": "int64", "step": "Int64", "finetune_seed": "int64"},
    **{"task": "str", "column": "str"},  # the score column: MNLI has two
    "metric": "str",  # empty: the score itself
    "value": "float64",  # from -1 to 1
    "rows": "Int64",  # that were scored; missing: not known
    "origin": "str",  # the file, and what in it
}
FIRST_SEED = 1  # of what does not say its seed

# Other names of tasks, beside the names of tasks and score columns here. Case, '-', '_' and spaces do not matter.
TASK_ALIASES: dict[str, str] = {
    "mnli": "mnli_matched",
    "mnli_m": "mnli_matched",
    "mnli_match": "mnli_matched",
    "mnli_mm": "mnli_mismatched",
    "mnli_mismatch": "mnli_mismatched",
    "sst": "sst2",
    "sst_2": "sst2",
    "sts": "stsb",
    "sts_b": "stsb",
}
# Names of metrics, by those here: of Hugging Face's evaluate, scikit-learn and lm-evaluation-harness.
METRIC_ALIASES: dict[str, str] = {
    **{name: name for name in ("accuracy", "f1", "matthews", "pearson", "spearman")},
    **{"acc": "accuracy", "matthews_correlation": "matthews", "mcc": "matthews"},
    **{"pearsonr": "pearson", "spearmanr": "spearman"},
    **dict.fromkeys(("", "score", "combined_score"), ""),
}


def task_columns() -> dict[str, tuple[Task, str]]:
    """The task and the score column of every known name, normalized as by `normal`."""
    own = {column: (task, column) for task in (*GLUE.values(), *OWN.values()) for column in task.scores.values()}
    return {normal(name): cell for name, cell in own.items()} | {name: own[to] for name, to in TASK_ALIASES.items()}


def normal(name: str) -> str:
    """A name in lower case, with '_' for '-' and spaces."""
    return re.sub(r"[-\s]+", "_", name.strip().lower())


def task_of(name: str, origin: str) -> tuple[Task, str]:
    """The task and score column of a name; DataError, about `origin`, for one that nobody declared."""
    known = task_columns()
    if normal(name) not in known:
        raise DataError(f"{origin}: unknown task '{name}'{suggestion(normal(name), known)}")
    return known[normal(name)]


def run_of(fields: Mapping[str, Any], origin: str) -> Row:
    """The run that names say: its `model`, or `size` and `operator`; seeds and step, where they say them.

    A model whose name begins with a size of this project, as 'small-mine', is of that size; another one has none.
    """
    model = str(fields.get("model") or "")
    start, _, rest = model.partition("-")
    size = str(fields.get("size") or (start if start in SIZES and rest else ""))
    run = {"size": size, "attention": str(fields.get("operator") or model.removeprefix(f"{size}-"))}
    if not run["attention"]:
        raise DataError(f"{origin}: no model; name it, or its operator")
    for key, word in run.items():
        if re.search(r"[/\x00-\x1f]", word):
            raise DataError(f"{origin}: the {key} '{word}' has a '/' or a control character; give another name")
        if word.startswith(("=", "+", "-", "@")):  # of files of scores, which have names as they are
            raise DataError(f"{origin}: the {key} '{word}' is a formula for a spreadsheet; begin it with a letter")
    for key, default in (("pretrain_seed", FIRST_SEED), ("step", None), ("finetune_seed", FIRST_SEED)):
        run[key] = whole_number(fields.get(key), key, origin) if fields.get(key) not in (None, "") else default
    return run


def whole_number(value: Any, what: str, origin: str) -> int:
    """A seed, a step or a number of rows; '3.0' is 3. DataError, about `origin`, for anything else."""
    if type(value) is int and value >= 0:
        return value
    if (type(value) is float and value.is_integer()) or re.fullmatch(r"\d+(\.0*)?", str(value).strip()):
        return whole_number(int(float(value)), what, origin)
    raise DataError(f"{origin}: {what} is {value}, expected a whole number")


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a frame with the declared columns and types, in one order, whatever the order of the rows."""
    frame = pd.DataFrame(list(rows), columns=list(COLUMNS)).astype(COLUMNS)
    return frame.sort_values([*CELL, "metric", "origin"], ignore_index=True)


def scores_of(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A row per score, with `score`, its `details` by metric, `rows` and `origin`; and lines on what was left out.

    A score is the mean of the metrics that count for its task. Metrics that do not are left out. DataError names two
    rows of the same cell and metric, a value that is no score, and a score of which a metric is missing.
    """
    scores, extra = [], Counter()
    for cell, part in rows.groupby(list(CELL), dropna=False, sort=False):
        name, column = cell[-2:]
        task, values = task_named(name), {}
        for row in part.to_dict("records"):
            if (twin := values.get(row["metric"])) is not None:
                raise DataError(f"{row['origin']}: the same model, task and seed as {twin['origin']}; keep one of them")
            if not is_score(row["value"]):
                raise DataError(f"{row['origin']}: {row['value']} is no score, which is a number from -1 to 1")
            values[row["metric"]] = row
        counted = [""] if "" in values else [metric for metric in task.metrics if metric in values]
        extra.update(f"{metric or 'score'} of {column}" for metric in values if metric not in counted)
        missing = [] if "" in counted else [metric for metric in task.metrics if metric not in counted]
        if counted and missing:
            origin = values[counted[0]]["origin"]
            raise DataError(f"{origin}: {column} lacks {' and '.join(missing)}; add it, or call the value 'score'")
        if counted:
            details = {metric: values[metric]["value"] for metric in counted}
            first = values[counted[0]]
            scores.append(
                dict(zip(CELL, cell, strict=True))
                | {"score": fmean(details.values()), "details": {} if "" in details else details}
                | {"rows": first["rows"], "origin": first["origin"]}
            )
    columns = [*CELL, "score", "details", "rows", "origin"]
    frame = pd.DataFrame(scores, columns=columns).astype({key: COLUMNS[key] for key in (*CELL, "rows", "origin")})
    return frame, [f"{name} ({count}): it does not count for the task" for name, count in sorted(extra.items())]
