"""Wall, CPU and GPU hours of each stage."""

from typing import Any

import pandas as pd

from symbert.commit import PROJECT
from symbert.hosts import PRETRAINING
from symbert.project import STAGES, stages_of_rules
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.machines import MeasuredJob, PretrainedRun, gpus, hours_of

ALL, OTHER = "all", "other"
HOURS = ["wall_hours", "cpu_hours", "gpu_hours"]
Spent = tuple[str, str, float, float | None, float | None]  # stage, rule, hours; None: not measured


@exhibit(
    chapter="Provenance",
    place=4,
    heading="Hours of each stage",
    reads=("benchmarks",),
    may_read=("machines",),
    follows=("scores", "curve", "robustness"),
)
def hours_table(data: Data) -> Table:
    """Wall, CPU and GPU hours of each stage and of its rules, added up over jobs, as Snakemake and the runs measured
    them on these machines as they were. Jobs whose benchmark file is gone, and rules without one, are not counted.
    """
    jobs, runs, stages = data.benchmarks, data.machines, stages_of_rules(PROJECT)
    measured = {job.name for job in jobs if stages.get(job.rule) == "pretrain"}
    all_spent = [_spent(job, stages.get(job.rule, OTHER), runs) for job in jobs]
    for run in runs:
        if run.name not in measured and run.sessions:
            wall, gpu = hours_of(run.sessions)
            rule = next(rule for rule, host in PRETRAINING.items() if host == run.model_host)
            all_spent.append(("pretrain", rule, wall, None, gpu))
    spent = pd.DataFrame(all_spent, columns=["stage", "rule", *HOURS])
    rows = []
    for stage in (*STAGES, OTHER):
        of_stage = spent[spent["stage"] == stage]
        rows += [_row(stage, ALL, of_stage)] if len(of_stage) else []
        rows += [_row(stage, rule, part) for rule, part in of_stage.groupby("rule", sort=False)]
    rows.append(_row(ALL, ALL, spent))
    best = {(at, "stage") for at, row in enumerate(rows) if row["rule"] == ALL}
    caption = (
        "Hours of the jobs that were measured, added up: jobs side by side count each."
        "\n\nWall and CPU hours are from "
        "Snakemake's benchmark files; CPU is sampled, and jobs of seconds are hardly seen. Pre-training that was "
        "interrupted has the wall hours of all sessions that its state tells of, and the CPU hours of the last. GPU "
        "hours are wall hours times the GPUs of the run, of runs that are in the sweep. Rules without a benchmark, and "
        "jobs whose file is gone, are not counted."
    )
    return table_of(rows, caption, "tab:hours", best=best)


def _spent(job: MeasuredJob, stage: str, runs: list[PretrainedRun]) -> Spent:
    """The hours of a measured job; that of pre-training is the last session of its run."""
    run = next((run for run in runs if job.name == run.name or job.name.startswith(f"{run.name}-")), None)
    wall, gpu = job.wall, 0.0
    if stage in ("pretrain", "glue"):
        if run is None or not run.sessions:  # of a run that is no more in the sweep
            gpu = None
        elif stage == "glue":  # one process, on the kind of device that its model was trained on
            gpu = wall * min(gpus(run.sessions[-1]), 1)
        else:
            wall_before, gpu_before = hours_of(run.sessions[:-1])
            wall, gpu = wall + wall_before, wall * gpus(run.sessions[-1]) + gpu_before
    return stage, job.rule, wall, job.cpu, gpu


def _row(stage: str, rule: str, spent: pd.DataFrame) -> dict[str, Any]:
    """Sums over jobs; None where none was measured."""
    sums = spent[HOURS].astype(float).sum(min_count=1)
    sums["wall_hours"] = spent["wall_hours"].sum()
    return {"stage": stage, "rule": rule, "jobs": len(spent)} | {key: decimal_of(sums[key], 3) for key in HOURS}
