"""What fine-tuning an experiment takes: steps, work, hours, files and downloads, and how much is still to come."""

import math
from collections.abc import Iterator
from pathlib import Path

from symbert.blimp import PAIRS_OF_PARADIGM, PARADIGMS, PIECES, STAND_IN_PAIRS
from symbert.config import source_of
from symbert.cost import Cost, Files, Speed, Work
from symbert.flops import encoder_flops, head_flops
from symbert.glue.state import (
    RAW_ROWS,
    is_judged,
    pairs_file,
    robustness_home,
    robustness_seeds,
    rows_file,
    scored_seeds,
    scores_home,
)
from symbert.hosts import ENCODER
from symbert.layout import Experiment, Run
from symbert.pretrain.state import RunState
from symbert.pretrain.storage import FLOAT32, parameters_of
from symbert.sizes import SIZES
from symbert.sources import SOURCES, is_stand_in
from symbert.suites import SUITES
from symbert.tasks import PUBLISHED, task_named, tasks_of_suite

BYTES_OF_A_ROW = 100  # of a file of the user's own, about
STAND_IN_ROWS, STAND_IN_EVALUATION_ROWS = 1_000, 500  # of a split


def finetuning_steps(experiment: Experiment, task: str) -> int:
    """Optimizer steps of one seed."""
    settings = experiment.finetuning(task)
    examples = _rows(experiment, task, "train") // task_named(task).rows_of_example
    return settings.epochs * math.ceil(examples / settings.batch_size)


def evaluated_rows(experiment: Experiment, task: str) -> int:
    """Rows, as a classifier reads them, of the splits that a fine-tuned model is scored on."""
    return sum(_rows(experiment, task, split) for split in task_named(task).scores)


def _rows(experiment: Experiment, task: str, split: str) -> int:
    """Rows of a split as a classifier reads them: what the form makes of those that are published.

    A split that is limited, or a stand-in, has fewer than the official one. Of own files about.
    """
    settings, row = experiment.preparation(task), task_named(task)
    made_of_row = row.rows_of_row
    if row.files:
        path = Path(row.files[split])
        files = (file for file in (path, *path.rglob("*")) if file.is_file())
        rows = math.ceil(sum(file.stat().st_size for file in files) / BYTES_OF_A_ROW)
    elif is_stand_in(source_of(experiment.config, "glue")):
        rows = STAND_IN_ROWS if split == "train" else STAND_IN_EVALUATION_ROWS
        made_of_row = row.rows_of_stand_in or row.rows_of_row
    else:
        rows = row.official_rows[split]
    limit = settings.max_examples if split == "train" else settings.max_evaluation_examples
    return min(rows, limit or rows) * made_of_row


def finetuning_work(experiment: Experiment, size: str, task: str, seeds: int = 1) -> Work:
    """One task on one checkpoint, with its evaluation."""
    shape, steps = SIZES[size], finetuning_steps(experiment, task)
    epoch = _rows_flops(experiment, size, task, _rows(experiment, task, "train"))
    training = 3 * experiment.finetuning(task).epochs * epoch
    evaluation = _rows_flops(experiment, size, task, evaluated_rows(experiment, task))
    return Work(seeds * (training + evaluation), seeds * steps * shape.num_hidden_layers)


def robustness_work(experiment: Experiment, size: str, task: str, seeds: int = 1) -> Work:
    """Scores on noise, of models that were kept, or else are fine-tuned again. Out-of-domain sets are not counted."""
    glue = experiment.config["glue"]
    levels = 1 + len(glue["robustness"]["noise"]) * len(glue["robustness"]["noise_kinds"])
    scoring = Work(seeds * levels * _rows_flops(experiment, size, task, evaluated_rows(experiment, task)))
    return scoring if glue["keep_finetuned"] else scoring + finetuning_work(experiment, size, task, seeds)


def example_tokens(experiment: Experiment, task: str) -> int:
    """Tokens of what a classifier reads at a time, about."""
    return min(task_named(task).row_tokens, experiment.preparation(task).max_length)


def _rows_flops(experiment: Experiment, size: str, task: str, rows: int) -> float:
    """Operations, forward, on rows of a task as a classifier reads them."""
    return encoder_flops(SIZES[size], SIZES[size].layer_weights, rows, example_tokens(experiment, task))


def finetuning_cost(experiment: Experiment, state: RunState, step: int, speed: Speed) -> Cost:
    """Of one checkpoint, on all tasks; its robustness too, where that is asked for. Nothing of scores elsewhere."""
    size, cost = state.run.size, Cost()
    wanted = len(experiment.finetune_seeds(size, step))
    scored = scored_seeds(experiment, state, step)
    for suite in experiment.suites:
        if scores_home(experiment, state.run, step, suite.name) is not experiment:
            continue
        for task in tasks_of_suite(suite.name, experiment.tasks):
            seeds = scored[task]
            cost += speed.cost(*(finetuning_work(experiment, size, task, n) for n in (wanted, wanted - len(seeds))))
    if step == experiment.final and robustness_home(experiment, state.run) is experiment:
        wanted = len(experiment.config["sweep"]["finetune_seeds"])
        for task, seeds in robustness_seeds(experiment, state, step).items():
            cost += speed.cost(*(robustness_work(experiment, size, task, n) for n in (wanted, wanted - len(seeds))))
    return cost


def judging_work(experiment: Experiment, run: Run) -> Work:
    """A checkpoint on BLiMP's pairs: an encoder reads as many copies of each sentence as it has tokens to predict."""
    pairs = STAND_IN_PAIRS if is_stand_in(source_of(experiment.config, "glue")) else PAIRS_OF_PARADIGM
    pairs = min(pairs, experiment.judging.max_evaluation_examples or pairs)
    sentences, shape = len(PARADIGMS) * pairs * 2, SIZES[run.size]
    predicted = sentences * (PIECES - 2)
    layers = encoder_flops(shape, shape.layer_weights, predicted if run.host == ENCODER else sentences, PIECES)
    return Work(layers + head_flops(shape, experiment.vocabulary_size, predicted))


def judging_cost(experiment: Experiment, state: RunState, step: int, speed: Speed) -> Cost:
    """Of one checkpoint, on BLiMP's pairs."""
    work = judging_work(experiment, state.run)
    return speed.cost(work, Work() if is_judged(experiment, state, step) else work)


def missing_tasks(experiment: Experiment) -> list[str]:
    """The tasks whose rows are still to be downloaded."""
    if not SOURCES[source_of(experiment.config, "glue")].is_remote or not experiment.checkpoints():
        return []
    return [task for task in experiment.tasks if not Path(rows_file(experiment, RAW_ROWS, task)).is_file()]


def bytes_to_download(experiment: Experiment) -> float:
    """Of the tasks' tables, and of BLiMP's pairs."""
    is_remote = SOURCES[source_of(experiment.config, "glue")].is_remote
    lacks_pairs = is_remote and experiment.has_judges and not Path(pairs_file(experiment)).is_file()
    return _bytes_of(missing_tasks(experiment)) + (SUITES["blimp"].bytes if lacks_pairs else 0)


def _bytes_of(tasks: list[str]) -> float:
    """A table's share of those of its suite is that of its rows; the user's own are not downloaded."""
    rows = {name: sum(task.official_rows.values()) for name, task in PUBLISHED.items()}
    return sum(
        suite.bytes * sum(rows[task] for task in tasks if task in suite.tasks) / sum(rows[name] for name in suite.tasks)
        for suite in SUITES.values()
        if suite.tasks
    )


def task_files(experiment: Experiment) -> Iterator[Files]:
    """What is downloaded."""
    if SOURCES[source_of(experiment.config, "glue")].is_remote and experiment.checkpoints():
        planned, folder = _bytes_of(experiment.tasks), Path(experiment.results) / "glue"
        yield Files("glue", "tasks", "results/", folder, planned, bytes_to_download(experiment))


def finetuned_files(experiment: Experiment, state: RunState) -> Iterator[Files]:
    """The weights of a run's fine-tunings, where they are kept: those of its last step."""
    step = experiment.final
    if not (experiment.config["glue"]["keep_finetuned"] and experiment.steps(state.run)):
        return
    suites = [each for each in experiment.suites if scores_home(experiment, state.run, step, each.name) is experiment]
    scored = scored_seeds(experiment, state, step) if suites else {}
    weights = FLOAT32 * parameters_of(state.run, experiment.vocabulary_size)
    for suite in suites:
        tasks = tasks_of_suite(suite.name, experiment.tasks)
        folder = experiment.place(experiment.finetuned, state.run, step=step, suite=suite.name) / "state"
        wanted = len(tasks) * len(experiment.finetune_seeds(state.run.size, step))
        kept = sum(len(scored[task]) for task in tasks)
        planned, to_come = weights * wanted, weights * (wanted - kept)
        yield Files("glue", "fine-tuned weights", "glue.keep_finetuned", folder, planned, to_come)
