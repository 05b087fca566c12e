"""The runs of other hosts than the encoder: what each measured on its validation data, when it ended and before."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError
from symbert.files import read_json
from symbert.hosts import HOSTS, OTHERS
from symbert.report.machines import RUN
from symbert.report.order import model_rank
from symbert.report.runs import losses_of, read_log, run_name
from symbert.report.scores import REMEDY, is_number

DONE = {**RUN, "model_host": str, "steps": int, "validation_loss": (int, float), "parameters": int}


def read_hosts(
    folders: list[Path], steps: Mapping[str, int], wanted: Iterable[Sequence[str | int]] = ()
) -> pd.DataFrame:
    """A row per run: host, size, attention, pretrain_seed, steps, validation_loss, parameters, the host's `measure`,
    its `further_measures` by name, and the `signatures` of those that have one, by name.

    `steps` are those that a run of each host has.

    DataError names the file of a run of another length, of an unknown host, or that lacks its host's measure, and the
    first of the `wanted` (host, size, attention, pretrain_seed) that is not there.
    """
    rows = [row for row, _ in _runs(folders, steps, wanted)]
    measured = ["measure", "further_measures", "signatures"]
    return pd.DataFrame(rows, columns=["host", *RUN, "steps", "validation_loss", "parameters", *measured])


def read_courses(
    folders: list[Path], steps: Mapping[str, int], wanted: Iterable[Sequence[str | int]] = ()
) -> dict[tuple[str, str, str], pd.DataFrame]:
    """What a host measures, by host, size and operator: a row per pre-training seed, a column per step.

    DataError as of `read_hosts`, and for a run that was evaluated at other steps; IntegrityError for the metrics.jsonl
    of another run.
    """
    rows = []
    for run, folder in _runs(folders, steps, wanted):
        measure, log = HOSTS[run["host"]].measure, folder / "metrics.jsonl"
        for line in read_log(log, run):
            if line["split"] == "validation":
                if not is_number(line.get(measure)):
                    raise DataError(
                        f"{log}: the validation '{measure}' at step {line['step']} is "
                        f"{line.get(measure)!r}, expected a finite number; {REMEDY}"
                    )
                rows.append({**run, "step": line["step"], "loss": line[measure]})
    courses = {}
    for host, runs in pd.DataFrame(rows).groupby("host", sort=False):
        courses |= {(host, *model): seeds for model, seeds in losses_of(runs).items()}
    return courses


def _runs(
    folders: list[Path], steps: Mapping[str, int], wanted: Iterable[Sequence[str | int]]
) -> list[tuple[dict[str, Any], Path]]:
    """The runs in the order of tables, each with its folder."""
    runs = sorted(((_row(folder / "done.json", steps), folder) for folder in folders), key=lambda run: _rank(run[0]))
    present = {tuple(row[key] for key in ("host", *RUN)) for row, _ in runs}
    for host, *run in wanted:
        if (host, *run) not in present:
            raise DataError(f"runs: {host} {run_name(*run)} is missing; run again")
    return runs


def _row(file: Path, steps: Mapping[str, int]) -> dict[str, Any]:
    run = read_json(file, DONE, REMEDY)
    host = run["model_host"]
    if host not in OTHERS:
        raise DataError(f"{file}: 'model_host' is {host}, expected one of {', '.join(OTHERS)}; {REMEDY}")
    if run["steps"] != steps[host]:
        raise DataError(f"{file}: the run has {run['steps']} steps, expected {steps[host]}; {REMEDY}")
    names = [HOSTS[host].measure, *HOSTS[host].further_measures]
    measured = read_json(file, {f"validation_{name}": (int, float) for name in names}, REMEDY)
    measure, *further = (measured[f"validation_{name}"] for name in names)
    return {
        "host": host,
        **measured,
        "measure": measure,
        "further_measures": dict(zip(names[1:], further, strict=True)),
        "signatures": {name: run[f"{name}_signature"] for name in names if f"{name}_signature" in run},
    }


def _rank(row: dict[str, Any]) -> tuple[Any, ...]:
    return OTHERS.index(row["host"]), model_rank(row["size"], row["attention"]), row["pretrain_seed"]
