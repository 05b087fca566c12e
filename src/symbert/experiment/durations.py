"""How long each job of an experiment takes, about: the weights of the bar that all of them share."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from symbert.config import parts_of
from symbert.corpus.plan import plan_of
from symbert.cost import Speed, Work
from symbert.experiment.announcement import PLAN_ERRORS
from symbert.glue.cost import finetuning_speed, finetuning_work, judging_work, robustness_work
from symbert.glue.state import robustness_seeds, scored_seeds
from symbert.hosts import ENCODER, JUDGING, PRETRAINING
from symbert.layout import Experiment, Run
from symbert.pretrain.state import RunState, pretraining_cost, pretraining_speed, run_state
from symbert.report.machines import read_benchmarks
from symbert.snakemake_internals import Job
from symbert.tasks import tasks_of_suite

SHORTEST = 0.1  # seconds of any job


def expected_seconds(experiment: Experiment, jobs: Sequence[Job]) -> list[float]:
    """Of each job, from its start: what it adds to files of today's settings, at the speeds that `symbert plan` has.

    Where these cannot be reckoned, all jobs are taken for equal.
    """
    try:
        return _seconds(experiment, jobs)
    except PLAN_ERRORS:
        return [1.0] * len(jobs)


def _seconds(experiment: Experiment, jobs: Sequence[Job]) -> list[float]:
    config = experiment.config
    benchmarks = read_benchmarks(Path(experiment.results) / "benchmarks")
    finetunings = {(job.rule, job.name): job.wall for job in benchmarks}
    suites = {suite.rule: suite for suite in experiment.suites}
    corpus = {command.replace("-", "_"): hours for command, hours in plan_of(config).core_hours.items()}
    parts = len(parts_of(config))

    @cache
    def state_of(run: Run) -> RunState:
        return run_state(experiment, run)

    @cache
    def speed_of(size: str) -> Speed:
        return finetuning_speed(experiment, size, finetunings)

    def hours(job: Job) -> float:
        if job.rule in corpus:
            return corpus[job.rule] / (1 if job.rule == "pack_shards" else parts)
        if job.rule not in (*PRETRAINING, *suites, "measure_robustness", *JUDGING):
            return 0.0
        size, seeds = job.wildcards["size"], config["sweep"]["finetune_seeds"]
        host = {**PRETRAINING, **JUDGING}.get(job.rule, ENCODER)
        state = state_of(Run(size, job.wildcards["attention"], int(job.wildcards["seed"]), host))
        if job.rule in PRETRAINING:
            cost = pretraining_cost(experiment, state, pretraining_speed(experiment, state.run))
            return cost.to_come.core / config["pretrain"]["processes"]
        if job.rule in JUDGING:
            return speed_of(size).hours(judging_work(experiment, state.run)).core
        step = int(job.wildcards["step"])
        if job.rule in suites:
            tasks = tasks_of_suite(suites[job.rule].name, experiment.tasks)
            every = scored_seeds(experiment, state, step)
            work_of, scored = finetuning_work, {task: every[task] for task in tasks}
            seeds = experiment.finetune_seeds(size, step)
        else:
            work_of, scored = robustness_work, robustness_seeds(experiment, state, step)
        work = (work_of(experiment, size, task, len(seeds) - len(done)) for task, done in scored.items())
        return speed_of(size).hours(sum(work, Work())).core

    start = max(config["rates"]["job_seconds"], SHORTEST)
    return [start + 3600 * hours(job) for job in jobs]
