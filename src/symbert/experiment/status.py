"""How far an experiment is: its runs, and the scores of every checkpoint. Reads only."""

from pathlib import Path

from symbert.corpus.state import corpus_home, is_packed
from symbert.glue.state import is_judged, measured_tasks, robustness_seeds, scored_seeds
from symbert.paths import Experiment
from symbert.pretrain.state import RunState, extracted_weights, run_state
from symbert.progress import aligned
from symbert.project import read_experiment


def status(scale: str | None = None, configfile: list[Path] | None = None, config: list[str] | None = None) -> None:
    """Print how each pre-training stands, and of each checkpoint how many scores of each task exist.

    The options are those of Snakemake, and --scale. Run it in the folder with results/; nothing is changed.
    """
    experiment = read_experiment(scale, configfile, config)
    print("\n".join(status_of(experiment)))


def status_of(experiment: Experiment) -> list[str]:
    """The status as lines: no table is wider than 120 columns; a reason of a failure may be."""
    runs = [run_state(experiment, run) for run in experiment.pretrainings()]
    home = corpus_home(experiment)
    corpus = "not packed yet" if not is_packed(home) else "packed" if home is experiment else f"in {home.results}"
    done = sum(state.is_done for state in runs)
    table = aligned(
        [
            ("pre-training", "step", "of"),
            *((str(one.run), f"{one.step:,}", f"{experiment.last_step(one.run.host):,}") for one in runs),
        ]
    )
    notes = ["", *(f"{one.state}{f': {one.note}' if one.note else ''}" for one in runs)]
    head = (
        "checkpoint",
        "step",
        "extracted",
        *experiment.tasks,
        *(["robustness"] if measured_tasks(experiment) else []),
        *(["blimp"] if experiment.has_judges else []),
    )
    rows = [_row(experiment, state, step) for state in runs for step in experiment.extracted_steps(state.run)]
    return [
        f"Experiment {experiment.name}: corpus {corpus}; {done} of {len(runs)} pre-trainings done",
        "",
        *(f"{line}  {note}".rstrip() for line, note in zip(table, notes, strict=True)),
        "",
        "Fine-tuning: scores there / wanted, by task; robustness: of all its tasks",
        *aligned([head, *rows]),
    ]


def _row(experiment: Experiment, state: RunState, step: int) -> tuple[str, ...]:
    """A checkpoint's row; robustness is measured of the last step alone."""
    wanted, tasks = len(experiment.finetune_seeds(state.run.size, step)), measured_tasks(experiment)
    robustness = [""] if tasks else []
    if tasks and step == experiment.final:
        seeds = len(tasks) * len(experiment.config["sweep"]["finetune_seeds"])
        robustness = [_share(sum(map(len, robustness_seeds(experiment, state, step).values())), seeds)]
    return (
        str(state.run),
        f"{step:,}",
        "yes" if extracted_weights(experiment, state.run, step).is_file() else "no",
        *(_share(len(seeds), wanted) for seeds in scored_seeds(experiment, state, step).values()),
        *robustness,
        *([_share(int(is_judged(experiment, state, step)), 1)] if experiment.has_judges else []),
    )


def _share(count: int, wanted: int) -> str:
    """How many of the wanted exist; '-' for none."""
    return f"{count}/{wanted}" if count else "-"
