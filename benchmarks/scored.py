"""Made-up scores of the paper-scale matrix, and how long the report's commands take to make tables of them."""

import hashlib
import json
import random
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from benchmarks.measure import Command, Contestant, interleave
from benchmarks.paper import ROOT, paper_sections
from symbert.tasks import GLUE

MODELS = tuple(product(("small", "base"), ("original", "symmetric", "pairwise")))
SEEDS = (1, 2, 3, 4, 5)
TABLES = ("table-table3_glue", "table-scores", "table-statistics", "table-milestones")
IMPORTS = "imports"  # what every command does before it reads anything

Record = dict[str, Any]


def measure_tables(folder: Path, rounds: int, tables: Sequence[str] = TABLES) -> list[dict[str, float]]:
    """Wall seconds of fresh processes: of IMPORTS, and of each table from each layout of the files, so named."""
    layouts = {f"{len(files):,} files": files for files in (write_scores(folder, count) for count in (len(SEEDS), 1))}
    settings = folder / "report.json"
    settings.write_text(json.dumps(paper_sections()["report"]))
    present = [Contestant(IMPORTS, [[[sys.executable, "-m", "symbert", "exhibit", "--help"]]])]
    for table, (layout, files) in product(tables, layouts.items()):
        present.append(Contestant(f"{table}, {layout}", [[command(table, files, settings, folder / "tables")]]))
    found = interleave(present, rounds, lambda: None)
    return [{name: usage.wall for name, usage in round.items()} for round in found]


def write_scores(folder: Path, count: int) -> list[Path]:
    """The score records of every model, step, task and seed, in files of `count` seeds; returns the files.

    With all seeds in one file this is the layout of the workflow.
    """
    draw = random.Random(1)
    settings_hash = paper_sections()["report"]["settings_hash"]
    files = []
    for (size, attention), step, task in product(MODELS, steps(), GLUE):
        place = folder / f"scores-{count}" / f"{size}-{attention}/seed-1/step-{step}"
        place.mkdir(parents=True, exist_ok=True)
        for first in range(0, len(SEEDS), count):
            cells = [(size, attention, step, task, seed) for seed in SEEDS[first : first + count]]
            files.append(place / (f"{task}.json" if count == len(SEEDS) else f"{task}-{first}.json"))
            files[-1].write_text(json.dumps([record(draw, settings_hash, *cell) for cell in cells], indent=2))
    return files


def steps() -> list[int]:
    """The checkpoints of Figure 3."""
    return yaml.safe_load((ROOT / "config.yaml").read_text())["sweep"]["curve"]["steps"]["base"]


def record(
    draw: random.Random, settings_hash: str, size: str, attention: str, step: int, name: str, seed: int
) -> Record:
    """A record as `finetune` writes it, of a score that was drawn."""
    task = GLUE[name]
    details = {column: {metric: draw.uniform(0.5, 0.9) for metric in task.metrics} for column in task.scores.values()}
    return {
        "size": size,
        "attention": attention,
        "pretrain_seed": 1,
        "step": step,
        "task": name,
        "finetune_seed": seed,
        "metrics": {column: sum(values.values()) / len(values) for column, values in details.items()},
        "details": details,
        "majority": dict.fromkeys(task.scores.values(), 0.5),
        "constant_prediction": False,
        "rows": task.official_rows,
        "official_rows": task.official_rows,
        "partial": False,
        "stand_in": True,
        "settings_hash": settings_hash,
        "recipe": "faithful",
        "precision": "fp32",
        "versions": {"python": "3.11.0", "torch": "2.13.0", "transformers": "5.23.0", "symbert": "0.1.0"},
        "origin": "finetune",
        "checkpoint_sha256": f"{draw.getrandbits(256):064x}",
        "data_sha256": hashlib.sha256(name.encode()).hexdigest(),  # all models of a task are scored on the same rows
    }


def command(table: str, files: Sequence[Path], settings: Path, output: Path) -> Command:
    """The report's command that writes a table in all formats."""
    output.mkdir(exist_ok=True)
    read = ("--curve", "--curve-seeds") if table == "table-milestones" else ("--scores", "--finetune-seeds")
    return [
        *(sys.executable, "-m", "symbert", "exhibit", table, "--settings", str(settings)),
        *(read[0], *map(str, files)),
        *(read[1], *map(str, SEEDS)),
        *("--output", *(str(output / f"{table}.{suffix}") for suffix in ("csv", "md", "tex"))),
    ]
