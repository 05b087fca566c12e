"""How far an experiment is: its runs, and the scores of every checkpoint. Reads only."""

from pathlib import Path

from symbert.experiment.existing import FoundRun, find_runs
from symbert.experiment.inputs import has_corpus
from symbert.experiment.layout import Experiment, read_experiment
from symbert.experiment.scores import extracted_of, robustness_found, scores_found
from symbert.progress import aligned


def status(scale: str | None = None, configfile: list[Path] | None = None, config: list[str] | None = None) -> None:
    """Print how each pre-training stands, and of each checkpoint how many scores of each task are there.

    The options are those of Snakemake, and --scale. Run it in the project's folder; nothing is changed.
    """
    experiment = read_experiment(scale, configfile, config)
    print("\n".join(status_of(experiment)))


def status_of(experiment: Experiment) -> list[str]:
    """The status as lines: no table is wider than 120 columns; a reason of a failure may be."""
    runs = find_runs(experiment)
    corpus = "packed" if has_corpus(experiment) else "not packed yet"
    done = sum(found.is_done for found in runs)
    return [
        f"Experiment {experiment.name}: corpus {corpus}; {done} of {len(runs)} pre-trainings done",
        "",
        *_runs(experiment, runs),
        "",
        "Fine-tuning: scores there / wanted, by task; robustness: of all its tasks",
        *_scores(experiment, runs),
    ]


def _runs(experiment: Experiment, runs: list[FoundRun]) -> list[str]:
    table = aligned(
        [("pre-training", "step", "of"), *((str(each.run), f"{each.step:,}", f"{experiment.final:,}") for each in runs)]
    )
    told = ["", *(f"{each.state}{f': {each.note}' if each.note else ''}" for each in runs)]
    return [f"{line}  {state}".rstrip() for line, state in zip(table, told, strict=True)]


def _scores(experiment: Experiment, runs: list[FoundRun]) -> list[str]:
    """A row per checkpoint; '-' where nothing is there."""
    measured = bool(experiment.measured_tasks)
    head = ("checkpoint", "step", "extracted", *experiment.tasks, *(["robustness"] if measured else []))
    rows = [_row(experiment, found, step) for found in runs for step in experiment.steps(found.run.size)]
    return aligned([head, *rows])


def _row(experiment: Experiment, found: FoundRun, step: int) -> tuple[str, ...]:
    wanted = len(experiment.finetune_seeds(found.run.size, step))
    return (
        str(found.run),
        f"{step:,}",
        "yes" if extracted_of(experiment, found.run, step).is_file() else "no",
        *(_share(len(seeds), wanted) for seeds in scores_found(experiment, found, step).values()),
        *_robustness(experiment, found, step),
    )


def _robustness(experiment: Experiment, found: FoundRun, step: int) -> list[str]:
    tasks = experiment.measured_tasks
    if not tasks:
        return []
    if step != experiment.final:
        return [""]
    there = sum(robustness_found(experiment, found, step).values())
    return [_share(there, len(tasks) * len(experiment.config["sweep"]["finetune_seeds"]))]


def _share(count: int, wanted: int) -> str:
    return f"{count}/{wanted}" if count else "-"
