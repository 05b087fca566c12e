"""The runs of other hosts than the encoder: what each measured on its validation data when it ended."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError
from symbert.files import read_json
from symbert.hosts import HOSTS, OTHERS
from symbert.report.machines import RUN
from symbert.report.order import model_rank
from symbert.report.runs import run_name

REMEDY = "run pretrain again"
DONE = {**RUN, "model_host": str, "steps": int, "validation_loss": (int, float), "parameters": int}


def read_hosts(files: list[Path], steps: int, wanted: Iterable[Sequence[str | int]] = ()) -> pd.DataFrame:
    """A row per run: host, size, attention, pretrain_seed, validation_loss, parameters, and the host's `measure`.

    DataError names the file of a run of another length, of an unknown host, or that lacks its host's measure, and the
    first of the `wanted` (host, size, attention, pretrain_seed) that is not there.
    """
    rows = sorted((_row(file, steps) for file in files), key=_rank)
    present = {tuple(row[key] for key in ("host", *RUN)) for row in rows}
    for host, *run in wanted:
        if (host, *run) not in present:
            raise DataError(f"runs: {host} {run_name(*run)} is missing; run pretrain for it")
    return pd.DataFrame(rows, columns=["host", *RUN, "validation_loss", "parameters", "measure"])


def _row(file: Path, steps: int) -> dict[str, Any]:
    run = read_json(file, DONE, REMEDY)
    host = run["model_host"]
    if host not in OTHERS:
        raise DataError(f"{file}: 'model_host' is {host}, expected one of {', '.join(OTHERS)}; {REMEDY}")
    if run["steps"] != steps:
        raise DataError(f"{file}: the run has {run['steps']} steps, expected {steps}; {REMEDY}")
    measure = f"validation_{HOSTS[host].measure}"
    return {"host": host, **read_json(file, {measure: (int, float)}, REMEDY), "measure": run[measure]}


def _rank(row: dict[str, Any]) -> tuple[Any, ...]:
    return OTHERS.index(row["host"]), model_rank(row["size"], row["attention"]), row["pretrain_seed"]
