"""Fine-tuning runs of Hugging Face's Trainer: the eval_results.json of `run_glue`, or else trainer_state.json.

Which run it is stands in the folder's name only: seeds are in training_args.bin, a pickle, which is never read.
"""

import re
from pathlib import Path
from typing import Any

from symbert.errors import DataError
from symbert.files import read_json
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.rows import METRIC_ALIASES, Row, task_of
from symbert.report.scores import is_score
from symbert.task import Task

RESULTS, STATE = "eval_results.json", "trainer_state.json"
CHECKPOINT = re.compile(r"checkpoint-(\d+)")  # a folder within that of a run
PREFIX = "eval_"
ENDINGS = {"validation_mismatched": "_mm"}  # of the keys of a split; none for the others
REMEDY = "let run_glue write it again"


def recognizes(file: Path) -> bool:
    """Whether a file is the one that tells a run's scores.

    It is the eval_results.json of a folder; without one, its trainer_state.json; without that, that of the last
    checkpoint within it.
    """
    if file.name == RESULTS:
        return True
    folder, run = file.parent, run_of_file(file)
    if file.name != STATE or (folder / RESULTS).exists():
        return False
    if folder == run:
        return True
    steps = [int(CHECKPOINT.fullmatch(path.parent.name)[1]) for path in run.glob(f"checkpoint-*/{STATE}")]
    is_last = CHECKPOINT.fullmatch(folder.name)[1] == str(max(steps))
    return is_last and not (run / RESULTS).exists() and not (run / STATE).exists()


def run_of_file(file: Path) -> Path:
    """The folder of the run that a file is of."""
    is_checkpoint = file.name == STATE and CHECKPOINT.fullmatch(file.parent.name)
    return file.parent.parent if is_checkpoint else file.parent


def read(file: Path, root: Path, naming: Naming) -> tuple[list[Row], list[str]]:
    """The rows of a run below `root`, and lines on what was left out of it.

    Those of a trainer_state.json are its last evaluation, which `run_glue` makes of one split only. DataError names
    the folder whose name or content is not a score's.
    """
    folder = run_of_file(file)
    run, word = naming.run_at(folder, root, str(folder))
    if word is None:
        raise DataError(f"{folder}: the name has no task; give --pattern with {{task}}, or --mapping")
    task, column = task_of(word, str(folder))
    if file.name == RESULTS:
        return _rows(read_json(file, {}, REMEDY), task, column, folder, run), []
    state = read_json(file, {"log_history": [{}], "global_step": int}, REMEDY)
    evaluations = [entry for entry in state["log_history"] if any(key.startswith(PREFIX) for key in entry)]
    if not evaluations:
        raise DataError(f"{file}: no evaluation in it; let the Trainer evaluate, or remove the folder")
    last, end = evaluations[-1].get("step"), state["global_step"]
    if sum(entry.get("step") == last for entry in evaluations) > 1:
        raise DataError(f"{file}: several evaluations at step {last}, of unknown splits; import {RESULTS} instead")
    notes = [f"{file}: steps {last} to {end}, which were not evaluated"] if last != end else []
    return _rows(evaluations[-1], task, column, folder, run), notes


def _rows(results: dict[str, Any], task: Task, column: str, folder: Path, run: Row) -> list[Row]:
    """The rows of an evaluation; a split that was not scored has none, but one is."""
    columns = {ENDINGS.get(split, ""): name for split, name in task.scores.items()}
    if columns[""] != column and not any(key.endswith("_mm") for key in results):
        columns = {"": column}  # a run on MNLI's mismatched rows alone
    rows = []
    for ending, name in columns.items():
        keys = {
            METRIC_ALIASES.get(key.removeprefix(PREFIX).removesuffix(ending)): key
            for key in results
            if key.startswith(PREFIX) and key.endswith(ending)
        }
        present = [metric for metric in task.metrics if metric in keys]
        missing = [metric for metric in task.metrics if metric not in keys]
        if missing and (present or not ending):
            raise DataError(f"{folder}: no '{PREFIX}{missing[0]}{ending}' of {name}; {REMEDY}")
        samples = results.get(f"{PREFIX}samples{ending}")
        if samples is not None and (type(samples) is not int or samples < 1):
            raise DataError(f"{folder}: '{PREFIX}samples{ending}' is {samples}, expected a number of rows")
        for metric in present:
            value = results[keys[metric]]
            if not is_score(value):
                raise DataError(f"{folder}: '{keys[metric]}' is {value}, expected a number from -1 to 1")
            score = {"metric": metric, "value": value, "rows": samples, "origin": str(folder)}
            rows.append(run | {"task": task.name, "column": name} | score)
    return rows
