"""Results of lm-evaluation-harness 0.4: results_<date>.json in a folder for each model.

It scores models as they are, without fine-tuning; one that was fine-tuned says its seed in its name, if anywhere.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from symbert.errors import DataError
from symbert.files import read_json, read_json_or_empty
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.rows import METRIC_ALIASES, Row, normal, run_of, task_columns
from symbert.report.scores import is_score

SHAPE = {"results": {str: {}}, "versions": {}}
FILTER = "none"  # of answers; the tasks of GLUE have no other
REMEDY = "let lm-evaluation-harness write it again"


def recognizes(file: Path) -> bool:
    """Whether a file has results and versions of tasks, as each file of results has."""
    if file.suffix != ".json":
        return False
    content = read_json_or_empty(file)
    return isinstance(content.get("results"), dict) and isinstance(content.get("versions"), dict)


def read(file: Path, root: Path, naming: Naming) -> tuple[list[Row], list[str]]:
    """The rows of a file below `root`, and lines on the tasks that are none of GLUE's.

    The model is called as in the file, by the last part of its path, unless a pattern or a mapping says otherwise.
    DataError names the file and the key of what is no score.
    """
    content = read_json(file, SHAPE, REMEDY)
    model = content.get("model_name") or _pretrained(content)
    if naming.pattern or naming.mapping:
        run, _ = naming.run_at(file, root, str(file), model)
    else:
        run = run_of({"model": PurePosixPath(model).name}, str(file))
    rows, left_out, known = [], [], task_columns()
    for name, results in content["results"].items():
        task, column = known.get(normal(name), (None, ""))
        if task is None:
            left_out.append(name)
            continue
        values = {METRIC_ALIASES.get(key.removesuffix(f",{FILTER}")): key for key in results}
        counts = content.get("n-samples", {}).get(name, {})
        for metric in task.metrics:
            value = results.get(values.get(metric))
            if not is_score(value):
                raise DataError(f"{file}: {metric} of '{name}' is {value}, expected a number from -1 to 1; {REMEDY}")
            score = {"metric": metric, "value": value, "rows": counts.get("effective"), "origin": f"{file}:{name}"}
            rows.append(run | {"task": task.name, "column": column} | score)
    return rows, [f"{file}: task {name}" for name in left_out]


def _pretrained(content: dict[str, Any]) -> str:
    """The model's name in the arguments of the command, text or object, of a file without `model_name`."""
    arguments = content.get("config", {}).get("model_args") or ""
    if isinstance(arguments, dict):
        return str(arguments.get("pretrained") or "")
    match = re.search(r"(?:^|,)pretrained=([^,]+)", str(arguments))
    return match[1] if match else ""
