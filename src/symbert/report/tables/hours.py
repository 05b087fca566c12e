"""Wall, CPU and GPU hours of each stage."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.machines import OTHER, STAGES, MeasuredJob, PretrainedRun, gpus, hours

ALL = "all"


@dataclass(frozen=True)
class JobHours:
    """What one job took, in hours; None where nobody measured it."""

    stage: str
    rule: str
    wall: float
    cpu: float | None
    gpu: float | None


@exhibit(
    chapter="Provenance",
    place=4,
    heading="Hours of each stage",
    reads=("benchmarks",),
    may_read=("machines",),
    follows=("scores", "curve", "robustness"),
    of_imported=False,
)
def hours_table(data: Data) -> Table:
    """Wall, CPU and GPU hours of each stage and of its rules, added up over jobs, as Snakemake and the runs measured
    them on these machines as they were. Jobs whose benchmark file is gone, and rules without one, are not counted.
    """
    jobs, runs = data.benchmarks, data.machines
    measured = {job.name for job in jobs if job.stage == "pretrain"}
    spent = [_spent(job, runs) for job in jobs]
    spent += [_of_sessions(run) for run in runs if run.name not in measured and run.sessions]
    rows, stages = [], []
    for stage in (*STAGES, OTHER):
        of_stage = [each for each in spent if each.stage == stage]
        if of_stage:
            stages.append(len(rows))
            rows.append(_row(stage, ALL, of_stage))
            rows += [_row(stage, rule, of_stage) for rule in dict.fromkeys(each.rule for each in of_stage)]
    rows.append(_row(ALL, ALL, spent))
    caption = (
        "Hours of the jobs that were measured, added up: jobs side by side count each. Wall and CPU hours are from "
        "Snakemake's benchmark files; CPU is sampled, and jobs of seconds are hardly seen. Pre-training that was "
        "interrupted has the wall hours of all sessions that its state tells of, and the CPU hours of the last. GPU "
        "hours are wall hours times the GPUs of the run, of runs that are in the sweep. Rules without a benchmark, and "
        "jobs whose file is gone, are not counted."
    )
    return table_of(rows, caption, "tab:hours", best=frozenset((at, "stage") for at in (*stages, len(rows) - 1)))


def _spent(job: MeasuredJob, runs: list[PretrainedRun]) -> JobHours:
    """A measured job; that of pre-training is the last session of its run."""
    run = next((run for run in runs if job.name == run.name or job.name.startswith(f"{run.name}-")), None)
    if job.stage not in ("pretrain", "glue"):
        return JobHours(job.stage, job.rule, job.wall, job.cpu, 0.0)
    if run is None or not run.sessions:  # of a run that is no more in the sweep
        return JobHours(job.stage, job.rule, job.wall, job.cpu, None)
    *before, last = run.sessions
    if job.stage == "glue":  # one process, on the kind of device that its model was trained on
        return JobHours(job.stage, job.rule, job.wall, job.cpu, job.wall * min(gpus(last), 1))
    wall = job.wall + sum(map(hours, before))
    return JobHours(job.stage, job.rule, wall, job.cpu, job.wall * gpus(last) + _gpu_hours(before))


def _of_sessions(run: PretrainedRun) -> JobHours:
    """A run without a benchmark."""
    return JobHours("pretrain", "pretrain_model", sum(map(hours, run.sessions)), None, _gpu_hours(run.sessions))


def _gpu_hours(sessions: Iterable[dict[str, Any]]) -> float:
    return sum(hours(session) * gpus(session) for session in sessions)


def _row(stage: str, rule: str, spent: list[JobHours]) -> dict[str, Any]:
    jobs = [each for each in spent if rule in (ALL, each.rule)]
    return {
        "stage": stage,
        "rule": rule,
        "jobs": len(jobs),
        "wall_hours": decimal_of(sum(each.wall for each in jobs), 3),
        "cpu_hours": _known(each.cpu for each in jobs),
        "gpu_hours": _known(each.gpu for each in jobs),
    }


def _known(hours_of_jobs: Iterable[float | None]) -> Any:
    """The sum of what was measured; None where nothing was."""
    known = [value for value in hours_of_jobs if value is not None]
    return decimal_of(sum(known), 3) if known else None
