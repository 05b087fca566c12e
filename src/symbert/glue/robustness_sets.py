"""What robustness is measured on: a task's evaluation rows with typing errors, and challenge sets, as token ids."""

from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from symbert.glue.challenges import challenges_for, read_challenge
from symbert.glue.noise import name_of_set, noisy
from symbert.glue.prepare import check_complete, pair_encoder, sample, spread, tokenise, write_prepared
from symbert.glue.sources import STAND_IN, read_table
from symbert.settings import RobustnessSettings, TaskSettings, read_settings
from symbert.task import Task
from symbert.tasks import task_named

Sets = Iterator[tuple[str, dict[str, Any], pa.Table]]  # name, facts and rows of text of each set


def prepare_robustness(raw: Path, task: str, vocabulary: Path, settings: Path, robustness: Path, output: Path) -> None:
    """Write the parquet file set, input_ids, token_type_ids, label of all sets that ask a task's classifier.

    Noise changes the evaluation rows that `prepare_task` takes. The schema's metadata says under `symbert` the task,
    whether its rows are a `stand_in`, and of each set its `kind` (noise or out-of-domain), `name` (of the noise or of
    the challenge set), `share` of the letters that are struck, score `column` of the evaluation split that was
    changed, `metrics` (their mean is the score), `classes` (the label that each predicted class counts as; null:
    itself), `rows`, `official_rows` and whether it is `partial`. A task without sets has a file without rows.
    """
    row, wanted = task_named(task), read_settings(settings, TaskSettings)
    chosen, tokenizer = read_settings(robustness, RobustnessSettings), pair_encoder(vocabulary, wanted.max_length)
    table = read_table(raw, str(raw), f"delete it and run download-task for {task}")
    facts, texts = {}, {"": table.slice(0, 0)}
    for name, description, rows in chain(_noise(row, table, wanted, chosen), _challenges(row, wanted, chosen)):
        facts[name], texts[name] = description, rows
    prepared = (
        tokenise(row, rows, tokenizer).add_column(0, "set", pa.array([name] * len(rows), pa.string()))
        for name, rows in texts.items()
    )
    stand_in = STAND_IN in (table.schema.metadata or {})
    write_prepared(output, prepared, {"task": task, "stand_in": stand_in, "sets": facts})


def _noise(task: Task, table: pa.Table, wanted: TaskSettings, chosen: RobustnessSettings) -> Sets:
    for split, column in task.scores.items():
        available = table.filter(pc.field("split") == split)
        rows = sample(task, split, available, wanted)
        used = _used(rows, task.official_rows.get(split, len(available)))
        for kind, share in product(chosen.noise_kinds, chosen.noise):
            noise = {"kind": "noise", "name": kind, "share": share, "column": column}
            scored = {"metrics": task.metrics, "classes": None}
            struck = _struck(task, split, rows, kind, share)
            yield name_of_set(kind, share, column), {**noise, **scored, **used}, struck


def _struck(task: Task, split: str, rows: pa.Table, kind: str, share: float) -> pa.Table:
    """Rows with noise in each of their texts, another in each; it follows from split and `idx`."""
    for place, column in enumerate(task.columns):
        numbers = task.splits.index(split), rows["idx"].to_numpy(), place
        texts = noisy(rows[column].to_pylist(), kind, share, *numbers)
        rows = rows.set_column(rows.column_names.index(column), column, pa.array(texts, pa.string()))
    return rows


def _challenges(task: Task, wanted: TaskSettings, chosen: RobustnessSettings) -> Sets:
    for challenge in challenges_for(task, chosen.sets):
        available = read_challenge(challenge, Path(chosen.root))
        check_complete(f"the set '{challenge.name}'", len(available), challenge.official_rows, wanted)
        rows = spread(available, wanted.max_evaluation_examples, 0)
        origin = {"kind": "out-of-domain", "name": challenge.name, "share": None, "column": challenge.column}
        scored = {"metrics": challenge.metrics, "classes": challenge.classes}
        used = _used(rows, challenge.official_rows)
        yield challenge.name, {**origin, **scored, **used}, rows


def _used(rows: pa.Table, official_rows: int) -> dict[str, Any]:
    return {"rows": len(rows), "official_rows": official_rows, "partial": len(rows) != official_rows}
