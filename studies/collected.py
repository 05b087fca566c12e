"""Add the finished runs of a results folder that belong to a study to docs/findings/start-and-symmetry/runs.csv.

    python -m studies.collected results

A run that is there stays as it is, so a study can be trained in parts, on several machines.
"""

import hashlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from studies.exits import plateau_exit

STUDIES = Path(__file__).parent
RUNS = STUDIES.parent / "docs/findings/start-and-symmetry/runs.csv"
COLLECTED = (
    "search",
    "plateau",
    "start-and-symmetry",
    "dose",
    "own-position",
    "word-pieces",
    "direction",
    "width",
    "tie-width",
    "logit-step",
    "redrawn",
)
AXES = [
    "text",
    "size",
    "attention",
    "learning_rate",
    "batch_size",
    "steps",
    "warmup_steps",
    "schedule_steps",
    "dropout",
]

Point = dict[str, Any]  # by axis


def grids_of(study: str) -> Iterator[tuple[str, list[Point], list[int], dict[str, Any]]]:
    """Each grid of a study's configuration: its name, points, seeds and contrasts."""
    config = yaml.safe_load((STUDIES / f"{study}.yaml").read_text(encoding="utf-8"))
    for name, grid in config["sweep"].get("grids", {study: {}}).items():
        values = {**{key: [value] for key, value in config["pretrain"].items()}, **config["sweep"], **grid}
        values["size"] = values["sizes"]
        points = [dict(zip(AXES, point, strict=True)) for point in itertools.product(*(values[axis] for axis in AXES))]
        for point in points:  # null: the rate reaches 0 in the last step
            point["schedule_steps"] = point["schedule_steps"] or point["steps"]
        yield name, points, values["pretrain_seeds"], values.get("contrasts", {})


def row_of(folder: Path) -> dict[str, Any]:
    """A finished run as a row of runs.csv, all cells as texts."""
    run, done, timing = (json.loads((folder / f"{name}.json").read_text()) for name in ("run", "done", "timing"))
    metrics = (folder / "metrics.jsonl").read_bytes()
    if hashlib.sha256(metrics).hexdigest() != done["metrics_sha256"]:
        sys.exit(f"{folder}/metrics.jsonl: not the file that done.json names; train the run again")
    records = [json.loads(line) for line in metrics.splitlines()]
    start = next(record for record in records if record["split"] == "initial")
    losses = {record["step"]: round(record["loss"], 4) for record in records if record["split"] == "validation"}
    text = run["rows"]["text"]
    source = text["source"].rpartition(":")[2]  # of module:function
    words = "words-" if text["vocabulary"] else ""
    values = run | run["training"] | {"text": f"{source}-{words}{text['sequence_length']}"}
    values["attention"] = run["operator"]["name"]
    every, steps = values["evaluate_every"], values["steps"]
    values["schedule_steps"] = values.get("schedule_steps") or steps
    if [*losses] != [*range(every, steps + 1, every)]:
        sys.exit(f"{folder}/metrics.jsonl: evaluations are missing; train the run again")
    exit_step = plateau_exit([*losses], [*losses.values()])
    row = {axis: values[axis] for axis in AXES} | {"seed": run["pretrain_seed"]}
    row |= {"corpus_hash": done["corpus_hash"], "commit": timing["commit"]}
    row["processor"] = timing["processor" if timing["device"] == "cpu" else "device"]
    row |= {"torch": timing["versions"]["torch"], "seconds": f"{timing['step_seconds'] * steps:.1f}"}
    row |= {key: f"{np.mean(start[key]):.4f}" if start[key] else "" for key in ("logit_std", "attention_entropy")}
    row |= {"evaluate_every": every, "exit": exit_step or "never"}
    row["losses"] = " ".join(f"{loss:.4f}" for loss in losses.values())
    return {key: str(value) for key, value in row.items()}


def main() -> None:
    """Read the results folders that the command line names."""
    planned = {
        (*(str(point[axis]) for axis in AXES), str(seed)): study
        for study in reversed(COLLECTED)
        for _, points, seeds, _ in grids_of(study)
        for point in points
        for seed in seeds
    }
    runs = pd.read_csv(RUNS, dtype=str)
    identity = [*AXES, "seed"]
    known, new = set(runs[identity].itertuples(index=False, name=None)), []
    for results in map(Path, sys.argv[1:]):
        for done in sorted(results.glob("runs/encoder/*/seed-*/done.json")):
            row = row_of(done.parent)
            key = tuple(row[name] for name in identity)
            if key in planned and key not in known:
                known.add(key)
                new.append({"study": planned[key], **row})
    rows = pd.concat([runs, pd.DataFrame(new, columns=runs.columns)])
    rows.to_csv(RUNS, index=False)
    print(f"{RUNS.name}: {len(new)} new runs")
    for study in COLLECTED:
        for grid, points, seeds, _ in grids_of(study):
            cells = [(*(str(point[axis]) for axis in AXES),) for point in points]
            missing = [seed for seed in seeds if not all((*cell, str(seed)) in known for cell in cells)]
            if missing:
                print(f"{study}, grid {grid}: seeds {missing} are not complete")


if __name__ == "__main__":
    main()
