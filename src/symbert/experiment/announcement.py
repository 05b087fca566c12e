"""The lines that a start of Snakemake prints: the experiment, the runs to train and those that are there, the disk."""

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

from symbert.config import source_of
from symbert.errors import InputOutputError, SymbertError
from symbert.experiment.disk import by_mount
from symbert.experiment.plan import files_of, warning_of
from symbert.hosts import PRETRAINING
from symbert.layout import Experiment, Run
from symbert.pretrain.guard import refusal
from symbert.pretrain.state import run_state, settings_changed
from symbert.progress import data_size
from symbert.snakemake_internals import Job

# What unexpected content of result files, and an optimizer of one's own, can raise: no reason to stop a start.
PLAN_ERRORS = (SymbertError, OSError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def announce(experiment: Experiment) -> Iterator[str]:
    """The lines of the banner; InputOutputError for a folder that cannot be written to."""
    name, scale, recipe = experiment.name, experiment.config["scale"], experiment.config["recipe"]
    sources = ", ".join(f"{stage} {source_of(experiment.config, stage)}" for stage in ("corpus", "glue"))
    yield f"symbert: experiment {name} (scale {scale}, {sources}, recipe {recipe}) in {experiment.results}"
    for folder in experiment.folders:
        place = next(place for place in (Path(folder), *Path(folder).resolve().parents) if place.exists())
        if not os.access(place, os.W_OK):
            raise InputOutputError(f"{place}: cannot be written to; make it writable, or start in another folder")
    try:
        states = [run_state(experiment, run) for run in experiment.pretrainings()]
        missing = [str(state.run) for state in states if not state.is_done]
        yield f"  to train       {textwrap.shorten(', '.join(missing) or 'nothing', 100)}"
        yield f"  there already  {len(states) - len(missing)} of {len(states)} pre-trainings"
        for mount, (needed, free, keys) in by_mount(files_of(experiment, states)).items():
            room = f"{data_size(free)} free" if needed <= free else f"warning: only {data_size(free)} free"
            yield f"  disk           {data_size(needed)} to come on {mount} ({', '.join(keys)}), {room}"
    except PLAN_ERRORS as error:
        yield f"  not known      {type(error).__name__}: {error}"


def refuse_changed(experiment: Experiment, jobs: list[Job]) -> None:
    """ConfigError where one of the jobs trains a run whose folder holds another one that is not to be superseded."""
    for job in jobs if experiment.config["on_settings_change"] == "refuse" else []:
        if job.rule in PRETRAINING:
            values = job.wildcards
            run = Run(values["size"], values["attention"], int(values["seed"]), PRETRAINING[job.rule])
            if differing := settings_changed(experiment, run):
                raise refusal(experiment.place(experiment.state, run), differing)


def changed_runs(experiment: Experiment) -> Iterator[str]:
    """Lines on the runs whose folder holds one of other settings: how it differs, and what will become of it."""
    try:
        for run in experiment.pretrainings():
            yield from warning_of(experiment, run_state(experiment, run))
    except PLAN_ERRORS:  # as `announce` says
        return
