"""What a start of Snakemake says: what is about to run, in how many jobs, how long, and whether there is room."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symbert.commit import PROJECT
from symbert.config import Config, source_of
from symbert.corpus.state import corpus_home
from symbert.cost import Files
from symbert.errors import InputOutputError, SymbertError
from symbert.experiment.disk import by_mount, refuse_small
from symbert.experiment.plan import by_stage, hours_in_words, plan_experiment, warning_of
from symbert.glue.state import judged_home, scores_home
from symbert.hosts import ENCODER, EXTRACTION, PRETRAINING
from symbert.layout import Experiment, of_host
from symbert.pretrain.guard import refusal
from symbert.pretrain.state import run_home, settings_changed
from symbert.progress import data_size
from symbert.project import read_yaml
from symbert.snakemake_internals import Job

# What unexpected content of result files, and an optimizer of one's own, can raise: no reason to stop a start.
PLAN_ERRORS = (SymbertError, OSError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def announce(
    experiment: Experiment, scale_file: Path, jobs: list[Job], on_cluster: bool = False, project: Path = PROJECT
) -> Iterator[str]:
    """The lines of the banner and of a short plan of `jobs`, which are about to run.

    After the last line, ConfigError for a run whose folder holds another one that is not to be superseded, and
    InputOutputError when what the jobs still have to write does not fit the storage. On a cluster, whose nodes may see
    other file systems, the latter is a line. Nothing else stops a start: what cannot be planned is said in a line.
    """
    yield from banner(experiment, read_yaml(scale_file))
    counts = by_stage((job.rule for job in jobs if job.rule != "all"), project)
    starting = folders_of(experiment, [job for job in jobs if job.rule in PRETRAINING])
    files: list[Files] = []
    try:
        plan = plan_experiment(experiment, counts, counts)
        files = files_to_write(experiment, plan.files, jobs, counts)
        for stage in plan.stages:
            if stage.jobs:
                hours = stage.cost.to_come
                to_write = sum(one.to_come for one in files if one.stage == stage.name)
                parts = [
                    f"{stage.jobs:,} job{'s' if stage.jobs > 1 else ''}",
                    f"{hours_in_words(hours.gpu)} GPU-hours" if hours.gpu else "",
                    f"{hours_in_words(hours.core)} core-hours" if hours.core else "",
                    f"{data_size(to_write)} to write" if to_write else "",
                    f"{data_size(stage.download)} to download" if stage.download else "",
                ]
                yield f"  {stage.name:<14} {', '.join(part for part in parts if part)}"
        for state in plan.runs:
            if experiment.place(experiment.state, state.run) in starting:
                yield from (f"  {line}" for line in warning_of(experiment, state))
        for mount, (needed, free, keys) in by_mount(files).items():
            if keys:
                room = f"{data_size(needed)} to come on {mount}, {data_size(free)} free"
                yield f"  storage        {room} ({', '.join(keys)})"
    except PLAN_ERRORS as error:
        files = []
        yield f"  plan           none: {type(error).__name__}: {error}"
    for run in experiment.pretrainings() if experiment.config["on_settings_change"] == "refuse" else []:
        state = experiment.place(experiment.state, run)
        if state in starting and (differing := settings_changed(experiment, run)):
            raise refusal(state, differing)
    try:
        refuse_small(files)
    except InputOutputError as error:
        if not on_cluster:
            raise InputOutputError(f"{error}; or start with --no-hooks, which skips this check") from None
        yield f"  warning        {error}"


def files_to_write(experiment: Experiment, files: list[Files], jobs: list[Job], counts: Counter[str]) -> list[Files]:
    """Those of the files that these jobs write; all of the corpus where any job is of it."""
    folders = folders_of(experiment, jobs)
    return [one for one in files if one.folder in folders or (counts["corpus"] and one.stage == "corpus")]


def folders_of(experiment: Experiment, jobs: list[Job]) -> set[Path]:
    """The folders that jobs write large files into, but for those of the corpus."""
    patterns = {
        **{rule: of_host(experiment.state, host) for rule, host in PRETRAINING.items()},
        **{rule: of_host(experiment.checkpoint, host) for rule, host in EXTRACTION.items()},
        "download_task": f"{experiment.results}/glue",
        **{suite.rule: experiment.finetuned.replace("{suite}", suite.name) + "/state" for suite in experiment.suites},
    }
    return {Path(patterns[job.rule].format(**job.wildcards)) for job in jobs if job.rule in patterns}


def banner(experiment: Experiment, scale: Config) -> list[str]:
    """What is about to run: experiment, scale, sources, what the scale overrides, where results go."""
    config, sweep = experiment.config, experiment.config["sweep"]
    hosts = "" if sweep["hosts"] == [ENCODER] else f"{', '.join(sweep['hosts'])} of "
    runs = [f"{size}-{attention}" for size in sweep["sizes"] for attention in sweep["attention"]]
    curves = [f"{len(sweep['curve']['steps'][size])} checkpoints of {size}" for size in sweep["curve"]["sizes"]]
    return [
        f"symbert: experiment {experiment.name} (scale {config['scale']}, corpus {source_of(config, 'corpus')}, "
        f"GLUE {source_of(config, 'glue')}, recipe {config['recipe']})",
        f"  scale sets     {_sections(scale) or 'nothing: every value is the paper’s'}",
        f"  pre-training   {hosts}{', '.join(runs)}; seeds {sweep['pretrain_seeds']}; "
        f"{config['pretrain']['steps']:,} steps of {config['pretrain']['batch_size']} × "
        f"{config['corpus']['pack']['sequence_length']} tokens",
        f"  fine-tuning    {', '.join(sweep['tasks'])}; seeds {sweep['finetune_seeds']}; "
        f"curve over {', '.join(curves) or 'no checkpoints'}",
        *([f"  extends        {_used(experiment)}"] if experiment.extended else []),
        f"  results        {experiment.results}",
    ]


def folded(line: str) -> str:
    """A line of an announcement, which may have many names, as lines that a terminal has room for."""
    return textwrap.fill(line, 120, subsequent_indent=" " * 17, break_long_words=False, break_on_hyphens=False)


def _sections(scale: Config) -> str:
    """The keys that a scale's file sets; of a section how many."""
    return ", ".join(
        f"{_count(values)} keys of {name}" if isinstance(values, dict) else name for name, values in scale.items()
    )


def _count(values: Any) -> int:
    return sum(map(_count, values.values())) if isinstance(values, dict) else 1


def _used(experiment: Experiment) -> str:
    """What of the extended experiment is used here."""
    corpus = "" if corpus_home(experiment) is experiment else "its corpus, "
    runs, checkpoints = experiment.pretrainings(), experiment.checkpoints()
    used = sum(run_home(experiment, run) is not experiment for run in runs)
    homes = (
        [
            *(scores_home(experiment, *one, suite.name) for suite in experiment.suites),
            *([judged_home(experiment, *one)] if experiment.has_judges else []),
        ]
        for one in checkpoints
    )
    scored = sum(experiment not in of_one for of_one in homes)
    return (
        f"{experiment.config['extends']}: {corpus}{used} of {len(runs)} pre-trainings, "
        f"the scores of {scored} of {len(checkpoints)} checkpoints"
    )
