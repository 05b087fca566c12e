"""What an experiment will cost, before anything is spent: jobs, hours, disk and download of each stage."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from symbert.checks import refuse_stand_ins
from symbert.commit import PROJECT
from symbert.config import source_of
from symbert.corpus import state as corpus
from symbert.corpus.plan import contents_in_words
from symbert.cost import Cost, Files, Hours, configured_speed
from symbert.errors import ConfigError, DataError, SymbertError
from symbert.experiment.disk import by_mount, refuse_small
from symbert.glue import cost as glue
from symbert.paths import Experiment
from symbert.pretrain.state import RunState, pretraining_cost, pretraining_files, pretraining_speed, run_state
from symbert.progress import aligned, data_size
from symbert.project import STAGES, read_experiment, stages_of_rules
from symbert.sizes import SIZES

WHEN_CHANGED = {
    "refuse": "on_settings_change: refuse: a start that trains it ends with exit code 64; name a new 'experiment'",
    "supersede": "on_settings_change: supersede: it will be set aside, and trained anew",
}


@dataclass(frozen=True)
class Stage:
    """What a stage takes, in all and of it to come; sizes in bytes."""

    name: str
    jobs: int
    jobs_to_come: int
    cost: Cost
    download: float  # to come
    files: list[Files]


@dataclass(frozen=True)
class ExperimentPlan:
    """The stages in order, how far the runs are, and which speeds were measured where."""

    stages: list[Stage]
    runs: list[RunState]
    measured: list[str]

    @property
    def files(self) -> list[Files]:
        """Of all stages."""
        return [one for stage in self.stages for one in stage.files]


def plan(scale: str | None = None, configfile: list[Path] | None = None, config: list[str] | None = None) -> None:
    """Print what the chosen experiment costs by stage, what of it is done, and what the numbers rest on.

    The options are those of Snakemake, and --scale. Run it in the folder with results/. InputOutputError when what is
    still to be written does not fit the configured storage; ConfigError for stand-ins at a scale for real text.
    """
    experiment = read_experiment(scale, configfile, config)
    for stage in ("corpus", "glue"):
        refuse_stand_ins(experiment.config, stage)
    jobs, to_come = count_jobs(scale, configfile, config)
    planned = plan_experiment(experiment, jobs, to_come)
    print("\n".join(lines_of(experiment, planned)), flush=True)
    refuse_small(planned.files)


def count_jobs(
    scale: str | None, configfile: list[Path] | None, config: list[str] | None
) -> tuple[Counter[str], Counter[str]]:
    """Jobs by stage, in all and of them to come, in the graph that `snakemake --dag` prints with these options.

    ConfigError or DataError where the workflow refuses its configuration or a file of the user's, SymbertError with
    Snakemake's last words where it prints no graph.
    """
    words = list(config or [])
    if scale is not None:  # it stands above a scale in `config`, and Snakemake takes no key twice
        words = [*(word for word in words if not word.startswith("scale=")), f"scale={scale}"]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(PROJECT / "Snakefile"), "--dag"]
    command += ["--configfile", *map(str, configfile)] if configfile else []
    command += ["--config", *words] if words else []
    done = subprocess.run(command, capture_output=True, text=True)
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    if done.returncode in (kinds := {kind.exit_code: kind for kind in (ConfigError, DataError)}):
        raise kinds[done.returncode](last.removeprefix("symbert: "))
    nodes = re.findall(r'^\s*\d+\[label = "(\w+).*style="rounded(,dashed)?"\];$', done.stdout, re.M)
    if done.returncode or not nodes:
        raise SymbertError(f"snakemake --dag: {last}; run snakemake --dry-run with the same options to see why")
    jobs = [(rule, not dashed) for rule, dashed in nodes if rule != "all"]  # dashed: it need not run
    return by_stage(rule for rule, _ in jobs), by_stage(rule for rule, needed in jobs if needed)


def by_stage(rules: Iterable[str], project: Path = PROJECT) -> Counter[str]:
    """How many jobs each stage has, by their rules."""
    stages = stages_of_rules(project)
    return Counter(stages.get(rule, "report") for rule in rules)


def plan_experiment(experiment: Experiment, jobs: Counter[str], jobs_to_come: Counter[str]) -> ExperimentPlan:
    """The plan of an experiment with these jobs by stage; MissingInputError names a part that a mirror lacks."""
    runs = [run_state(experiment, run) for run in experiment.pretrainings()]
    training = {state.run: pretraining_speed(experiment, state.run) for state in runs}
    rates = experiment.config["rates"]
    finetuning = {size: configured_speed(rates, SIZES[size]) for size in experiment.config["sweep"]["sizes"]}

    costs = dict.fromkeys(STAGES, Cost()) | {"corpus": corpus.corpus_cost(experiment)}
    files = files_of(experiment, runs)
    for state in runs:
        costs["pretrain"] += pretraining_cost(experiment, state, training[state.run])
        for step in experiment.steps(state.run):
            costs["glue"] += glue.finetuning_cost(experiment, state, step, finetuning[state.run.size])
        for step in experiment.judging_steps(state.run):
            costs["glue"] += glue.judging_cost(experiment, state, step, finetuning[state.run.size])
    download = {"corpus": corpus.bytes_to_download(experiment), "glue": glue.bytes_to_download(experiment)}
    stages = []
    for name in STAGES:
        seconds = (count[name] * rates["job_seconds"] for count in (jobs, jobs_to_come))
        cost = costs[name] + Cost(*(Hours(core=each / 3600) for each in seconds))
        own = [one for one in files if one.stage == name]
        stages.append(Stage(name, jobs[name], jobs_to_come[name], cost, download.get(name, 0), own))
    measured = [f"pre-training {run}: {speed.measured}" for run, speed in training.items() if speed.measured]
    return ExperimentPlan(stages, runs, measured)


def files_of(experiment: Experiment, runs: list[RunState]) -> list[Files]:
    """The large files of an experiment whose runs are that far."""
    of_runs = [
        one
        for state in runs
        for one in (*pretraining_files(experiment, state), *glue.finetuned_files(experiment, state))
    ]
    return [*corpus.corpus_files(experiment), *glue.task_files(experiment), *of_runs]


def lines_of(experiment: Experiment, planned: ExperimentPlan) -> list[str]:
    """The plan as plain text; no line is wider than 120 columns but those on settings, failures and folders."""
    config, mounts = experiment.config, by_mount(planned.files)
    return [
        f"Experiment {experiment.name}: scale {config['scale']}, corpus {source_of(config, 'corpus')}, "
        f"GLUE {source_of(config, 'glue')}, recipe {config['recipe']}; results in {experiment.results}",
        "",
        *_table(planned.stages),
        "",
        *_run_lines(experiment, planned.runs),
        "",
        *(
            f"{mount}: at most {data_size(needed)} to come at one time ({', '.join(keys) or 'nothing large'}), "
            f"{data_size(free)} free"
            for mount, (needed, free, keys) in mounts.items()
        ),
        "",
        *_reasons(experiment, planned.measured),
    ]


def _table(stages: list[Stage]) -> list[str]:
    """A row per stage; in all, and what of it is to come."""
    costs = ("jobs", "GPU-hours", "core-hours", "disk")
    rows = [("stage", *costs, "| to come:", *costs, "download")]
    for name, group in [*((stage.name, [stage]) for stage in stages), ("all", stages)]:
        cost = sum((one.cost for one in group), Cost())
        files = [one for stage in group for one in stage.files]
        rows.append(
            (
                name,
                f"{sum(one.jobs for one in group):,}",
                hours_in_words(cost.whole.gpu),
                hours_in_words(cost.whole.core),
                data_size(sum(one.planned for one in files)),
                "|",
                f"{sum(one.jobs_to_come for one in group):,}",
                hours_in_words(cost.to_come.gpu),
                hours_in_words(cost.to_come.core),
                data_size(sum(one.to_come for one in files)),
                data_size(sum(one.download for one in group)),
            )
        )
    return aligned(rows)


def hours_in_words(hours: float) -> str:
    """Hours with the digits that an estimate has."""
    if hours == 0:
        return "-"
    return "<0.01" if hours < 0.01 else f"{hours:,.2g}" if hours < 10 else f"{hours:,.0f}"


def _run_lines(experiment: Experiment, runs: list[RunState]) -> list[str]:
    """How many runs are done; of each that holds other settings, what will become of it."""
    warnings = [line for state in runs for line in warning_of(experiment, state)]
    return [f"{sum(state.is_done for state in runs)} of {len(runs)} pre-trainings done", *warnings]


def warning_of(experiment: Experiment, state: RunState) -> list[str]:
    """Of a run whose folder holds another one: how that differs, and what will become of it.

    Of one that was set aside: that it comes back. Of any other: nothing.
    """
    if state.state == "set aside":
        last = experiment.last_step(state.run.host)
        return [f"{state.run}: set aside at step {state.step:,} of {last:,}, {state.note}"]
    if state.state != "other settings":
        return []
    then = WHEN_CHANGED[experiment.config["on_settings_change"]]
    return [f"{state.run}: its folder holds a run with other settings ({state.note})", f"  {then}"]


def _reasons(experiment: Experiment, measured: list[str]) -> list[str]:
    """What the numbers rest on."""
    rates = experiment.config["rates"]
    steps = sum(glue.finetuning_steps(experiment, task) for task in experiment.tasks)
    lengths = sorted({glue.example_tokens(experiment, task) for task in experiment.tasks})
    tokens = " to ".join(map(str, dict.fromkeys([*lengths[:1], *lengths[-1:]]))) or "no"
    others = "of the others: " if measured else ""
    contents = contents_in_words(experiment.config)
    return [
        "rests on",
        *(f"  measured     {line}" for line in measured),
        f"  rates        {others}{rates['gpu_flops']:.2g} FLOP/s of a GPU, {rates['core_flops']:.2g} of a core (size "
        f"tiny); {1000 * rates['gpu_layer_seconds']:g} and {1000 * rates['core_layer_seconds']:g} ms",
        f"               per step and layer; {rates['job_seconds']:g} s to start a job",
        "  GPU-hours    two GPUs busy for one hour are two GPU-hours; beside each a core is busy",
        "  operators    hours of all as of `original`; bytes by the parameters of each",
        f"  fine-tuning  {steps:,} optimizer steps per seed and checkpoint, {tokens} tokens an example",
        f"  corpus       {contents[0]}",
        f"               {contents[1]}",
        "  disk         at its most; raw parts are gone when shards are written, unless corpus.keep_raw is set",
    ]
