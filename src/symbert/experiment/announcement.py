"""What a start of Snakemake says: the experiment, what is trained, what is there already, and whether there is room."""

import os
from collections.abc import Iterator
from pathlib import Path

from symbert.commit import PROJECT
from symbert.config import source_of
from symbert.cost import Files
from symbert.errors import InputOutputError, SymbertError
from symbert.experiment.disk import by_mount, refuse_small
from symbert.experiment.plan import files_of, warning_of
from symbert.hosts import EXTRACTION, PRETRAINING
from symbert.paths import Experiment, Run, of_host
from symbert.pretrain.guard import refusal
from symbert.pretrain.state import run_state, settings_changed
from symbert.progress import data_size
from symbert.project import stages_of_rules
from symbert.snakemake_internals import Job

# What unexpected content of result files, and an optimizer of one's own, can raise: no reason to stop a start.
PLAN_ERRORS = (SymbertError, OSError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def announce(experiment: Experiment, jobs: list[Job], on_cluster: bool = False) -> Iterator[str]:
    """The lines of the banner of `jobs`, which are about to run.

    ConfigError for a run whose folder holds another one that is not to be superseded, and InputOutputError for a
    folder that cannot be written to, and when what the jobs still have to write does not fit the storage. On a cluster,
    whose nodes may see other file systems, the last is a line. Nothing else stops a start.
    """
    config = experiment.config
    yield (
        f"symbert: experiment {experiment.name} (scale {config['scale']}, corpus {source_of(config, 'corpus')}, "
        f"GLUE {source_of(config, 'glue')}, recipe {config['recipe']}) in {experiment.results}"
    )
    trained = [run_of(job) for job in jobs if job.rule in PRETRAINING]
    for run in trained if config["on_settings_change"] == "refuse" else []:
        if differing := settings_changed(experiment, run):
            raise refusal(experiment.place(experiment.state, run), differing)
    yield f"  trains         {', '.join(map(str, trained)) or 'nothing'}; {len(jobs):,} jobs in all"
    for folder in experiment.folders:
        place = next(place for place in (Path(folder), *Path(folder).resolve().parents) if place.exists())
        if not os.access(place, os.W_OK):
            raise InputOutputError(f"{place}: cannot be written to; make it writable, or start in another folder")
    try:
        states = [run_state(experiment, run) for run in experiment.pretrainings()]
        yield f"  there already  {sum(state.is_done for state in states)} of {len(states)} pre-trainings"
        files = files_to_write(experiment, files_of(experiment, states), jobs)
        for mount, (needed, free, keys) in by_mount(files).items():
            yield f"  disk           {data_size(needed)} to come on {mount}, {data_size(free)} free ({', '.join(keys)})"
    except PLAN_ERRORS as error:
        yield f"  disk           not known: {type(error).__name__}: {error}"
        return
    try:
        refuse_small(files)
    except InputOutputError as error:
        if not on_cluster:
            raise InputOutputError(f"{error}; or start with --no-hooks, which skips this check") from None
        yield f"  warning        {error}"


def changed_runs(experiment: Experiment) -> Iterator[str]:
    """Lines on the runs whose folder holds one of other settings: how it differs, and what will become of it."""
    try:
        for run in experiment.pretrainings():
            yield from warning_of(experiment, run_state(experiment, run))
    except PLAN_ERRORS:  # as `announce` says
        return


def run_of(job: Job) -> Run:
    """The run that a job trains."""
    return Run(job.wildcards["size"], job.wildcards["attention"], int(job.wildcards["seed"]), PRETRAINING[job.rule])


def files_to_write(experiment: Experiment, files: list[Files], jobs: list[Job]) -> list[Files]:
    """Those of the files that these jobs write and that are still to come; all of the corpus where any job is of it."""
    stages, folders = stages_of_rules(PROJECT), folders_of(experiment, jobs)
    has_corpus = any(stages.get(job.rule) == "corpus" for job in jobs)
    chosen = [one for one in files if one.folder in folders or (has_corpus and one.stage == "corpus")]
    return [one for one in chosen if one.to_come]


def folders_of(experiment: Experiment, jobs: list[Job]) -> set[Path]:
    """The folders that jobs write large files into, but for those of the corpus."""
    patterns = {
        **{rule: of_host(experiment.state, host) for rule, host in PRETRAINING.items()},
        **{rule: of_host(experiment.checkpoint, host) for rule, host in EXTRACTION.items()},
        "download_task": f"{experiment.results}/glue",
        **{suite.rule: experiment.finetuned.replace("{suite}", suite.name) + "/state" for suite in experiment.suites},
    }
    return {Path(patterns[job.rule].format(**job.wildcards)) for job in jobs if job.rule in patterns}
