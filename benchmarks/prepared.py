"""A task's rows as `prepare_task` writes them: GLUE's own, from a mirror, or a stand-in of the same lengths."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.paper import task_settings
from symbert.configuration import values_of
from symbert.files import write_json
from symbert.glue.prepare import facts_of, prepare_task
from symbert.sources import VOCABULARY
from symbert.suites import suite_of
from symbert.task import Task

# Tokens of the training rows of GLUE, [CLS] and [SEP] among them and cut at 128, at 0, 5, … 100 % of the rows.
LENGTHS = {
    "rte": (13, 29, 33, 37, 40, 43, 45, 47, 50, 53, 56, 59, 62, 67, 72, 85, 103, 120, 128, 128, 128),
    "mrpc": (19, 32, 36, 39, 41, 44, 45, 47, 50, 51, 53, 55, 57, 59, 61, 62, 64, 67, 70, 74, 103),
}
PIECES = {"rte": 13_572, "mrpc": 11_563}  # different word pieces in them
CLS, SEP = 101, 102  # where bert-base-uncased has them


def real_rows(task: Task, mirror: Path, folder: Path) -> Path:
    """GLUE's rows of a task, from a directory in the publishers' layout, as the workflow prepares them."""
    files = {"source": mirror / suite_of(task).repository, "vocabulary": mirror / VOCABULARY.location}
    wanted = {key: value for key, value in values_of(task_settings()).items() if key != "allow_partial"}
    settings = {"kind": "tasks", **wanted, **{name: str(path) for name, path in files.items()}}
    write_json(folder / "settings.json", settings)
    prepare_task(folder / f"{task.name}.parquet")
    return folder / f"{task.name}.parquet"


def stand_in(task: Task, folder: Path, rows: dict[str, int] | None = None) -> Path:
    """As many rows as GLUE has, or as given by split: lengths as in its training rows, random pieces and labels.

    Every word piece is as frequent as any other. Equal arguments give equal files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(1)
    counts = rows or task.official_rows
    table = pa.concat_tables(_made_up(generator, task, split, counts[split]) for split in task.splits)
    facts = {"task": task.name, "stand_in": True, "rows": counts}
    pq.write_table(table.replace_schema_metadata({"symbert": json.dumps(facts)}), folder / f"{task.name}.parquet")
    return folder / f"{task.name}.parquet"


def is_stand_in(data: Path) -> bool:
    """Whether a prepared file says so of itself."""
    return facts_of(data)["stand_in"]


def first_rows(data: Path, task: Task, count: int, output: Path) -> Path:
    """A prepared file of so many rows of each split."""
    table = pq.read_table(data)
    splits = [table.filter(pc.field("split") == split).slice(0, count) for split in task.splits]
    pq.write_table(pa.concat_tables(splits), output)
    return output


def _made_up(generator: np.random.Generator, task: Task, split: str, rows: int) -> pa.Table:
    """Rows between [CLS] and [SEP] whose second half is the second sentence."""
    quantiles = LENGTHS[task.name]
    shares = np.linspace(0, 1, len(quantiles))
    lengths = np.interp(generator.random(rows), shares, quantiles).round().astype(int)
    ends = lengths.cumsum()
    ids = generator.integers(SEP + 1, SEP + 1 + PIECES[task.name], ends[-1])
    ids[ends - lengths], ids[ends - 1] = CLS, SEP
    place = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    types = place >= np.repeat(lengths // 2, lengths)
    offsets = pa.array([0, *ends], pa.int32())
    return pa.table(
        {
            "split": pa.array([split] * rows),
            "input_ids": pa.ListArray.from_arrays(offsets, pa.array(ids, pa.int32())),
            "token_type_ids": pa.ListArray.from_arrays(offsets, pa.array(types.astype(np.int8))),
            "label": pa.array(generator.integers(0, task.num_labels, rows)),
        }
    )
