"""What a start of Snakemake says: what is about to run, in how many jobs, how long, and whether there is room."""

from collections.abc import Iterator
from pathlib import Path

from symbert.config import Config, source_of
from symbert.errors import InputOutputError, SymbertError
from symbert.experiment.disk import Files, by_mount, refuse_small, written_by
from symbert.experiment.existing import settings_changed
from symbert.experiment.jobs import Job, count_by_stage
from symbert.experiment.layout import Experiment
from symbert.experiment.plan import Plan, Stage, plan_experiment
from symbert.experiment.plan_text import hours_in_words, warning_of
from symbert.pretrain.guard import refusal
from symbert.progress import data_size
from symbert.project import read_yaml

# What odd files in the folders of results can raise: no reason to stop a start.
ODD = (SymbertError, OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def announce(experiment: Experiment, scale_file: Path, jobs: list[Job], on_cluster: bool = False) -> Iterator[str]:
    """The lines of the banner and of a short plan of `jobs`, which are about to run.

    After the last line, ConfigError for a run whose folder holds another one that is not to be superseded, and
    InputOutputError when what the jobs still have to write does not fit the storage. On a cluster, whose nodes may see
    other file systems, the latter is a line. Nothing else stops a start: what cannot be planned is said in a line.
    """
    yield from banner(experiment, read_yaml(scale_file))
    try:
        plan = plan_experiment(experiment)
        files = written_by(experiment, plan.files, jobs)
        yield from _plan(experiment, plan, files, jobs)
    except ODD as error:
        files = []
        yield f"  plan           none: {type(error).__name__}: {error}"
    refuse_changed(experiment, jobs)
    try:
        refuse_small(files)
    except InputOutputError as error:
        if not on_cluster:
            raise InputOutputError(f"{error}; or start with --no-hooks, which skips this check") from None
        yield f"  warning        {error}"


def refuse_changed(experiment: Experiment, jobs: list[Job]) -> None:
    """ConfigError for the first run to be trained whose folder holds another, where `on_settings_change` is refuse."""
    if experiment.config["on_settings_change"] != "refuse":
        return
    starting = _trained(experiment, jobs)
    for run in experiment.runs():
        state = experiment.place(experiment.state, run)
        if state in starting and (differing := settings_changed(experiment, run)):
            raise refusal(state, differing)


def _trained(experiment: Experiment, jobs: list[Job]) -> set[Path]:
    """The state folders of the runs that the jobs train."""
    return {Path(experiment.state.format(**wildcards)) for rule, wildcards in jobs if rule == "pretrain_model"}


def _plan(experiment: Experiment, plan: Plan, files: list[Files], jobs: list[Job]) -> Iterator[str]:
    """A line per stage that has jobs, the runs whose folders hold others, and a line per file system."""
    counts, starting = count_by_stage(experiment, jobs), _trained(experiment, jobs)
    for stage in plan.stages:
        if counts[stage.name]:
            to_write = sum(one.to_come for one in files if one.stage == stage.name)
            yield f"  {stage.name:<14} {_in_short(stage, counts[stage.name], to_write)}"
    for found in plan.runs:
        if experiment.place(experiment.state, found.run) in starting:
            yield from (f"  {line}" for line in warning_of(experiment, found))
    for mount, (needed, free, keys) in by_mount(files).items():
        if keys:
            yield f"  storage        {data_size(needed)} to come on {mount}, {data_size(free)} free ({', '.join(keys)})"


def banner(experiment: Experiment, scale: Config) -> list[str]:
    """What is about to run: experiment, scale, sources, what the scale overrides, where results go."""
    config, sweep = experiment.config, experiment.config["sweep"]
    runs = [f"{size}-{attention}" for size in sweep["sizes"] for attention in sweep["attention"]]
    return [
        f"symbert: experiment {experiment.name} (scale {config['scale']}, corpus {source_of(config, 'corpus')}, "
        f"GLUE {source_of(config, 'glue')}, recipe {config['recipe']})",
        f"  scale sets     {', '.join(overrides(scale)) or 'nothing: every value is the paper’s'}",
        f"  pre-training   {', '.join(runs)}; seeds {sweep['pretrain_seeds']}; "
        f"{config['pretrain']['steps']:,} steps of {config['pretrain']['batch_size']} × "
        f"{config['corpus']['pack']['sequence_length']} tokens",
        f"  fine-tuning    {', '.join(sweep['tasks'])}; seeds {sweep['finetune_seeds']}; "
        f"curve over {_curve_of(sweep['curve'])}",
        f"  results        {experiment.results}",
    ]


def overrides(scale: Config, prefix: str = "") -> list[str]:
    """The keys that a scale's file sets, dotted."""
    keys = []
    for key, value in scale.items():
        keys += overrides(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
    return keys


def _curve_of(curve: Config) -> str:
    """The checkpoints of Figure 3 in words."""
    curves = [f"{len(curve['steps'][size])} checkpoints of {size}" for size in curve["sizes"]]
    return ", ".join(curves) or "no checkpoints"


def _in_short(stage: Stage, jobs: int, to_write: float) -> str:
    """A stage that is about to run: its jobs, and what of it is to come; of bytes, what these jobs write."""
    hours = stage.spent.to_come
    parts = [
        f"{jobs:,} job{'s' if jobs > 1 else ''}",
        f"{hours_in_words(hours.gpu)} GPU-hours" if hours.gpu else "",
        f"{hours_in_words(hours.core)} core-hours" if hours.core else "",
        f"{data_size(to_write)} to write" if to_write else "",
        f"{data_size(stage.download)} to download" if stage.download else "",
    ]
    return ", ".join(part for part in parts if part)
