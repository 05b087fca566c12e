"""`symbert plan`: the plan of an experiment as plain text."""

from pathlib import Path

from symbert.checks import refuse_stand_ins
from symbert.config import source_of
from symbert.experiment import operations
from symbert.experiment.disk import Files, by_mount, refuse_small
from symbert.experiment.existing import FoundRun
from symbert.experiment.layout import Experiment, read_experiment
from symbert.experiment.plan import Hours, Plan, Stage, plan_experiment
from symbert.progress import aligned, data_size

WHEN_CHANGED = {
    "refuse": "on_settings_change: refuse: a start that trains it ends with exit code 78; name a new 'experiment'",
    "supersede": "on_settings_change: supersede: it will be set aside, and trained anew",
}


def plan(scale: str | None = None, configfile: list[Path] | None = None, config: list[str] | None = None) -> None:
    """Print what the chosen experiment costs by stage, what of it is there, and what the numbers rest on.

    The options are those of Snakemake, and --scale. Run it in the project's folder. InputOutputError when what is
    still to be written does not fit the configured storage; ConfigError for stand-ins at a scale for real text.
    """
    experiment = read_experiment(scale, configfile, config)
    for stage in ("corpus", "glue"):
        refuse_stand_ins(experiment.config, stage)
    found = plan_experiment(experiment)
    print("\n".join(lines_of(experiment, found)), flush=True)
    refuse_small(found.files)


def lines_of(experiment: Experiment, found: Plan) -> list[str]:
    """The plan as plain text; no line is wider than 120 columns but those on settings, failures and folders."""
    config = experiment.config
    return [
        f"Experiment {experiment.name}: scale {config['scale']}, corpus {source_of(config, 'corpus')}, "
        f"GLUE {source_of(config, 'glue')}, recipe {config['recipe']}; results in {experiment.results}",
        "",
        *_table(found.stages),
        "",
        *_runs(experiment, found.runs),
        "",
        *_disks(found.files),
        "",
        *_reasons(experiment, found.measured),
    ]


def _table(stages: list[Stage]) -> list[str]:
    """A row per stage; in all, and what of it is to come."""
    costs = ("GPU-hours", "core-hours", "disk")
    head = ("stage", "jobs", *costs, "| to come:", *costs, "download")
    return aligned([head, *(_row(stage.name, [stage]) for stage in stages), _row("all", stages)])


def _row(name: str, stages: list[Stage]) -> tuple[str, ...]:
    whole = sum((one.spent.whole for one in stages), Hours())
    to_come = sum((one.spent.to_come for one in stages), Hours())
    return (
        name,
        f"{sum(one.jobs for one in stages):,}",
        hours_in_words(whole.gpu),
        hours_in_words(whole.core),
        data_size(sum(one.disk for one in stages)),
        "|",
        hours_in_words(to_come.gpu),
        hours_in_words(to_come.core),
        data_size(sum(one.disk_to_come for one in stages)),
        data_size(sum(one.download for one in stages)),
    )


def hours_in_words(hours: float) -> str:
    """Hours with the digits that an estimate has."""
    if hours == 0:
        return "-"
    return "<0.01" if hours < 0.01 else f"{hours:,.2g}" if hours < 10 else f"{hours:,.0f}"


def _runs(experiment: Experiment, runs: list[FoundRun]) -> list[str]:
    """What is there of each run; of runs that hold other settings, what will become of them."""
    if all(found.state == "missing" for found in runs):
        return [f"{len(runs)} pre-trainings, none of them begun"]
    return [line for found in runs for line in _run(experiment, found)]


def _run(experiment: Experiment, found: FoundRun) -> list[str]:
    if warning := warning_of(experiment, found):
        return warning
    steps = f", step {found.step:,} of {experiment.final:,}" if found.state not in ("done", "missing") else ""
    return [f"{found.run}: {found.state}{steps}{f' ({found.note})' if found.note else ''}"]


def warning_of(experiment: Experiment, found: FoundRun) -> list[str]:
    """Of a run whose folder holds another one: how that differs, and what will become of it. Of one that was set aside:
    that it comes back."""
    if found.state == "set aside":
        return [f"{found.run}: set aside at step {found.step:,} of {experiment.final:,}, {found.note}"]
    if found.state != "other settings":
        return []
    then = WHEN_CHANGED[experiment.config["on_settings_change"]]
    return [f"{found.run}: its folder holds a run with other settings ({found.note})", f"  {then}"]


def _disks(files: list[Files]) -> list[str]:
    """What is to come on each file system, and what is free there."""
    return [
        f"{mount}: at most {data_size(needed)} to come at one time ({', '.join(keys) or 'nothing large'}), "
        f"{data_size(free)} free"
        for mount, (needed, free, keys) in by_mount(files).items()
    ]


def _reasons(experiment: Experiment, measured: list[str]) -> list[str]:
    """What the numbers rest on."""
    rates = experiment.config["rates"]
    steps = sum(operations.finetuning_of(experiment, task).steps for task in experiment.tasks)
    others = "of the others: " if measured else ""
    return [
        "rests on",
        *(f"  measured     {line}" for line in measured),
        f"  rates        {others}{rates['gpu_flops']:.2g} FLOP/s of a GPU, {rates['core_flops']:.2g} of a core (size "
        f"tiny); {1000 * rates['gpu_layer_seconds']:g} and {1000 * rates['core_layer_seconds']:g} ms",
        f"               per step and layer; {rates['job_seconds']:g} s to start a job",
        "  GPU-hours    two GPUs busy for one hour are two GPU-hours; beside each a core is busy",
        "  operators    all as `original`",
        f"  fine-tuning  {steps:,} optimizer steps per seed and checkpoint, "
        f"{operations.EXAMPLE_TOKENS} tokens an example",
        "  corpus       `symbert plan-corpus` says what it rests on",
        "  disk         at its most; raw parts are gone when shards are written, unless corpus.keep_raw is set",
    ]
