"""What Hugging Face's Trainer left of others' runs: scores of fine-tuning, and losses as a dashboard exports them.

A fine-tuning run is a directory with an eval_results.json. Which run it is stands in the directory's name only, as
the paper's authors and their run_glue give it: bert_<size>_<attention>_<date>-ckpt<step>-seed<seed>_<task>_<date>,
where no checkpoint means the final step, and no seed means seed 1.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from symbert.declared import suggestion
from symbert.errors import DataError, MissingInputError
from symbert.files import read_json
from symbert.operators import OPERATORS
from symbert.report.scores import Record, is_score
from symbert.sizes import SIZES
from symbert.tasks import GLUE

RESULTS = "eval_results.json"
LOSS = " - eval/loss"  # how a column of losses ends; that of its lowest and highest values ends otherwise
NAME = re.compile(r"bert_([^_]+)_([^_]+)_\d{8}-\d{6}((?:-[a-z]+\d+)*)(?:_([^_]+)(?:_\d{8}-\d{6})?)?")
EXPECTED = "bert_<size>_<attention>_<date>-ckpt<step>-seed<seed>_<task>_<date>"
ATTENTION = {"vanilla": "original"} | {name: name for name in OPERATORS}  # by the authors' name
TAGS = {"ckpt": "step", "seed": "finetune_seed"}
KEYS = {
    "accuracy": "eval_accuracy",
    "f1": "eval_f1",
    "matthews": "eval_matthews_correlation",
    "pearson": "eval_pearson",
    "spearman": "eval_spearmanr",
}
ENDINGS = {"validation_mismatched": "_mm"}  # of the keys of a split; none for the others


def read_results(directory: Path) -> list[Record]:
    """A score record of every fine-tuning run below the directory; the step of a final one is None.

    DataError names the directory whose name or content is not a score's, or that is of a cell that another has too;
    MissingInputError says that there is none, or names a broken link.
    """
    folders = [file.parent for file in files_below(directory) if file.name == RESULTS]
    if not folders:
        raise MissingInputError(f"{directory}: no {RESULTS} below it; give a directory of Hugging Face's Trainer")
    cells: dict[tuple, Path] = {}
    records = []
    for folder in folders:
        record = _record(folder, directory)
        cell = tuple(record[key] for key in ("size", "attention", "step", "task", "finetune_seed"))
        if cell in cells:
            raise DataError(f"{folder}: the same model, step, task and seed as {cells[cell]}; keep one of them")
        cells[cell] = folder
        records.append(record)
    return records


def files_below(directory: Path) -> list[Path]:
    """All files below a directory, sorted, those behind links too; a folder with several ways to it is read once.

    A way without links comes before one with them. MissingInputError names a link that leads nowhere.
    """
    folders, links, files, seen = [directory], [], [], set()
    while folders or links:
        folder = folders.pop() if folders else links.pop(0)
        place = folder.resolve()
        if place in seen or not place.is_dir():
            continue
        seen.add(place)
        for entry in sorted(folder.iterdir()):
            if not entry.exists():
                raise MissingInputError(
                    f"{entry}: a link to {entry.readlink()}, which is not there; mend the link or remove it"
                )
            kind = files if not entry.is_dir() else links if entry.is_symlink() else folders
            kind.append(entry)
    return sorted(files)


def _record(folder: Path, directory: Path) -> Record:
    run, results = run_named(folder.name, folder), read_json(folder / RESULTS)
    if run["task"] is None:
        raise DataError(f"{folder}: the name has no task; expected {EXPECTED}")
    task = GLUE[run["task"]]
    details, rows = {}, {}
    for split, column in task.scores.items():
        keys = {metric: KEYS[metric] + ENDINGS.get(split, "") for metric in task.metrics}
        details[column] = {metric: _value(folder, results, key) for metric, key in keys.items()}
        for metric, score in details[column].items():
            if not is_score(score):
                raise DataError(f"{folder}: '{keys[metric]}' is {score}, expected a number from -1 to 1")
        key = "eval_samples" + ENDINGS.get(split, "")
        rows[split] = _value(folder, results, key)
        if type(rows[split]) is not int or rows[split] < 1:
            raise DataError(f"{folder}: '{key}' is {rows[split]}, expected a number of rows")
    # Of all metrics only Matthews' tells whether one class was predicted throughout: it is 0 then.
    constant = any(scores["matthews"] == 0 for scores in details.values()) if task.metrics == ("matthews",) else None
    return {
        **run,
        "metrics": {column: fmean(scores.values()) for column, scores in details.items()},
        "details": details,
        "majority": None,
        "constant_prediction": constant,
        "rows": rows,
        "official_rows": task.official_rows,
        "partial": any(rows[split] != task.official_rows[split] for split in rows),
        "stand_in": False,
        "settings_hash": None,
        "recipe": None,
        "precision": None,
        "versions": {},
        "origin": {"directory": folder.relative_to(directory).as_posix()},
    }


def _value(folder: Path, results: Any, key: str) -> Any:
    if not isinstance(results, dict) or key not in results:
        raise DataError(f"{folder}: no '{key}' in {RESULTS}; let run_glue write it again")
    return results[key]


def run_named(name: str, origin: Path) -> dict[str, Any]:
    """What a run's name says: size, attention, pretrain_seed, step (None: the last), task (or None), finetune_seed.

    DataError, about `origin`, for a name of another form and for a word that is unknown.
    """
    match = NAME.fullmatch(name)
    tags = re.findall(r"-([a-z]+)(\d+)", match[3]) if match else []
    if not match or len(dict(tags)) < len(tags):
        raise DataError(f"{origin}: '{name}' is no run's name; expected {EXPECTED}")
    return {
        "size": _known(match[1], "size", SIZES, origin),
        "attention": ATTENTION[_known(match[2], "attention", ATTENTION, origin)],
        "pretrain_seed": 1,
        "step": None,
        "task": match[4] and _known(match[4], "task", GLUE, origin),
        "finetune_seed": 1,
    } | {TAGS[_known(tag, "tag", TAGS, origin)]: int(number) for tag, number in tags}


def _known(word: str, kind: str, known: Iterable[str], origin: Path) -> str:
    if word not in known:
        raise DataError(f"{origin}: unknown {kind} '{word}'{suggestion(word, known)}")
    return word


def read_losses(file: Path, steps: int) -> pd.DataFrame:
    """Size, attention, pretrain_seed, step and loss of the runs in a dashboard's export of validation losses.

    Each has `steps` steps. Another file has no rows.
    The column Step is an index of the log, and not the step. Evaluations are evenly spaced, and the last of them is at
    the last step; one more, after the training, follows at a shorter distance and is left out. DataError names the
    file and the column that are not so.
    """
    as_text = {"dtype": str, "keep_default_na": False, "encoding": "utf-8-sig", "encoding_errors": "replace"}
    try:
        header = pd.read_csv(file, nrows=1, header=None, **as_text).iloc[0]  # a name that stands twice is in it twice
        columns = [column for column in header if column.endswith(LOSS)]
    except ValueError:  # an empty file, or one that is no table
        columns = []
    try:
        table = pd.read_csv(file, usecols=["Step", *columns], **as_text) if columns else None
    except ValueError as error:
        raise DataError(f"{file}: {' '.join(str(error).split())}; export it again") from error
    runs = [_run(file, table[["Step", column]], column, steps) for column in columns]
    return pd.concat([pd.DataFrame(columns=["size", "attention", "pretrain_seed", "step", "loss"]), *runs])


def _run(file: Path, table: pd.DataFrame, column: str, steps: int) -> pd.DataFrame:
    name = run_named(column.removesuffix(LOSS), file)
    if (name["step"], name["task"], name["finetune_seed"]) != (None, None, 1):
        raise DataError(f"{file}: '{column}' is of a fine-tuning run; expected losses of pre-training only")
    table = table[~table[column].isin(["", None])]
    numbers = table.apply(pd.to_numeric, errors="coerce").astype(float)
    for at in table.index[~np.isfinite(numbers).all(axis=1)]:
        step, loss = table.loc[at]
        raise DataError(f"{file}: '{column}' is {loss} at Step {step}; expected two numbers")
    distances, losses = np.diff(numbers["Step"]), numbers[column].tolist()
    if len(distances) and distances[-1] < distances[0]:
        distances, losses = distances[:-1], losses[:-1]
    if len(set(distances)) != 1:
        raise DataError(f"{file}: the evaluations in '{column}' are not evenly spaced; export all of them")
    every, rest = divmod(steps, len(losses))
    if rest:
        raise DataError(f"{file}: {len(losses)} evaluations in '{column}' do not share {steps} steps; give --steps")
    evaluated = [every * (at + 1) for at in range(len(losses))]
    run = {key: name[key] for key in ("size", "attention", "pretrain_seed")}
    return pd.DataFrame(run | {"step": evaluated, "loss": losses})
